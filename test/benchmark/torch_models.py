#!/usr/bin/env python3
"""Times training steps of whole models with PyTorch, to compare with test/worker/model/model_benchmark.cc.

usage: torch_models.py [--device cuda] [--batch 65536] [--rows 26000000] [--steps 20] [--seconds 600]
                       [--batches FILE] [NAME ...]

Prints JSON on stdout. The models and the data are those of model_benchmark: Criteo's shape, one
table for all slots, power-law keys, AdaGrad on rows and on dense weights. With --batches the batches
are read from the FILE that model_benchmark wrote, otherwise they are drawn from the same
distribution; they are on the device before the first step. Steps are enqueued as in training,
without waiting for each step to finish. Ways: "fp32" (eager, no TF32), "tf32", "bf16" (autocast),
"compiled" (torch.compile of the dense part for these sizes, bf16), "graphed" (forward and backward
of the dense part as CUDA graphs, bf16; on a GPU only).
The gradient of the table is sparse, and its update is written by hand (sort, sum by row, AdaGrad on
those rows), because PyTorch's own optimizer would touch the whole table. Compiled ways are measured
last, and every measurement stops after --seconds. Needs only Python and torch."""
import argparse
import array
import json
import os
import signal
import statistics
import sys
import time

import torch
from torch import nn

from criteo_shape import DENSE, SHARES, SLOTS

def tower(widths, linear):
    layers = []
    for i, (n_in, n_out) in enumerate(zip(widths, widths[1:])):
        layers.append(nn.Linear(n_in, n_out))
        if not (linear and i + 2 == len(widths)):
            layers.append(nn.ReLU())
    return nn.Sequential(*layers)


class Dlrm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.bottom = tower([DENSE, 512, 256, dim], False)
        pairs = (SLOTS + 1) * SLOTS // 2
        self.top = tower([dim + pairs, 1024, 1024, 512, 256, 1], True)
        self.register_buffer("where", torch.tril_indices(SLOTS + 1, SLOTS + 1, -1))

    def forward(self, emb, dense):
        x = self.bottom(dense)
        all_ = torch.cat([x[:, None], emb.to(x.dtype)], 1)
        products = torch.bmm(all_, all_.transpose(1, 2))
        return self.top(torch.cat([x, products[:, self.where[0], self.where[1]]], 1))[:, 0]


class Dcn(nn.Module):
    def __init__(self, dim):
        super().__init__()
        n = SLOTS * dim + DENSE
        self.w = nn.ParameterList([nn.Parameter(torch.randn(n, 1) * n ** -0.5) for _ in range(3)])
        self.b = nn.ParameterList([nn.Parameter(torch.zeros(n)) for _ in range(3)])
        self.deep = tower([n, 1024, 1024, 1024], False)
        self.last = nn.Linear(n + 1024, 1)

    def forward(self, emb, dense):
        first = torch.cat([emb.flatten(1), dense], 1)
        x = first
        for w, b in zip(self.w, self.b):
            x = first * (x @ w) + b + x
        return self.last(torch.cat([x, self.deep(first)], 1))[:, 0]


class Dcn2(nn.Module):
    def __init__(self, dim):
        super().__init__()
        n = SLOTS * dim + DENSE
        self.cross = nn.ModuleList([nn.Linear(n, n) for _ in range(3)])
        self.deep = tower([n, 1024, 1024, 1024], False)
        self.last = nn.Linear(n + 1024, 1)

    def forward(self, emb, dense):
        first = torch.cat([emb.flatten(1), dense], 1)
        x = first
        for cross in self.cross:
            x = first * cross(x) + x
        return self.last(torch.cat([x, self.deep(first)], 1))[:, 0]


class Deep(nn.Module):
    def __init__(self, dim, widths, fm):
        super().__init__()
        self.fm = fm
        self.deep = tower([SLOTS * dim + DENSE] + widths, True)

    def forward(self, emb, dense):
        logit = self.deep(torch.cat([emb.flatten(1), dense], 1))[:, 0]
        if self.fm:
            logit = logit + 0.5 * (emb.sum(1) ** 2 - (emb ** 2).sum(1)).sum(1)
        return logit


MODELS = {"dlrm16": (16, lambda: Dlrm(16)), "dlrm64": (64, lambda: Dlrm(64)),
          "dlrm128": (128, lambda: Dlrm(128)), "dcn2": (16, lambda: Dcn2(16)),
          "dcn": (16, lambda: Dcn(16)),
          "deepfm": (16, lambda: Deep(16, [400, 400, 400, 1], True)),
          "wdl": (16, lambda: Deep(16, [1024, 1024, 1], False))}


SAMPLE_BYTES = 4 * (1 + DENSE + SLOTS)


def batches_of(args):
    """Returns the batches and a description of their source."""
    whole = args.batch * SAMPLE_BYTES
    size = os.path.getsize(args.batches) if args.batches else 0
    if size == 0 or size % whole != 0:
        return [batch_of(args, seed) for seed in range(1, 5)], "drawn here"
    batches = []
    with open(args.batches, "rb") as file:
        while file.peek(1):  # labels, dense features, rows
            parts = []
            for kind, width in (("f", 1), ("f", DENSE), ("I", SLOTS)):
                values = array.array(kind)
                values.fromfile(file, args.batch * width)
                dtype = torch.float32 if kind == "f" else torch.int32
                parts.append(torch.frombuffer(values, dtype=dtype).reshape(args.batch, width))
            label, dense, rows = parts
            batches.append([x.to(args.device) for x in (rows.long(), dense, label[:, 0])])
    return batches, "those of model_benchmark"


