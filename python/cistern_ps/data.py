"""Data sets: files of any format as batches of arrays, in file order, with an exact place to resume from."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from . import _native
from .arguments import integer
from .errors import UsageError

if TYPE_CHECKING:
    import pathlib

    import numpy as np

Source = Union[str, "os.PathLike[str]", Sequence["str | os.PathLike[str]"]]


@dataclass
class Batch:
    """Samples. All arrays own their memory and may be kept.

    Attributes:
        size: samples.
        label: float32 [size], or [size, labels] if there are several.
        dense: float32 [size, dense].
        inputs: (keys int64 [n], offsets int32 [size * slots + 1]) of each sparse input: the keys of slot s of sample i
            are keys[offsets[i * slots + s] : offsets[i * slots + s + 1]]. A key of 2**63 or more looks negative; its
            bits are the same.
        weight: float32 [size], the weights of the samples; None without `sample_weight`.
        key_weights: of each input float32 [n], the weights of its keys, or None; None if no input has any
            (`key_weights` of the data set).
    """

    size: int
    label: Any
    dense: Any
    inputs: List[Tuple[Any, Any]]
    weight: Any = None
    key_weights: Optional[List[Any]] = None

    @property
    def keys(self) -> Any:
        """The keys of the first input."""
        return self.inputs[0][0]

    @property
    def offsets(self) -> Any:
        """The offsets of the first input."""
        return self.inputs[0][1]

    def torch(self) -> "Batch":
        """The same batch as tensors on the CPU, which share the arrays' memory."""
        import torch

        def tensor(array: Any) -> Any:
            return array if isinstance(array, torch.Tensor) else torch.from_numpy(array)

        return Batch(
            self.size, tensor(self.label), tensor(self.dense), [(tensor(k), tensor(o)) for k, o in self.inputs],
            None if self.weight is None else tensor(self.weight),
            None if self.key_weights is None else [None if w is None else tensor(w) for w in self.key_weights]
        )

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        inputs = ", ".join(f"{len(k)} keys" for k, _ in self.inputs)
        return f"<Batch: {self.size} samples, {inputs}, dense {tuple(self.dense.shape)}>"


class DataSet:
    """Batches of a data set. Iterating over it reads `epochs` times through the files.

    `state_dict` after a batch names the place after it, and `load_state_dict` makes the next iteration begin there,
    with the same batches as if it had never stopped. Made by `norm`, `raw`, `parquet`, `tar` and `csv`.
    """

    def __init__(self, arguments: Dict[str, Any], batch: int, epochs: int, tensors: str, drop_last: bool,
                 shuffle: Optional[int]):
        integer("batch", batch, 1)
        integer("epochs", epochs, 1)
        if shuffle is not None:
            integer("shuffle", shuffle, most=2**40)
        if tensors not in ("numpy", "torch"):
            raise UsageError(f'tensors={tensors!r}: expected "numpy" or "torch"')
        self.batch = batch
        self.epochs = epochs
        self.tensors = tensors
        self.drop_last = drop_last
        self.shuffle = shuffle
        self._arguments = arguments
        self._epoch = 0
        self._samples = 0  # delivered in this epoch
        self._reader: Any = None
        self._weighted = arguments["weighted"]
        self._squeeze = arguments["label"] - self._weighted == 1

    def state_dict(self) -> Dict[str, int]:
        """The place after the last batch that an iterator of this object has delivered."""
        return {"epoch": self._epoch, "samples": self._samples}

    def peek_keys(self, input: int = 0) -> Any:
        """The keys of an input of the next batch, so that their rows can be pulled meanwhile; None if it is not known."""
        return None if self._reader is None else self._reader.peek_keys(input)

    def load_state_dict(self, state: Dict[str, int]) -> None:
        """The next iteration begins at this place."""
        self._epoch, self._samples = int(state["epoch"]), int(state["samples"])

    @property
    def epoch(self) -> int:
        """The epoch of the last batch: 0, 1 ..."""
        return self._epoch

    def __iter__(self) -> Iterator[Batch]:
        if self._epoch >= self.epochs:  # a finished data set starts over
            self._epoch, self._samples = 0, 0
        reader: Any = None
        while self._epoch < self.epochs:
            if reader is None or self.shuffle is None:
                reader = _native.open_data(**self._arguments, batch=self.batch)
            if self.shuffle is not None:
                reader.shuffle(self.shuffle * 1_000_003 + self._epoch)
            if self._samples:
                reader.skip(self._samples)
            self._reader = reader
            while True:
                read = reader.next()
                if read is None or (self.drop_last and read[0] < self.batch):
                    break
                size, label, dense, inputs = read
                self._samples += size
                weight = None
                if self._weighted:
                    label, weight = label[:, :-1].copy(), label[:, -1].copy()
                pairs = [(keys, offsets) for keys, offsets, _ in inputs]
                key_weights = [weights for *_, weights in inputs] if self._arguments["key_weights"] else None
                batch = Batch(size, label[:, 0] if self._squeeze else label, dense, pairs, weight, key_weights)
                yield batch.torch() if self.tensors == "torch" else batch
            self._epoch += 1
            self._samples = 0

    def __getstate__(self) -> Dict[str, Any]:
        return {**self.__dict__, "_reader": None}  # another process opens the files itself

    def __repr__(self) -> str:
        a = self._arguments
        return f"<DataSet {a['source']} ({a['format']}): slots {a['slots']}, dense {a['dense']}, batches of {self.batch}>"


