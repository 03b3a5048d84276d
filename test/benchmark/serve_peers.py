"""The network of serve_benchmark served by other programs, in one Python process: rows gathered by numpy
from a table in memory, the network run by onnxruntime and by TorchScript, one thread each.

    serve_peers.py --onnx FILE.onnx [--rows N] [--seconds S]

FILE.onnx: serve_benchmark --onnx FILE writes it. Prints one JSON object a line, as serve_benchmark does.
A peer that is not installed is named and skipped.
"""

import argparse
import json
import threading
import time

import numpy as np

SLOTS, DIM, DENSE = 26, 16, 13


class Onnx:
    name = "onnxruntime"

    def __init__(self, path, _):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(path, options,
                                                    providers=["CPUExecutionProvider"])
        self.version = onnxruntime.__version__

    def predict(self, rows, dense):
        return self.session.run(["probability"], {"rows": rows, "dense": dense})[0]


class Torch:
    """DeepFM with three layers of 400, as TorchScript. Its weights are its own."""

    name = "torchscript"

    def __init__(self, _, model):
        import torch
        if model != "deepfm":
            raise ImportError("only deepfm")
        torch.set_num_threads(1)
        self.torch, self.version = torch, torch.__version__

        class DeepFm(torch.nn.Module):
            def __init__(self):
                super().__init__()
                sizes = [SLOTS * DIM + DENSE, 400, 400, 400]
                layers = []
                for inputs, outputs in zip(sizes, sizes[1:]):
                    layers += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
                self.deep = torch.nn.Sequential(*layers, torch.nn.Linear(400, 1))

            def forward(self, rows, dense):
                flat = rows.reshape(rows.shape[0], -1)
                deep = self.deep(torch.cat([flat, dense], 1))
                total = rows.sum(1)
                fm = 0.5 * (total * total - (rows * rows).sum(1)).sum(1, keepdim=True)
                return torch.sigmoid(deep + fm)

        example = (torch.zeros(2, SLOTS, DIM), torch.zeros(2, DENSE))
        self.script = torch.jit.freeze(torch.jit.trace(DeepFm().eval(), example))

    def predict(self, rows, dense):
        with self.torch.no_grad():
            return self.script(self.torch.from_numpy(rows), self.torch.from_numpy(dense)).numpy()


def at(delays, share):
    return round(sorted(delays)[min(len(delays) - 1, int(share * len(delays)))] * 1e3, 3)


class Requests:
    def __init__(self, samples, rows, seed):
        draw = np.random.default_rng(seed)
        shape = (256, samples, SLOTS)
        self.keys = (rows * draw.random(shape) ** 3).astype(np.int64) * 2654435761 % rows
        self.dense = draw.random((256, samples, DENSE), dtype=np.float32)

    def run(self, peer, table, i):
        return peer.predict(table[self.keys[i % 256]], self.dense[i % 256])


def closed(peer, table, requests, samples, seconds):
    delays, start = [], time.perf_counter()
    while time.perf_counter() - start < seconds:
        begun = time.perf_counter()
        requests.run(peer, table, len(delays))
        delays.append(time.perf_counter() - begun)
    rate = len(delays) / (time.perf_counter() - start)
    print(json.dumps({"what": "closed", "peer": peer.name, "version": peer.version,
                      "samples": samples, "samples_per_s": round(rate * samples),
                      "p50_ms": at(delays, 0.5), "p99_ms": at(delays, 0.99)}), flush=True)
    return rate


def opened(peer, table, requests, samples, rate, seconds, threads=2):
    total = int(rate * seconds)
    delays, lock, state = [0.0] * total, threading.Lock(), {"next": 0}
    start = time.perf_counter() + 0.01

    def client():
        while True:
            with lock:
                i = state["next"]
                state["next"] += 1
            if i >= total:
                return
            due = start + i / rate
            while time.perf_counter() < due:
                time.sleep(max(0, due - time.perf_counter() - 0.0001))
            requests.run(peer, table, i)
            delays[i] = time.perf_counter() - due

    clients = [threading.Thread(target=client) for _ in range(threads)]
    for thread in clients:
        thread.start()
    for thread in clients:
        thread.join()
    print(json.dumps({"what": "open", "peer": peer.name, "samples": samples, "rate": int(rate),
                      "p50_ms": at(delays, 0.5), "p99_ms": at(delays, 0.99)}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--onnx", required=True)
    parser.add_argument("--model", default="deepfm")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--seconds", type=float, default=4)
    flags = parser.parse_args()
    table = np.random.default_rng(1).random((flags.rows, DIM), dtype=np.float32) * 0.1 - 0.05
    for make in (Onnx, Torch):
        try:
            peer = make(flags.onnx, flags.model)
        except ImportError as missing:
            print(json.dumps({"what": "skipped", "peer": make.name, "why": str(missing)}))
            continue
        for samples in (1, 100, 256):
            requests = Requests(samples, flags.rows, samples)
            rate = closed(peer, table, requests, samples, flags.seconds / 2)
            opened(peer, table, requests, samples, 1000 if samples == 1 else rate * 0.6,
                   flags.seconds)


if __name__ == "__main__":
    main()