def batch_of(args, seed):
    make = torch.Generator().manual_seed(seed)
    columns, first = [], 0
    for share in SHARES:
        rows = max(1, int(args.rows * share / sum(SHARES)))
        alpha = -0.05
        u = torch.rand(args.batch, generator=make, dtype=torch.float64)
        rank = (1 - u * (1 - rows ** alpha)) ** (1 / alpha) - 1
        columns.append((first + rank.floor().long()).clamp(max=args.rows - 1))
        first += rows
    label = (torch.rand(args.batch, generator=make) < 0.25).float()
    dense = torch.rand(args.batch, DENSE, generator=make)
    return [x.to(args.device) for x in (torch.stack(columns, 1), dense, label)]


class Step:
    """One training step; `way` selects the arithmetic."""

    def __init__(self, args, name, way):
        self.way = way
        self.cuda = args.device == "cuda"
        dim, make = MODELS[name]
        torch.manual_seed(1)
        self.table = torch.empty(args.rows, dim, device=args.device).uniform_(-0.01, 0.01)
        self.state = torch.full((args.rows, dim), 0.1, device=args.device)
        self.net = make().to(args.device)
        self.dense = torch.optim.Adagrad(self.net.parameters(), lr=0.01,
                                         initial_accumulator_value=0.1)
        self.forward = self.net
        if way == "compiled":
            torch.compiler.reset()  # otherwise the previous model's sizes make these dynamic
            self.forward = torch.compile(self.net, dynamic=False)
        torch.backends.cuda.matmul.allow_tf32 = way != "fp32"
        if way == "graphed":
            samples = (torch.zeros(args.batch, SLOTS, dim, device=args.device, requires_grad=True),
                       torch.zeros(args.batch, DENSE, device=args.device))
            with self.autocast():
                self.forward = torch.cuda.make_graphed_callables(self.net, samples)

    def autocast(self):
        # A graph must not cache casts of weights across steps.
        return torch.autocast("cuda" if self.cuda else "cpu", torch.bfloat16,
                              enabled=self.way in ("bf16", "compiled", "graphed"),
                              cache_enabled=self.way != "graphed")

    def __call__(self, rows, dense, label):
        emb = self.table[rows].requires_grad_()
        with self.autocast():
            logit = self.forward(emb, dense)
        loss = nn.functional.binary_cross_entropy_with_logits(logit.float(), label)
        self.dense.zero_grad(set_to_none=True)
        loss.backward()
        self.dense.step()
        with torch.no_grad():
            distinct, where = torch.unique(rows.flatten(), return_inverse=True)
            grad = torch.zeros(len(distinct), self.table.shape[1], device=rows.device)
            grad.index_add_(0, where, emb.grad.flatten(0, 1))
            state = self.state[distinct].addcmul_(grad, grad)
            self.state[distinct] = state
            self.table[distinct] -= 0.01 * grad / (state.sqrt() + 1e-7)
        return loss


def times_of(step, steps, batches):
    """Returns the milliseconds of each step, from the end of the previous one, and the last loss."""
    warm_up = 5
    ends, loss = [], None
    for i in range(warm_up + steps):
        loss = step(*batches[i % len(batches)])
        if step.cuda:
            ends.append(torch.cuda.Event(enable_timing=True))
            ends[-1].record()
        else:
            ends.append(time.perf_counter())
    if step.cuda:
        torch.cuda.synchronize()
        times = [one.elapsed_time(next_) for one, next_ in zip(ends, ends[1:])]
    else:
        times = [(next_ - one) * 1e3 for one, next_ in zip(ends, ends[1:])]
    return times[warm_up - 1:], float(loss.detach())


def measure(args, name, way, batches):
    if args.device == "cuda":
        torch.cuda.empty_cache()
    times, loss = times_of(Step(args, name, way), args.steps, batches)
    ms = statistics.median(times)
    return {"model": name, "way": way, "batch": args.batch, "ms": round(ms, 3),
            "ms_min": round(min(times), 3), "samples_per_s": round(args.batch / ms * 1e3),
            "loss": round(loss, 6)}


class OutOfTime(BaseException):  # not an Exception, so that the measured code does not catch it
    pass


def out_of_time(*_):
    raise OutOfTime()


def measure_within(seconds, *measured):
    signal.signal(signal.SIGALRM, out_of_time)
    try:
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-6))
        return measure(*measured)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="*", metavar="NAME")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--batch", type=int, default=65536)
    parser.add_argument("--rows", type=int, default=26000000)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--batches", metavar="FILE")
    args = parser.parse_args()
    end = time.monotonic() + args.seconds
    batches, source = batches_of(args)
    figures = []
    names = args.models or ["dlrm128", "dlrm64", "dlrm16", "dcn2", "dcn", "deepfm", "wdl"]
    ways = ["fp32", "tf32", "bf16"] + ["graphed"] * (args.device == "cuda")
    for name, way in [(n, w) for n in names for w in ways] + [(n, "compiled") for n in names]:
        try:
            figure = measure_within(end - time.monotonic(), args, name, way, batches)
        except OutOfTime:
            figure = {"model": name, "way": way, "error": f"not within {args.seconds:g} s"}
        except Exception as error:  # report a way that fails and continue with the others
            figure = {"model": name, "way": way, "error": str(error)[:200]}
        figures.append(figure)
        print(json.dumps(figures[-1]), file=sys.stderr, flush=True)
    print(json.dumps({"torch": torch.__version__, "batches": source, "models": figures}, indent=1))


if __name__ == "__main__":
    main()
