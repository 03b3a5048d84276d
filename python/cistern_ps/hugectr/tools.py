"""HugeCTR's generator of synthetic data."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from typing import Any, Sequence

from .. import _native
from ..errors import UsageError
from .words import Check_t, DataReaderType_t, Distribution_t, PowerLaw_t

_ALPHA = {"Long": 0.9, "Medium": 1.1, "Short": 1.3}  # HugeCTR's


class DataGeneratorParams:
    """What to generate. keys of slot i: below slot_size_array[i]."""

    def __init__(self, format: Any, label_dim: int, dense_dim: int, num_slot: int, i64_input_key: bool, source: str,
                 eval_source: str, slot_size_array: Sequence[int], check_type: Any = Check_t.Sum, nnz_array: Sequence[int] = (),
                 dist_type: Any = Distribution_t.PowerLaw, power_law_type: Any = PowerLaw_t.Specific, alpha: float = 1.2,
                 num_files: int = 128, eval_num_files: int = 32, num_samples_per_file: int = 40960,
                 num_samples: int = 5242880, eval_num_samples: int = 1310720, float_label_dense: bool = False,
                 num_threads: int = 1):
        if len(slot_size_array) != num_slot:
            raise UsageError(f"DataGeneratorParams: {len(slot_size_array)} sizes for {num_slot} slots",
                             "give slot_size_array one number for each slot")
        self.format, self.label_dim, self.dense_dim = str(format.value), label_dim, dense_dim
        self.num_slot, self.i64_input_key, self.check = num_slot, i64_input_key, str(check_type.value)
        self.source, self.eval_source = source, eval_source
        self.slot_sizes, self.max_nnz = [int(s) for s in slot_size_array], max([1, *nnz_array])
        self.keys = "uniform" if dist_type is Distribution_t.Uniform else "power"
        self.alpha = _ALPHA.get(power_law_type.name, alpha)
        by_files = self.format != "Raw"
        self.samples = num_files * num_samples_per_file if by_files else num_samples
        self.eval_samples = eval_num_files * num_samples_per_file if by_files else eval_num_samples
        self.samples_per_file, self.float_label_dense = num_samples_per_file, float_label_dense


class DataGenerator:
    """Writes data files, and a file list at `source` and at `eval_source`; Raw: a file each."""

    def __init__(self, data_generator_params: DataGeneratorParams):
        self._params = data_generator_params

    def generate(self) -> None:
        """Writes the data; replaces what is there."""
        p = self._params
        options = {"format": p.format.lower(), "labels": int(p.label_dim), "dense": int(p.dense_dim), "slots": int(p.num_slot),
                   "check": p.check.lower(), "key_bits": 64 if p.i64_input_key else 32, "slot_sizes": list(p.slot_sizes),
                   "keys": p.keys, "alpha": float(p.alpha), "max_nnz": int(p.max_nnz) if p.format == "Norm" else 1,
                   "samples": int(p.samples), "test_samples": int(p.eval_samples),
                   "samples_per_file": int(p.samples_per_file),
                   "float_label_dense": p.format == "Raw" and bool(p.float_label_dense)}
        target = os.path.dirname(os.path.abspath(p.source))
        os.makedirs(target, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target) as folder:
            _native.generate_run(os.path.join(folder, "made"), options)
            for part, place, name in (("train", p.source, "train"), ("test", p.eval_source, "val")):
                self._place(os.path.join(folder, "made", part), place, name)

    def _place(self, made: str, place: str, name: str) -> None:
        """Moves the files of one part beside the file list at `place`."""
        os.makedirs(os.path.dirname(os.path.abspath(place)), exist_ok=True)
        files = sorted(os.listdir(made))
        if self._params.format == "Raw":
            data = [f for f in files if not f.endswith(".txt")]
            os.replace(os.path.join(made, data[0]), place)
            return
        folder = os.path.join(os.path.dirname(place), name)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.move(made, folder)
        listed = os.path.join(folder, "file_list.txt")
        with open(listed, encoding="utf-8") as lines:
            count, *names = lines.read().split()
        os.remove(listed)
        with open(place, "w", encoding="utf-8") as out:
            out.write(f"{count}\n" + "".join(f"{os.path.join(folder, n)}\n" for n in names))
