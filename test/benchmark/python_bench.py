"""Speed of cistern_ps: pulls, batches, calls, and DeepFM in PyTorch beside nn.EmbeddingBag in memory.

    python test/benchmark/python_bench.py [--rows 1000000] [--rounds 5] [--file-list LIST --slots N]

Prints one line a measurement: the median over the rounds. Run it on a quiet machine, with the Python that has the wheel.
"""

import argparse
import statistics
import tempfile
import time

import numpy as np

import cistern_ps as cs

BATCH, SLOTS, DIM = 4096, 26, 16


def median_seconds(rounds, call):
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def pulls(rounds):
    with cs.local(servers=2) as fleet:
        table = fleet.table("t", dim=12, rule=cs.SGD())
        keys, out = np.arange(100_000), np.empty((100_000, 12), np.float32)
        table.push(keys, table.pull(keys))
        fleet.commit()
        seconds = median_seconds(rounds * 4, lambda: table.pull(keys, out=out))
        print(f"pull of 100,000 keys x 12 floats: {1e-6 * len(keys) / seconds:.2f} M keys/s")
        one, row = np.arange(1), np.empty((1, 12), np.float32)
        seconds = median_seconds(rounds, lambda: [table.pull(one, out=row) for _ in range(10_000)])
        print(f"pull of 1 key: {1e6 * seconds / 10_000:.2f} us, of which most is the pull")
        rows = table.rows
        seconds = median_seconds(rounds, lambda: [rows.size for _ in range(10_000)])
        print(f"a call that does nothing but release the GIL: {1e6 * seconds / 10_000:.2f} us")


def batches(rounds, file_list, slots):
    data = cs.data.norm(file_list, slots=slots, batch=BATCH)
    samples = sum(b.size for b in data)
    seconds = median_seconds(rounds, lambda: [None for _ in data])
    print(f"batches of {BATCH}: {1e-6 * samples / seconds:.2f} M samples/s")


def deep_fm(rounds, rows, steps=50):
    import torch

    rng = np.random.default_rng(1)
    keys = [torch.from_numpy((rng.zipf(1.2, BATCH * SLOTS) * 2654435761 % rows).astype(np.int64)) for _ in range(steps)]
    labels = [torch.from_numpy(rng.integers(0, 2, BATCH)).float() for _ in range(steps)]
    offsets = torch.arange(BATCH * SLOTS + 1)

    def network():
        return torch.nn.Sequential(torch.nn.Linear(SLOTS * DIM, 400), torch.nn.ReLU(), torch.nn.Linear(400, 400),
                                   torch.nn.ReLU(), torch.nn.Linear(400, 1))

    def logit(deep, e):
        pairs = 0.5 * (e.sum(1).square() - e.square().sum(1)).sum(1)
        return pairs + deep(e.flatten(1)).squeeze(1)

    def train(embed, deep, step):
        for k, y in zip(keys, labels):
            torch.nn.functional.binary_cross_entropy_with_logits(logit(deep, embed(k)), y).backward()
            step()

    deep = network()
    bag = torch.nn.EmbeddingBag(rows, DIM, mode="sum", sparse=True, include_last_offset=True)
    dense, sparse = torch.optim.Adam(deep.parameters()), torch.optim.SparseAdam(list(bag.parameters()))

    def memory_step():
        dense.step(), sparse.step(), dense.zero_grad(), sparse.zero_grad()

    seconds = median_seconds(rounds, lambda: train(lambda k: bag(k, offsets).view(BATCH, SLOTS, DIM), deep, memory_step))
    in_memory = steps * BATCH / seconds
    print(f"DeepFM, nn.EmbeddingBag(sparse=True) of {rows} rows: {in_memory:.0f} samples/s")
    del bag, sparse
    with tempfile.TemporaryDirectory() as folder, cs.local(folder, servers=2) as fleet:
        table = fleet.table("t", dim=DIM, rule=cs.Adam(lr=1e-3), init=cs.Normal(1.0))
        model = torch.nn.ModuleList([cs.torch.EmbeddingBag(table, SLOTS), network()])
        adam = torch.optim.Adam(model.parameters())
        with cs.torch.Session(model, adam, fleet, commit_every=steps) as session:
            seconds = median_seconds(rounds, lambda: train(lambda k: model[0](k, offsets), model[1], session.step))
    ours = steps * BATCH / seconds
    print(f"DeepFM, rows on an embedded fleet, a commit every {steps} steps: {ours:.0f} samples/s "
          f"({100 * ours / in_memory:.0f} %)")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--file-list")
    parser.add_argument("--slots", type=int, default=26)
    arguments = parser.parse_args()
    pulls(arguments.rounds)
    if arguments.file_list:
        batches(arguments.rounds, arguments.file_list, arguments.slots)
    deep_fm(arguments.rounds, arguments.rows)


if __name__ == "__main__":
    main()
