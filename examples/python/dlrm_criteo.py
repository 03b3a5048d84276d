"""DLRM in PyTorch on Criteo's click log, with its embeddings on a fleet of 2 servers.

    python examples/python/dlrm_criteo.py DATA_DIR [--seeds 3] [--out criteo_torch] [--epochs 2]

DATA_DIR holds criteo_first80k.csv, plain or as .xz (examples/criteo/README.md). The first 60,000 rows are trained, in
order of time, and the 20,000 that follow are predicted. The bottom network reads the 13 numbers; its output and the
rows of the 26 categorical fields are multiplied with each other, and the top network reads the products
(arXiv:1906.00091).
"""

from __future__ import annotations

import argparse
import lzma
import pathlib
import shutil

import numpy as np
import torch

import cistern_ps as cs

NUMBERS, FIELDS, DIM = 13, 26, 16
TRAINED = 60_000  # rows
RATE, L2, DROPOUT, BATCH = 1e-3, 1e-3, 0.2, 128  # chosen on rows 50,000 to 59,999, trained on those before them


def layers(widths: list[int], dropout: float = 0.0) -> list[torch.nn.Module]:
    """Linear layers, each with ReLU and dropout."""
    modules: list[torch.nn.Module] = []
    for width, above in zip(widths, widths[1:]):
        modules += [torch.nn.Linear(width, above), torch.nn.ReLU(), torch.nn.Dropout(dropout)]
    return modules


class DLRM(torch.nn.Module):
    """Products of all pairs among the fields' rows and the output of the bottom network."""

    pairs: torch.Tensor

    def __init__(self, table: cs.Table) -> None:
        super().__init__()
        self.rows = cs.torch.EmbeddingBag(table, slots=FIELDS, l2=L2)
        self.bottom = torch.nn.Sequential(*layers([NUMBERS, 64, DIM]))
        pairs = torch.tril_indices(FIELDS + 1, FIELDS + 1, -1)
        self.register_buffer("pairs", pairs)
        self.top = torch.nn.Sequential(*layers([DIM + pairs.shape[1], 128, 64], DROPOUT), torch.nn.Linear(64, 1))

    def forward(self, batch: cs.data.Batch) -> torch.Tensor:
        numbers = self.bottom(batch.dense)
        vectors = torch.cat([numbers[:, None], self.rows(batch.keys, batch.offsets)], 1)  # [batch, FIELDS + 1, DIM]
        products = torch.bmm(vectors, vectors.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        logit: torch.Tensor = self.top(torch.cat([numbers, products], 1)).squeeze(1)
        return logit


def prepare(source: pathlib.Path, out: pathlib.Path, trained: int = TRAINED) -> None:
    """Norm files in out/train and out/test. The test data is encoded by the recipe of the training data."""
    out.mkdir(parents=True, exist_ok=True)
    plain = out / "criteo.csv"
    if (source / "criteo_first80k.csv").exists():
        shutil.copyfile(source / "criteo_first80k.csv", plain)
    else:
        with lzma.open(source / "criteo_first80k.csv.xz") as packed, open(plain, "wb") as target:
            shutil.copyfileobj(packed, target)
    cs.data.convert(plain, out / "train", label="label", ignore="id", dense="I1..I13", dense_transform="log1p",
                    sparse="C1..C26", missing="key", rare="key", min_count=5, keys="hash", key_bits=64,
                    max_rows=trained, overwrite=True)
    cs.data.convert(plain, out / "test", recipe=out / "train", skip_rows=trained, overwrite=True)


def open_data(path: pathlib.Path, batch: int, epochs: int = 1, shuffle: int | None = None) -> cs.data.DataSet:
    return cs.data.norm(path / "file_list.txt", slots=FIELDS, dense=NUMBERS, wide_keys=True, batch=batch, epochs=epochs,
                        shuffle=shuffle)


def score(model: DLRM, data: cs.data.DataSet) -> tuple[float, float]:
    """(AUC, log loss)."""
    model.eval()
    with torch.no_grad():
        parts = [(b.label, torch.sigmoid(model(b.torch())).numpy()) for b in data]
    model.train()
    label, probability = (np.concatenate([p[i] for p in parts]) for i in (0, 1))
    return cs.metrics.auc(label, probability), cs.metrics.logloss(label, probability)


def train(fleet: cs.Fleet, data: pathlib.Path, seed: int, epochs: int) -> tuple[float, float]:
    """(AUC, log loss) on the test data. The learning rates fall to zero in a line."""
    table = fleet.table("features", dim=DIM, rule=cs.Adam(lr=RATE), init=cs.Normal(0.01), seed=seed)
    torch.manual_seed(seed)
    model = DLRM(table)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    batches = open_data(data / "train", BATCH, epochs, shuffle=seed)
    steps = sum(1 for _ in open_data(data / "train", BATCH)) * epochs
    with cs.torch.Session(model, optimizer, fleet, loader=batches) as session:
        for batch in session.batches():
            loss = torch.nn.functional.binary_cross_entropy_with_logits(model(batch), batch.label)
            loss.backward()  # type: ignore[no-untyped-call]
            session.step()
            table.lr = optimizer.param_groups[0]["lr"] = RATE * max(0.0, 1 - session.steps / steps)
    return score(model, open_data(data / "test", 8192))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("criteo_torch"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--trained", type=int, default=TRAINED, help="rows to train; those that follow are the test")
    arguments = parser.parse_args()
    prepare(arguments.data, arguments.out / "data", arguments.trained)
    scores = []
    for seed in range(1, arguments.seeds + 1):
        with cs.local(arguments.out / f"seed-{seed}", servers=2) as fleet:
            scores.append(train(fleet, arguments.out / "data", seed, arguments.epochs))
        print(f"seed {seed}: test AUC {scores[-1][0]:.5f}, log loss {scores[-1][1]:.5f}", flush=True)
    mean = np.mean(scores, axis=0)
    print(f"mean: test AUC {mean[0]:.5f}, log loss {mean[1]:.5f} (logistic regression: 0.768, 0.446)")


if __name__ == "__main__":
    main()
