"""News clicks as sequences: DIN's attention over what a visitor has read, beside DeepFM with the same rows pooled.

    python examples/python/sequence_globo.py CLICKS_DIR [--days 3] [--model din|pooled] [--out globo_torch]

The networks of examples/globo/din.json and pooled.json in PyTorch, on the same samples: examples/globo/samples.py makes
them of CLICKS_DIR, and says what they are. Trains all days but the last in their order, with the rows on a fleet of 2
servers in this process, and predicts the last one.
"""

from __future__ import annotations

import argparse
import pathlib
import subprocess
import sys

import numpy as np
import torch

import cistern_ps as cs

DIM, HISTORY = 16, 7
FIELDS = ["user", "previous", "hour", "environment", "device", "os", "country", "region", "referrer"]
SLOTS = len(FIELDS) + 2  # the article in question, which shares rows with those that were read; all but those have one key
SAMPLES = pathlib.Path(__file__).parents[1] / "globo" / "samples.py"


def prepare(clicks: pathlib.Path, out: pathlib.Path, days: int) -> list[pathlib.Path]:
    """Norm files of each day; those of an earlier run stay."""
    if not (out / "csv").exists():
        subprocess.run([sys.executable, SAMPLES, clicks, out / "csv.part", "--history", str(HISTORY)], check=True)
        (out / "csv.part").rename(out / "csv")
    folders = []
    for csv in sorted((out / "csv").glob("day*.csv"))[:days]:
        folders.append(out / "data" / csv.stem)
        if not (folders[-1] / "recipe.json").exists():
            cs.data.convert(csv, folders[-1], label="label", sparse=[*FIELDS, "article", "read"], multi="read",
                            share=["article,read"], overwrite=True)
    return folders


class Network(torch.nn.Module):
    """A deep network over the sample's rows and what has been read: by attention (DIN, arXiv:1706.06978), or pooled."""

    def __init__(self, table: cs.Table, attention: bool) -> None:
        super().__init__()
        self.rows = cs.torch.Embedding(table)
        self.attention = torch.nn.Sequential(torch.nn.Linear(4 * DIM, 32), torch.nn.Sigmoid(), torch.nn.Linear(32, 1)) \
            if attention else None
        self.deep = torch.nn.Sequential(torch.nn.Linear(SLOTS * DIM, 128), torch.nn.ReLU(), torch.nn.Dropout(0.1),
                                        torch.nn.Linear(128, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
        for layer in self.modules():
            if isinstance(layer, torch.nn.Linear):
                torch.nn.init.xavier_normal_(layer.weight)
                torch.nn.init.zeros_(layer.bias)

    def forward(self, batch: cs.data.Batch) -> torch.Tensor:
        rows = self.rows(batch.keys)
        offsets = batch.offsets.long()
        starts = offsets[:-1].view(-1, SLOTS)
        single = rows[starts[:, :-1]]  # [batch, SLOTS - 1, DIM]
        read, mask = cs.torch.pad_rows(rows, starts[:, -1], offsets[SLOTS::SLOTS], HISTORY)
        if self.attention is None:
            interest = read.sum(1, keepdim=True) / mask.sum(1).clamp(min=1)[:, None, None]
            fields = torch.cat([single, interest], 1)
            products = 0.5 * (fields.sum(1).square() - fields.square().sum(1)).sum(1)
        else:
            article = single[:, -1:].expand_as(read)
            weight = self.attention(torch.cat([read, article, read - article, read * article], 2))
            fields = torch.cat([single, (weight * read).sum(1, keepdim=True)], 1)
            products = torch.zeros(())
        logit: torch.Tensor = products + self.deep(fields.flatten(1)).squeeze(1)
        return logit


def score(network: Network, data: cs.data.DataSet) -> float:
    """AUC."""
    network.eval()
    with torch.no_grad():
        parts = [(b.label, network(b.torch()).numpy()) for b in data]
    network.train()
    return cs.metrics.auc(np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts]))


def train(days: list[pathlib.Path], attention: bool, out: pathlib.Path, epochs: int, seed: int) -> float:
    """The AUC of the last day, before it is trained."""
    lists = [day / "file_list.txt" for day in days]
    batches = cs.data.norm(lists[:-1], slots=SLOTS, wide_keys=True, batch=2048, epochs=epochs)
    with cs.local(out, servers=2) as fleet:
        table = fleet.table("rows", dim=DIM, rule=cs.Adam(lr=1e-3), init=cs.Normal(0.01), seed=seed)
        torch.manual_seed(seed)
        network = Network(table, attention)
        optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
        with cs.torch.Session(network, optimizer, fleet, loader=batches) as session:
            for batch in session.batches():
                torch.nn.functional.binary_cross_entropy_with_logits(network(batch), batch.label).backward()  # type: ignore[no-untyped-call]
                session.step()
        return score(network, cs.data.norm(lists[-1], slots=SLOTS, wide_keys=True, batch=8192))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("clicks", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("globo_torch"))
    parser.add_argument("--days", type=int, default=3)
    parser.add_argument("--model", choices=["din", "pooled"], default="din")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    days = prepare(arguments.clicks, arguments.out, arguments.days)
    auc = train(days, arguments.model == "din", arguments.out / arguments.model, arguments.epochs, arguments.seed)
    print(f"{arguments.model}: AUC {auc:.4f}", flush=True)


if __name__ == "__main__":
    main()