def _weighted_inputs(key_weights: "bool | Sequence[bool]", inputs: int) -> List[bool]:
    """By input; empty if there are none."""
    if isinstance(key_weights, (list, tuple)):
        if len(key_weights) != inputs:
            raise UsageError(f"key_weights: {len(key_weights)} of them for {inputs} inputs: expected one for each")
        given = [bool(one) for one in key_weights]
    else:
        given = [bool(key_weights)] * inputs
    return given if any(given) else []


def _open(format: str, source: Source, slots: "int | Sequence[int]", dense: int, label: int, batch: int, epochs: int,
          tensors: str, drop_last: bool, shuffle: Optional[int], sample_weight: bool,
          key_weights: "bool | Sequence[bool]", **more: Any) -> DataSet:
    paths = [source] if isinstance(source, (str, os.PathLike)) or source is None else list(source)
    if not paths:
        raise UsageError("source: no files")
    several = isinstance(slots, (list, tuple))
    arguments: Dict[str, Any] = {
        "format": format,
        "source": ",".join(os.fspath(p) for p in paths),
        "label": integer("label", label, 1, 2**32 - 2) + bool(sample_weight),
        "weighted": bool(sample_weight),
        "dense": integer("dense", dense, 0, 2**32 - 1),
        "slots": [integer("slots", s, 1, 2**32 - 1) for s in (slots if several else [slots])],  # type: ignore[union-attr]
        "key_weights": _weighted_inputs(key_weights, len(slots) if several else 1),  # type: ignore[arg-type]
        "max_keys": [],
        "wide_keys": False,
        "check_sum": False,
        "num_samples": 0,
        "float_label_dense": False,
        "slot_sizes": [],
        "keysets": [],
        "label_names": [],
        "dense_names": [],
        "slot_names": [],
        "weight_names": [],
    }
    arguments.update(more)
    if not arguments["max_keys"]:
        arguments["max_keys"] = [0] * len(arguments["slots"])
    return DataSet(arguments, batch, epochs, tensors, drop_last, shuffle)


