"""Speed of cistern_ps, in one run beside C++ and beside PyTorch in memory: pulls, batches, calls, DeepFM.

    python test/benchmark/python_bench.py --bin build/release/bin [--rounds 5] [--rows 1000000,10000000] [--out FILE]

--bin: the folder of `python_peer` and `cistern` (ninja -C build/release python_peer cistern). --file-list, --slots and
--dense: Norm files to read; default: 400,000 generated samples of Criteo's shape. Both sides alternate; each figure is a
median over the rounds. Prints a line a figure with its goal, and JSON into --out. Run it on a quiet machine, with the
Python that has the wheel; it takes about 5 minutes.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile
import time

import numpy as np

import cistern_ps as cs

BATCH, SLOTS, DIM = 4096, 26, 16
results = {}


def report(name, value, unit, goal="", good=None):
    results[name] = {"value": value, "unit": unit, "goal": goal, "good": good}
    verdict = "" if good is None else ("good" if good else "MISSED")
    print(f"{name}: {value:.4g} {unit}   {goal and f'goal {goal}'} {verdict}".rstrip(), flush=True)


def seconds_of(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def median_seconds(rounds, call):
    return statistics.median(seconds_of(call) for _ in range(rounds))


def peer(folder, *words):
    done = subprocess.run([pathlib.Path(folder) / "python_peer", *map(str, words)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def pulls(bin, rounds):
    """Pulls from 2 embedded servers, large and small, by both; and what a call of Python adds."""
    ours, theirs, calls = [], [], {"C++": [], "numpy": [], "torch": []}
    with cs.local(servers=2) as fleet:
        table = fleet.table("t", dim=12, rule=cs.SGD())
        keys, out = np.arange(100_000), np.empty((100_000, 12), np.float32)
        table.push(keys, np.ones((100_000, 12), np.float32))
        fleet.commit()
        ones = {"numpy": (np.arange(1), np.empty((1, 12), np.float32))}
        try:
            import torch

            ones["torch"] = torch.arange(1), torch.empty(1, 12)
        except ImportError as missing:
            print(f"skipped: {missing}")
        for _ in range(rounds):
            peers = peer(bin, "pull", 1)
            theirs.append(peers["keys_per_s"])
            calls["C++"].append(peers["one_key_us"])
            ours.append(len(keys) / median_seconds(4, lambda: table.pull(keys, out=out)))
            for name, (one, row) in ones.items():
                calls[name] += [500 * seconds_of(lambda: [table.pull(one, out=row) for _ in range(2000)]) for _ in range(10)]
    share = 100 * statistics.median(ours) / statistics.median(theirs)
    report("pull of 100,000 keys x 12 floats, C++", 1e-6 * statistics.median(theirs), "M keys/s")
    report("pull of 100,000 keys x 12 floats, Python", 1e-6 * statistics.median(ours), "M keys/s")
    report("pull, Python against C++", share, "%", ">= 90", share >= 90)
    report("pull of 1 key, C++", min(calls["C++"]), "us")
    for name, most in (("numpy", 2), ("torch", 10)):
        if calls[name]:
            added = min(calls[name]) - min(calls["C++"])  # of short times the least is the truest
            report(f"added to a call, {name}", added, "us", f"<= {most}", added <= most)


def batches(bin, rounds, file_list, slots, dense):
    """The batches of a data set by both."""
    data = cs.data.norm(file_list, slots=slots, dense=dense, batch=BATCH)
    samples = sum(b.size for b in data)
    ours, theirs = [], []
    for _ in range(rounds):
        theirs.append(peer(bin, "read", file_list, dense, slots, BATCH, 1)["samples_per_s"])
        ours.append(samples / seconds_of(lambda: [None for _ in data]))
    share = 100 * statistics.median(ours) / statistics.median(theirs)
    report(f"batches of {BATCH}, C++ reader", 1e-6 * statistics.median(theirs), "M samples/s")
    report(f"batches of {BATCH}, cs.data", 1e-6 * statistics.median(ours), "M samples/s")
    report("batches, cs.data against the C++ reader", share, "%", ">= 90", share >= 90)


def deep_fm(rounds, rows, steps):
    """DeepFM with rows in nn.EmbeddingBag(sparse=True) and SparseAdam, and on an embedded fleet."""
    import torch

    rng = np.random.default_rng(1)
    keys = [torch.from_numpy((rng.zipf(1.2, BATCH * SLOTS) * 2654435761 % rows).astype(np.int64)) for _ in range(steps)]
    labels = [torch.from_numpy(rng.integers(0, 2, BATCH)).float() for _ in range(steps)]
    offsets = torch.arange(BATCH * SLOTS + 1)

    def network():
        return torch.nn.Sequential(torch.nn.Linear(SLOTS * DIM, 400), torch.nn.ReLU(), torch.nn.Linear(400, 400),
                                   torch.nn.ReLU(), torch.nn.Linear(400, 1))

    def train(embed, deep, step):
        for k, y in zip(keys, labels):
            e = embed(k)
            pairs = 0.5 * (e.sum(1).square() - e.square().sum(1)).sum(1)
            logit = pairs + deep(e.flatten(1)).squeeze(1)
            torch.nn.functional.binary_cross_entropy_with_logits(logit, y).backward()
            step()

    deep = network()
    bag = torch.nn.EmbeddingBag(rows, DIM, mode="sum", sparse=True, include_last_offset=True)
    dense, sparse = torch.optim.Adam(deep.parameters()), torch.optim.SparseAdam(list(bag.parameters()))

    def memory_step():
        dense.step(), sparse.step(), dense.zero_grad(), sparse.zero_grad()

    in_memory, on_fleet = [], []
    with tempfile.TemporaryDirectory() as folder, cs.local(folder, servers=2) as fleet:
        table = fleet.table("t", dim=DIM, rule=cs.Adam(lr=1e-3), init=cs.Normal(1.0))
        model = torch.nn.ModuleList([cs.torch.EmbeddingBag(table, SLOTS), network()])
        adam = torch.optim.Adam(model.parameters())
        with cs.torch.Session(model, adam, fleet, commit_every=50) as session:
            for i in range(rounds + 1):  # the first round pages memory in
                pair = [seconds_of(lambda: train(lambda k: bag(k, offsets).view(BATCH, SLOTS, DIM), deep, memory_step)),
                        seconds_of(lambda: train(lambda k: model[0](k, offsets), model[1], session.step))]
                if i > 0:
                    in_memory.append(steps * BATCH / pair[0])
                    on_fleet.append(steps * BATCH / pair[1])
    share = 100 * statistics.median(on_fleet) / statistics.median(in_memory)
    least = 90 if rows < 10_000_000 else 100
    report(f"DeepFM of {rows} rows, nn.EmbeddingBag(sparse=True)", statistics.median(in_memory), "samples/s")
    report(f"DeepFM of {rows} rows, embedded fleet", statistics.median(on_fleet), "samples/s")
    report(f"DeepFM of {rows} rows, fleet against memory", share, "%", f">= {least}", share >= least)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default=str(pathlib.Path(__file__).resolve().parents[2] / "build/release/bin"))
    parser.add_argument("--rows", default="1000000,10000000")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=25)
    parser.add_argument("--file-list")
    parser.add_argument("--slots", type=int, default=26)
    parser.add_argument("--dense", type=int, default=13)
    parser.add_argument("--out")
    a = parser.parse_args()
    pulls(a.bin, a.rounds)
    with tempfile.TemporaryDirectory() as folder:
        if not a.file_list:
            subprocess.run([pathlib.Path(a.bin) / "cistern", "data", "generate", "--out", folder + "/data", "--samples", "400000",
                            "--dense", str(a.dense), "--slots", str(a.slots), "--key-bits", "32"],
                           check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            a.file_list = folder + "/data/train/file_list.txt"
        batches(a.bin, a.rounds, a.file_list, a.slots, a.dense)
    try:
        import torch  # noqa: F401
    except ImportError as missing:
        print(f"skipped: DeepFM: {missing}")
    else:
        for rows in a.rows.split(","):
            deep_fm(a.rounds, int(rows), a.steps)
    if a.out:
        pathlib.Path(a.out).write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
