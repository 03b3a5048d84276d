#!/usr/bin/env python3
"""Trains the models of examples/frappe with PyTorch and prints samples/s, for scripts/bench.sh.

usage: torch_train.py DATA.npz --model dnn|deepfm [--batch 4096] [--iterations 150] [--threads 2]

The training loop is simple and fast: tensors in memory, one embedding table, fused Adam if there is
one, gradient clipping at 10, and no data loader. DATA.npz: x int64 [n, fields], y float32 [n]."""
import argparse
import json
import time

import numpy as np
import torch
from torch import nn


class Net(nn.Module):
    """The DNN of the published Frappe table; DeepFM adds a linear and a factorization part."""

    def __init__(self, vocabulary, fields, model, dim=10, hidden=400, dropout=0.2):
        super().__init__()
        self.deepfm = model == "deepfm"
        self.embedding = nn.Embedding(vocabulary, dim)
        nn.init.normal_(self.embedding.weight, std=1e-4)
        if self.deepfm:
            self.linear = nn.Embedding(vocabulary, 1)
            nn.init.normal_(self.linear.weight, std=1e-4)
        layers, width = [], fields * dim
        for _ in range(3):
            layers += [nn.Linear(width, hidden), nn.BatchNorm1d(hidden), nn.ReLU(),
                       nn.Dropout(dropout)]
            width = hidden
        self.mlp = nn.Sequential(*layers, nn.Linear(width, 1))

    def forward(self, x):
        e = self.embedding(x)
        logit = self.mlp(e.flatten(1))[:, 0]
        if self.deepfm:
            fm = 0.5 * (e.sum(1) ** 2 - (e ** 2).sum(1)).sum(1)
            logit = logit + fm + self.linear(x).sum((1, 2))
        return logit


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("--model", choices=["dnn", "deepfm"], default="dnn")
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--iterations", type=int, default=150)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    data = np.load(args.data)
    x, y = torch.from_numpy(data["x"]), torch.from_numpy(data["y"])
    net = Net(int(x.max()) + 1, x.shape[1], args.model)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)
    loss_of = nn.BCEWithLogitsLoss()
    batches = len(x) // args.batch

    def step(i):
        begin = (i % batches) * args.batch
        loss = loss_of(net(x[begin:begin + args.batch]), y[begin:begin + args.batch])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 10.0)
        optimizer.step()
        return loss

    net.train()
    for i in range(20):
        step(i)
    start = time.perf_counter()
    for i in range(args.iterations):
        loss = step(i)
    seconds = time.perf_counter() - start
    print(json.dumps({"model": args.model, "torch": torch.__version__, "threads": args.threads,
                      "samples_per_s": args.iterations * args.batch / seconds,
                      "loss": loss.item()}))


if __name__ == "__main__":
    main()
