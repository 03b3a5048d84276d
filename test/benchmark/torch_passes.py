#!/usr/bin/env python3
"""Trains a model of test/benchmark/models with PyTorch and prints samples/s, for scripts/bench_passes.sh.

usage: torch_passes.py TRAIN.bin --samples N --rows N [--model sparse] [--compile] [--batch 4096] [--steps 100]
                       [--threads 2]

One nn.Embedding with sparse gradients and SparseAdam, dense Adam for the layers; all data and all
rows are in memory before the clock starts. TRAIN.bin: Raw, one label, the dense features of the
model (float32; without any, the label is an integer) and 26 keys, int32, the keys of slot s counted
from 0. --rows: rows of each slot. --compile: the dense layers by torch.compile."""
import argparse
import json
import time

import numpy as np
import torch
from torch import nn

from torch_models import DENSE, SLOTS, Dcn, Dlrm

DIM = 16


class Sparse(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(SLOTS * DIM, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, emb, dense):
        return self.layers(emb.flatten(1))[:, 0]


# The dense features of a model, and its layers.
MODELS = {"sparse": (0, Sparse), "dlrm": (DENSE, lambda: Dlrm(DIM)), "dcn": (DENSE, lambda: Dcn(DIM))}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("--samples", type=int, required=True)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--model", choices=MODELS, default="sparse")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    dense_num, layers = MODELS[args.model]
    width = 1 + dense_num + SLOTS
    table = np.fromfile(args.data, dtype=np.int32, count=args.samples * width).reshape(-1, width)
    floats = table.view(np.float32) if dense_num else table.astype(np.float32)
    y = torch.from_numpy(floats[:, 0].copy())
    d = torch.from_numpy(floats[:, 1:1 + dense_num].copy())
    x = torch.from_numpy(table[:, 1 + dense_num:].astype(np.int64))
    if int(x.max()) < args.rows:  # keys count from 0 in each slot
        x = x + torch.arange(SLOTS) * args.rows
    embedding = nn.Embedding(int(x.max()) + 1, DIM, sparse=True)
    nn.init.uniform_(embedding.weight, -0.05, 0.05)
    dense = layers()
    if args.compile:
        dense = torch.compile(dense)
    of_rows = torch.optim.SparseAdam(embedding.parameters(), lr=1e-3)
    fused = {"fused": True} if hasattr(torch, "compile") else {}  # from 2.0 on
    of_dense = torch.optim.Adam(dense.parameters(), lr=1e-3, **fused)
    loss_of = nn.BCEWithLogitsLoss()
    batches = len(x) // args.batch

    def step(i):
        part = slice(i % batches * args.batch, (i % batches + 1) * args.batch)
        loss = loss_of(dense(embedding(x[part]), d[part]), y[part])
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