def norm(source: Source, slots: "int | Sequence[int]", dense: int = 0, label: int = 1, batch: int = 4096,
         epochs: int = 1, wide_keys: bool = False, check_sum: bool = True, tensors: str = "numpy",
         drop_last: bool = False, shuffle: Optional[int] = None,
         sample_weight: bool = False, key_weights: "bool | Sequence[bool]" = False) -> DataSet:
    """HugeCTR's Norm files: a file list, a file, or several of either.

    slots: slots of the sparse input; a list for several inputs. wide_keys: keys have 8 bytes (input_key_type I64).
    tensors: "numpy" or "torch". shuffle: a seed: the samples come in an order that is a pure function of the seed and
    the epoch; the whole data set is then in memory. sample_weight: the last label of the files, after `label` others, is
    the weight of the sample (Batch.weight), as with cistern.sample_weights. key_weights: keys have weights
    (Batch.key_weights), as with cistern.key_weights; a list for several inputs.
    """
    return _open("Norm", source, slots, dense, label, batch, epochs, tensors, drop_last, shuffle, sample_weight, key_weights,
                 wide_keys=wide_keys,
                 check_sum=check_sum)


def raw(source: Source, slots: "int | Sequence[int]", num_samples: int, dense: int = 0, label: int = 1,
        batch: int = 4096, epochs: int = 1, float_label_dense: bool = False, slot_sizes: Sequence[int] = (),
        tensors: str = "numpy", drop_last: bool = False, shuffle: Optional[int] = None,
        sample_weight: bool = False, key_weights: "bool | Sequence[bool]" = False) -> DataSet:
    """HugeCTR's Raw files: one key a slot, and no header, so num_samples says how many samples there are."""
    return _open("Raw", source, slots, dense, label, batch, epochs, tensors, drop_last, shuffle, sample_weight, key_weights,
                 num_samples=num_samples,
                 float_label_dense=float_label_dense, slot_sizes=list(slot_sizes))


def parquet(source: Source, slots: "int | Sequence[int]", dense: int = 0, label: int = 1, batch: int = 4096,
            epochs: int = 1, slot_sizes: Sequence[int] = (), tensors: str = "numpy",
            drop_last: bool = False, shuffle: Optional[int] = None,
            sample_weight: bool = False, key_weights: "bool | Sequence[bool]" = False) -> DataSet:
    """Parquet files with the columns that `_metadata.json` beside them names (docs/formats.md)."""
    return _open("Parquet", source, slots, dense, label, batch, epochs, tensors, drop_last, shuffle, sample_weight, key_weights,
                 slot_sizes=list(slot_sizes))


def tar(source: Source, slots: "int | Sequence[int]", dense: int = 0, label: int = 1, batch: int = 4096,
        epochs: int = 1, label_names: Sequence[str] = (), dense_names: Sequence[str] = (), slot_names: Sequence[str] = (),
        weight_names: Sequence[str] = (),
        wide_keys: bool = True, tensors: str = "numpy", drop_last: bool = False, shuffle: Optional[int] = None,
        sample_weight: bool = False, key_weights: "bool | Sequence[bool]" = False) -> DataSet:
    """Tar shards in WebDataset's layout, such as `cistern data pack` writes (docs/formats.md).

    label_names, dense_names, slot_names, weight_names: the fields of a sample's .json; by default they are label, dense,
    slots and weights.
    wide_keys: keys have 64 bits; else 32.
    """
    return _open("Tar", source, slots, dense, label, batch, epochs, tensors, drop_last, shuffle, sample_weight, key_weights,
                 wide_keys=wide_keys,
                 label_names=list(label_names), dense_names=list(dense_names), slot_names=list(slot_names),
                 weight_names=list(weight_names))


def convert(inputs: Source, out: "str | os.PathLike[str]", **flags: Any) -> Dict[str, Any]:
    """Converts csv, tsv, libsvm or criteo files to Norm files in `out`: `cistern data convert`.

    flags: those of the program, with underscores: label="click", keys="raw", key_bits=32, overwrite=True ...
    `norm(out + "/file_list.txt", ...)` reads the result.
    """
    import json

    return json.loads(_native.convert_run(_paths(inputs), os.fspath(out), flags, None))


def head(table: Source, rows: int = 10, **flags: Any) -> Dict[str, Any]:
    """The first rows of a table (CSV, TSV, Parquet, JSON Lines ..., a folder or several files), as `init` and `train` read them: `cistern data head`.

    flags: delimiter=";", columns=["label", "I1..I13"] of files without a header line, add_column=["brand"]. The result has
    `columns` and `rows`, a list of texts each.
    """
    import json

    return json.loads(_native.head_run(_paths(table), {"rows": integer("rows", rows), **flags}))


