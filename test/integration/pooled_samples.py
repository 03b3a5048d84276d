"""Samples, in memory and in HugeCTR's data files, and their pooled rows, computed with NumPy."""

import pathlib
import random
import struct

import numpy as np

from programs import wrapped


class PooledSamples:
    """Data in the shape that a model file declares, which is changed where it must be: to Norm,
    unless it says Raw, and to more keys in a sample.

    dense: [count, columns], as a network reads them. keys: by sample and slot. Both are those of
    the file that was written last.
    """

    def __init__(self, content, folder):
        self.shape, self.folder = content["layers"][0], folder
        self.labels = self.shape["label"]["label_dim"]
        self.columns = self.shape["dense"]["dense_dim"]
        self.slots = sum(one["slot_num"] for one in self.shape["sparse"])
        self.key = "q" if content["solver"].get("input_key_type") == "I64" else "I"
        self.is_raw = self.shape.get("format") == "Raw"
        if self.is_raw:
            return
        self.shape.update(format="Norm", check="Sum")
        for raw_only in ("slot_size_array", "num_samples", "eval_num_samples"):
            self.shape.pop(raw_only, None)
        for one in self.shape["sparse"]:
            one["max_feature_num_per_sample"] = 2 * one["slot_num"]

    def write(self, name, count, seed):
        """Writes NAME.data, with some keys that the file "train" lacks unless it is that one."""
        path, draw, unseen = self.folder / f"{name}.data", random.Random(seed), name != "train"
        self.count = count
        if self.is_raw:
            self.shape["eval_num_samples" if unseen else "num_samples"] = count
            self._write_raw(path, draw, unseen)
        else:
            self._write_norm(path, draw, unseen)
        return path

    @staticmethod
    def _label(draw, keys):
        return int(draw.random() < 0.2 + 0.6 * (sum(keys) % 2))

    def _write_norm(self, path, draw, unseen):
        """A slot has no, one or two keys."""
        def keys(slot):
            most = 31 if unseen and draw.random() < 0.1 else 30
            return [slot * 40 + draw.randrange(most) for _ in range(draw.choice([0, 2] + 8 * [1]))]

        rows = [[draw.uniform(-1, 3) for _ in range(self.columns)] for _ in range(self.count)]
        self.dense = np.array(rows, dtype=np.float32).reshape(self.count, self.columns)
        self.keys = [[keys(slot) for slot in range(self.slots)] for _ in range(self.count)]
        header = struct.pack("<8q", 1, self.count, self.labels, self.columns, self.slots, 0, 0, 0)
        with open(path, "wb") as file:
            file.write(wrapped(header, "Sum"))
            for dense, slots in zip(self.dense, self.keys):
                labels = [self._label(draw, map(sum, slots)) for _ in range(self.labels)]
                record = struct.pack(f"<{self.labels + self.columns}f", *labels, *dense)
                for one in slots:
                    record += struct.pack(f"<i{len(one)}{self.key}", len(one), *one)
                file.write(wrapped(record, "Sum"))

    def _write_raw(self, path, draw, unseen):
        """One key per slot, to which a reader adds the sizes of the slots before; a dense feature
        x becomes log(x + 1)."""
        sizes = self.shape["slot_size_array"]
        features = np.array([[draw.randrange(100) for _ in range(self.columns)]
                             for _ in range(self.count)])
        drawn = [[draw.randrange(min(size, 31 if unseen else 30)) for size in sizes]
                 for _ in range(self.count)]
        self.dense = np.log(features + 1.0).astype(np.float32)
        self.keys = [[[key + sum(sizes[:slot])] for slot, key in enumerate(one)] for one in drawn]
        with open(path, "wb") as file:
            for row, keys in zip(features, drawn):
                cells = [self._label(draw, keys), *map(int, row), *keys]
                file.write(struct.pack(f"<{len(cells)}i", *cells))

    def pool(self, rows, embedding):
        """[count, slots, vec_size]. embedding: an entry in the description of an ONNX file."""
        first, slots = embedding["first_slot"], embedding["slots"]
        pooled = np.zeros((self.count, slots, embedding["vec_size"]), dtype=np.float32)
        for sample in range(self.count):
            for slot in range(slots):
                keys = self.keys[sample][first + slot]
                for key in keys:
                    if key in rows:  # an unknown key counts, with zeros
                        pooled[sample, slot] += rows[key]
                if embedding["combiner"] == "mean" and keys:
                    pooled[sample, slot] /= np.float32(len(keys))
        return pooled

    @staticmethod
    def rows_of_folder(path):
        """{key: weights} of a sparse folder of HugeCTR 3.x."""
        keys = np.fromfile(pathlib.Path(path) / "key", dtype=np.int64)
        weights = np.fromfile(pathlib.Path(path) / "emb_vector", dtype=np.float32)
        return dict(zip(keys.tolist(), weights.reshape(len(keys), -1)))

    @staticmethod
    def rows_of_text(run, table, width):
        """{key: embed_w and embedx_w} of a saved ctr table with AdaGradShared (formats.md)."""
        rows = {}
        for part in pathlib.Path(run).rglob(f"{table}/part-*"):
            for line in part.read_text(encoding="ascii").splitlines():
                words = line.split()
                embedx = words[10:] if len(words) > 9 else ["0"] * (width - 1)
                rows[int(words[0])] = np.array([words[6], *embedx], dtype=np.float32)
        assert any(row[1:].any() for row in rows.values())
        return rows
