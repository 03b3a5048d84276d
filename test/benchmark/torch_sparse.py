#!/usr/bin/env python3
"""Trains test/benchmark/models/sparse.json with PyTorch and prints samples/s, for scripts/bench_passes.sh.

usage: torch_sparse.py TRAIN.bin --samples N --rows N [--compile] [--batch 4096] [--steps 100] [--threads 2]

One nn.Embedding with sparse gradients and SparseAdam, dense Adam for the two layers; all data and all
rows are in memory before the clock starts. TRAIN.bin: Raw, one label and 26 keys, int32, the keys of
slot s counted from 0. --rows: rows of each slot. --compile: the dense layers by torch.compile."""
import argparse
import json
import time

import numpy as np
import torch
from torch import nn

SLOTS, DIM = 26, 16


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("--samples", type=int, required=True)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    table = np.fromfile(args.data, dtype=np.int32, count=args.samples * (1 + SLOTS))
    table = torch.from_numpy(table.reshape(-1, 1 + SLOTS))
    y = table[:, 0].float()
    x = table[:, 1:].long()
    if int(x.max()) < args.rows:  # keys count from 0 in each slot
        x = x + torch.arange(SLOTS) * args.rows
    embedding = nn.Embedding(int(x.max()) + 1, DIM, sparse=True)
    nn.init.uniform_(embedding.weight, -0.05, 0.05)
    dense = nn.Sequential(nn.Linear(SLOTS * DIM, 64), nn.ReLU(), nn.Linear(64, 1))
    if args.compile:
        dense = torch.compile(dense)
    of_rows = torch.optim.SparseAdam(embedding.parameters(), lr=1e-3)
    fused = {"fused": True} if hasattr(torch, "compile") else {}  # from 2.0 on
    of_dense = torch.optim.Adam(dense.parameters(), lr=1e-3, **fused)
    loss_of = nn.BCEWithLogitsLoss()
    batches = len(x) // args.batch

    def step(i):
        begin = (i % batches) * args.batch
        logit = dense(embedding(x[begin:begin + args.batch]).flatten(1))[:, 0]
        loss = loss_of(logit, y[begin:begin + args.batch])
        of_rows.zero_grad()
        of_dense.zero_grad()
        loss.backward()
        of_rows.step()
        of_dense.step()
        return loss

    for i in range(10):
        step(i)
    start = time.perf_counter()
    for i in range(10, 10 + args.steps):
        loss = step(i)
    seconds = time.perf_counter() - start
    print(json.dumps({"torch": torch.__version__, "compiled": args.compile,
                      "samples_per_s": args.steps * args.batch / seconds, "loss": loss.item()}))


if __name__ == "__main__":
    main()