def pack(inputs: Source, out: "str | os.PathLike[str]", **flags: Any) -> Dict[str, Any]:
    """Packs text (or a model's data set: model="model.json") into tar shards in `out`: `cistern data pack`.

    inputs: files or folders; [] beside `model`. flags: those of the program, with underscores: format="criteo",
    samples_per_shard=10000, groups=["10:500"], set={...} of `model` ... `tar(out + "/file_list.txt", ...)` reads the result. A repeated call
    continues one that was stopped.
    """
    import json

    if "set" in flags:
        flags["set"] = [f"{name}={json.dumps(value)}" for name, value in flags["set"].items()]
    return json.loads(_native.pack_run(_paths(inputs), os.fspath(out), flags))


def criteo(days: Sequence[Union[str, "os.PathLike[str]"]], out: "str | os.PathLike[str]", **flags: Any) -> Dict[str, Any]:
    """Prepares Criteo's logs as DLRM does, the last day as test data: `cistern data criteo`.

    flags: those of the program, with underscores: format="raw", min_count=6, cross=["C1_C2"], shuffle=False,
    multi_hot_size=3 ... The result has `source`, `eval_source` and `slot_size_array` for a model file. A repeated call
    continues one that was stopped.
    """
    import json

    return json.loads(_native.criteo_run(_paths(days), os.fspath(out), flags))


def _paths(source: Source) -> "List[str]":
    paths = [source] if isinstance(source, (str, os.PathLike)) else list(source)
    return [os.fspath(path) for path in paths]


@contextlib.contextmanager
def _turn(folder: "pathlib.Path") -> Iterator[None]:
    """Only one process at a time is between the two ends of this; all are where the file system has no locks."""
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _read_note(path: "pathlib.Path") -> Dict[str, Any]:
    """What the data set beside it was made of; nothing if the note is missing or damaged."""
    import json

    try:
        note = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return note if isinstance(note, dict) and isinstance(note.get("made"), dict) else {}


def csv(source: Source, folder: "str | os.PathLike[str] | None" = None, batch: int = 4096, epochs: int = 1,
        tensors: str = "numpy", drop_last: bool = False, shuffle: Optional[int] = None, **flags: Any) -> DataSet:
    """Text files (csv; format="tsv", "libsvm" or "criteo"), converted to Norm files in `folder` on first use.

    folder: default: the first file's name with ".norm" added. It is made anew if a file or a flag has changed. flags:
    as of `convert`: label="click", dense=["age"], weight="w" (Batch.weight), key_weights=["tags"] (Batch.key_weights) ...
    """
    import json
    import pathlib

    paths = [source] if isinstance(source, (str, os.PathLike)) else list(source)
    target = pathlib.Path(folder if folder is not None else os.fspath(paths[0]) + ".norm")
    flags = {"key_bits": 64, **flags}
    stats = [os.stat(p) for p in paths]
    made_of = json.dumps([[os.path.abspath(p), s.st_size, s.st_mtime_ns] for p, s in zip(paths, stats)] + [flags])
    note = target / "cistern_ps.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    with _turn(target.parent):  # the processes of one training begin at once: the first one converts
        known = _read_note(note)
        if known.get("made_of") != made_of:
            known = {"made_of": made_of, "made": convert(paths, target, overwrite=True, **flags)}
            fresh = target / f"cistern_ps.json.{os.getpid()}"
            fresh.write_text(json.dumps(known))
            fresh.replace(note)
    made = known["made"]
    return norm(target / "file_list.txt", slots=made["slot_num"], dense=made["dense_dim"], label=made["label_dim"],
                batch=batch, epochs=epochs, wide_keys=int(flags["key_bits"]) == 64, check_sum=True, tensors=tensors,
                drop_last=drop_last, shuffle=shuffle, sample_weight=made.get("sample_weights", False),
                key_weights=made.get("key_weights", False))
