"""News clicks as sequences: DIN's attention over what a visitor has read, beside DeepFM with the same rows pooled.

    python examples/python/sequence_globo.py CLICKS_DIR [--days 4] [--share 0.1] [--out globo_torch]

Trains over the days, with the rows on a fleet of 2 servers in this process, and predicts a tenth of the clicks,
which is held out. CLICKS_DIR is that of examples/globo; --share takes that part of the visitors. Every click is a
sample with label 1, and up to 4 articles of the hour before that the visitor has not read are samples with label 0. A
sample knows the visitor's last 20 articles.
"""

from __future__ import annotations

import argparse
import collections
import csv
import lzma
import pathlib
import random
import re
from typing import Iterator

import numpy as np
import torch

import cistern_ps as cs

DIM, HISTORY, NEGATIVES = 16, 20, 4
FIELDS = ["user", "article", "hour", "click_environment", "click_deviceGroup", "click_os", "click_country",
          "click_region", "click_referrer_type", "history"]
SLOTS = len(FIELDS)  # the history is the last one; all others have one key


def key(field: int, value: int) -> int:
    """A field's ids are apart from those of other fields; the history shares the articles' rows."""
    return (field + 1) << 40 | value


class Samples:
    """The samples of one day after the other; remembers what visitors have read and what the last hour showed."""

    def __init__(self, share: float) -> None:
        self.share = share
        self.read: dict[int, collections.deque[int]] = collections.defaultdict(lambda: collections.deque(maxlen=HISTORY))
        self.hour, self.now, self.before = -1, dict[int, None](), list[int]()

    def of(self, path: pathlib.Path, draw: random.Random) -> Iterator[tuple[bool, str]]:
        """Lines of a csv file, and whether their click is held out."""
        with (lzma.open(path, "rt") if path.suffix == ".xz" else open(path)) as file:
            for click in csv.DictReader(file):
                user, article, hour = int(click["user_id"]), int(click["click_article_id"]), int(click["hour"])
                if hour != self.hour:
                    self.hour, self.now, self.before = hour, {}, list(self.now) or self.before
                self.now[article] = None
                if user % 1000 >= 1000 * self.share:
                    continue
                held_out = draw.random() < 0.1
                others = draw.sample(self.before, min(NEGATIVES, len(self.before)))
                shown = [(1, article)] + [(0, a) for a in others if a != article and a not in self.read[user]]
                for label, candidate in shown if self.before else []:
                    values = [user, candidate, hour % 24] + [int(click[f]) for f in FIELDS[3:-1]]
                    keys = [str(key(i, v)) for i, v in enumerate(values)]
                    yield held_out, ",".join([str(label), *keys, " ".join(str(key(1, a)) for a in self.read[user])])
                self.read[user].append(article)


def prepare(clicks: pathlib.Path, out: pathlib.Path, days: int, share: float) -> None:
    """Norm files in out/train and out/test."""
    files = sorted(p for p in clicks.iterdir() if re.fullmatch(r"clicks_day\d+\.csv(\.xz)?", p.name))[:days]
    samples = Samples(share)
    out.mkdir(parents=True, exist_ok=True)
    with open(out / "train.csv", "w", encoding="utf-8") as train, open(out / "test.csv", "w", encoding="utf-8") as test:
        for target in (train, test):
            target.write(",".join(["label", *FIELDS]) + "\n")
        for i, file in enumerate(files):
            for held_out, line in samples.of(file, random.Random(f"1 {i}")):
                (test if held_out else train).write(line + "\n")
    for name in ("train", "test"):
        cs.data.convert(out / f"{name}.csv", out / name, label="label", keys="raw", key_bits=64, sparse=FIELDS,
                        multi="history", separator=" ", overwrite=True)


class Sequence(torch.nn.Module):
    """A deep network over the sample's rows and what has been read: by attention (DIN, arXiv:1706.06978), or pooled."""

    def __init__(self, table: cs.Table, attention: bool) -> None:
        super().__init__()
        self.rows = cs.torch.Embedding(table)
        self.attention = torch.nn.Sequential(torch.nn.Linear(4 * DIM, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1)) \
            if attention else None
        self.deep = torch.nn.Sequential(torch.nn.Linear(SLOTS * DIM, 128), torch.nn.ReLU(), torch.nn.Linear(128, 64),
                                        torch.nn.ReLU(), torch.nn.Linear(64, 1))

    def forward(self, batch: cs.data.Batch) -> torch.Tensor:
        rows = self.rows(batch.keys)
        offsets = batch.offsets.long()
        starts = offsets[:-1].view(-1, SLOTS)
        single = rows[starts[:, :-1]]  # [batch, SLOTS - 1, DIM]
        history, mask = cs.torch.pad_rows(rows, starts[:, -1], offsets[SLOTS::SLOTS], HISTORY)
        weight = mask.float()
        if self.attention is not None:
            candidate = single[:, 1:2].expand_as(history)
            pairs = torch.cat([history, candidate, history - candidate, history * candidate], 2)
            weight = weight * self.attention(pairs).squeeze(2)
        interest = (history * weight[:, :, None]).sum(1, keepdim=True)
        fields = torch.cat([single, interest], 1)
        products = 0.5 * (fields.sum(1).square() - fields.square().sum(1)).sum(1)
        logit: torch.Tensor = products + self.deep(fields.flatten(1)).squeeze(1)
        return logit


def score(model: Sequence, data: cs.data.DataSet) -> float:
    """AUC."""
    model.eval()
    with torch.no_grad():
        parts = [(b.label, model(b.torch()).numpy()) for b in data]
    model.train()
    return cs.metrics.auc(np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts]))


def train(data: pathlib.Path, attention: bool, out: pathlib.Path, epochs: int) -> float:
    """The AUC of a model on the clicks that were held out."""
    batches = cs.data.norm(data / "train/file_list.txt", slots=SLOTS, wide_keys=True, batch=2048, shuffle=1,
                           epochs=epochs)
    with cs.local(out, servers=2) as fleet:
        table = fleet.table("rows", dim=DIM, rule=cs.Adam(lr=1e-3), init=cs.Normal(0.01))
        torch.manual_seed(1)
        model = Sequence(table, attention)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        with cs.torch.Session(model, optimizer, fleet, loader=batches) as session:
            for batch in session.batches():
                torch.nn.functional.binary_cross_entropy_with_logits(model(batch), batch.label).backward()  # type: ignore[no-untyped-call]
                session.step()
        return score(model, cs.data.norm(data / "test/file_list.txt", slots=SLOTS, wide_keys=True, batch=8192))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("clicks", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("globo_torch"))
    parser.add_argument("--days", type=int, default=4)
    parser.add_argument("--share", type=float, default=0.1)
    parser.add_argument("--epochs", type=int, default=1)
    arguments = parser.parse_args()
    prepare(arguments.clicks, arguments.out / "data", arguments.days, arguments.share)
    for name in ("pooled", "din"):
        auc = train(arguments.out / "data", name == "din", arguments.out / name, arguments.epochs)
        print(f"{name}: AUC {auc:.4f}", flush=True)


if __name__ == "__main__":
    main()
