#!/usr/bin/env python3
"""Writes the same samples for Cistern (Norm) and for PyTorch (npz), for scripts/bench.sh.

usage: frappe_shape.py OUT_DIR [--csv train.csv] [--rows 200000]

Without --csv the samples are synthetic, with Frappe's ten fields and vocabulary sizes. Norm files
have check type None, 32-bit keys, ten one-hot slots and no dense features."""
import argparse
import pathlib
import struct

import numpy as np

SIZES = [957, 4082, 7, 7, 2, 3, 2, 9, 80, 233]


def synthetic(rows):
    rng = np.random.default_rng(1)
    starts = np.cumsum([0] + SIZES[:-1])
    columns = [start + np.minimum(rng.zipf(1.3, rows) - 1, size - 1)
               for start, size in zip(starts, SIZES)]
    x = np.stack(columns, 1).astype(np.int64)
    score = np.sin(x * 12.9898).sum(1) * 0.5 - 0.7
    return x, (rng.random(rows) < 1 / (1 + np.exp(-score))).astype(np.float32)


def write_norm(path, x, y):
    fields = x.shape[1]
    record = np.zeros(len(x), dtype=[("label", "<f4"), ("slots", [("nnz", "<i4"), ("key", "<u4")], fields)])
    record["label"] = y
    record["slots"]["nnz"] = 1
    record["slots"]["key"] = x
    header = struct.pack("<8q", 0, len(x), 1, 0, fields, 0, 0, 0)
    path.write_bytes(header + record.tobytes())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--csv")
    parser.add_argument("--rows", type=int, default=200_000)
    args = parser.parse_args()
    if args.csv:
        table = np.loadtxt(args.csv, delimiter=",", skiprows=1, dtype=np.int64)
        x, y = table[:, 1:], table[:, 0].astype(np.float32)
    else:
        x, y = synthetic(args.rows)
    out = pathlib.Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    write_norm(out / "train.norm", x, y)
    np.savez(out / "train.npz", x=x, y=y)


if __name__ == "__main__":
    main()
