"""DeepFM in PyTorch on Frappe, with its embeddings on a fleet of 2 servers.

    python examples/python/deepfm_frappe.py DATA_DIR [--seeds 3] [--out frappe_torch] [--epochs 100]

DATA_DIR holds train.csv (or train_recon.csv), valid.csv and test.csv, plain or as .xz (examples/frappe/README.md). The
model and its settings are those of examples/frappe/deepfm.json. Run it again after an interruption: it continues.
"""

from __future__ import annotations

import argparse
import lzma
import pathlib
import shutil
from typing import Any

import numpy as np
import torch

import cistern_ps as cs

FIELDS, DIM = 10, 10


class DeepFM(torch.nn.Module):
    """First-order weights, pairwise products and a deep network over the same rows (arXiv:1703.04247)."""

    def __init__(self, table: cs.Table) -> None:
        super().__init__()
        self.rows = cs.torch.EmbeddingBag(table, slots=FIELDS, l2=0.05)  # DIM factors and a weight
        layers: list[torch.nn.Module] = []
        width = FIELDS * DIM
        for _ in range(3):
            layers += [torch.nn.Linear(width, 400), torch.nn.BatchNorm1d(400), torch.nn.ReLU(), torch.nn.Dropout(0.2)]
            width = 400
        self.deep = torch.nn.Sequential(*layers, torch.nn.Linear(width, 1))
        for module in self.deep:
            if isinstance(module, torch.nn.Linear):
                torch.nn.init.xavier_normal_(module.weight)
                torch.nn.init.zeros_(module.bias)

    def forward(self, batch: cs.data.Batch) -> torch.Tensor:
        rows = self.rows(batch.keys, batch.offsets)
        factors, weights = rows[:, :, :DIM], rows[:, :, DIM]
        pairs = 0.5 * (factors.sum(1).square() - factors.square().sum(1)).sum(1)
        logit: torch.Tensor = weights.sum(1) + pairs + self.deep(factors.flatten(1)).squeeze(1)
        return logit


def prepare(source: pathlib.Path, out: pathlib.Path) -> None:
    """Converts the three csv files to Norm files, once."""
    for name, files in (("train", ("train_recon.csv", "train.csv")), ("valid", ("valid.csv",)), ("test", ("test.csv",))):
        if (out / name / "file_list.txt").exists():
            continue
        out.mkdir(parents=True, exist_ok=True)
        plain = out / f"{name}.csv"
        for file in files:
            if (source / file).exists():
                shutil.copyfile(source / file, plain)
            elif (source / f"{file}.xz").exists():
                with lzma.open(source / f"{file}.xz") as packed, open(plain, "wb") as target:
                    shutil.copyfileobj(packed, target)
        cs.data.convert(plain, out / name, label="label", keys="raw", key_bits=32, overwrite=True)


def score(model: DeepFM, data: cs.data.DataSet) -> tuple[float, float]:
    """(AUC, log loss) of a model."""
    model.eval()
    with torch.no_grad():
        parts = [(b.label, torch.sigmoid(model(b.torch()))) for b in data]
    model.train()
    label, probability = (np.concatenate([np.asarray(p[i]) for p in parts]) for i in (0, 1))
    return cs.metrics.auc(label, probability), cs.metrics.logloss(label, probability)


class Best:
    """The best validation AUC, how many epochs ago it was, and its test scores: part of every commit."""

    def __init__(self) -> None:
        self.auc, self.epochs_since, self.test = 0.0, 0, (0.0, 0.0)

    def state_dict(self) -> dict[str, Any]:
        return vars(self)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        vars(self).update(state)


def train(fleet: cs.Fleet, data: pathlib.Path, seed: int, epochs: int, row_rate: float) -> tuple[float, float]:
    """Trains until validation AUC has not risen for two epochs; (AUC, log loss) of the best epoch on test data."""
    table = fleet.table("features", dim=DIM + 1, rule=cs.Adam(lr=row_rate, epsilon=1e-8), init=cs.Normal(1e-4), seed=seed)
    torch.manual_seed(seed)
    model, best = DeepFM(table), Best()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    batches = cs.data.norm(data / "train/file_list.txt", slots=FIELDS, batch=4096, epochs=epochs, shuffle=seed)
    valid, test = (cs.data.norm(data / name / "file_list.txt", slots=FIELDS, batch=8192) for name in ("valid", "test"))
    with cs.torch.Session(model, optimizer, fleet, loader=batches, objects={"best": best}) as session:
        if best.epochs_since >= 2:
            return best.test  # an earlier process has finished this training
        epoch = batches.epoch
        for batch in session.batches():
            if batches.epoch > epoch:  # the last batch of an epoch was the one before
                epoch = batches.epoch
                if end_of_epoch(model, table, optimizer, best, valid, test, f"seed {seed}, epoch {epoch}"):
                    break
            loss = torch.nn.functional.binary_cross_entropy_with_logits(model(batch), batch.label)
            loss.backward()  # type: ignore[no-untyped-call]
            cs.torch.clip_grad_norm_(model, 10)  # of dense weights and rows
            session.step()
        else:
            end_of_epoch(model, table, optimizer, best, valid, test, f"seed {seed}, the last epoch")
    return best.test


def end_of_epoch(model: DeepFM, table: cs.Table, optimizer: torch.optim.Optimizer, best: Best, valid: cs.data.DataSet,
                 test: cs.data.DataSet, name: str) -> bool:
    """Lowers the learning rates or says that it is enough (true) if the epoch did not help."""
    auc, logloss = score(model, valid)
    print(f"{name}: validation AUC {auc:.6f}, log loss {logloss:.6f}", flush=True)
    if auc > best.auc + 1e-6:
        best.auc, best.epochs_since, best.test = auc, 0, score(model, test)
        return False
    best.epochs_since += 1
    table.lr = max(table.lr * 0.1, 1e-6)
    for group in optimizer.param_groups:
        group["lr"] = max(group["lr"] * 0.1, 1e-6)
    return best.epochs_since >= 2


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("frappe_torch"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--row-rate", type=float, default=0.003, help="learning rate of the rows")
    arguments = parser.parse_args()
    prepare(arguments.data, arguments.out / "data")
    scores = []
    for seed in range(1, arguments.seeds + 1):
        with cs.servers.start(2, arguments.out / f"seed-{seed}") as servers, cs.connect(servers.addresses) as fleet:
            scores.append(train(fleet, arguments.out / "data", seed, arguments.epochs, arguments.row_rate))
        print(f"seed {seed}: test AUC {scores[-1][0]:.6f}, log loss {scores[-1][1]:.6f}", flush=True)
    mean = np.mean(scores, axis=0)
    print(f"mean: test AUC {mean[0]:.6f}, log loss {mean[1]:.6f} (BARS, 5 seeds: 0.983947, 0.149462)")


if __name__ == "__main__":
    main()
