"""Embedding modules backed by a fleet.

A forward pass pulls the distinct rows of its keys as a leaf of the graph; the backward pass hands their gradients,
summed in a fixed order, to the table's rows in this process, where `RowOptimizer` (or `Session`) applies the table's
rule. Nothing of it is a parameter of the model: torch.optim, clipping and DDP see dense weights only.
"""

from __future__ import annotations

import itertools
from typing import Any, Dict, List, Optional, Tuple, Union

import numpy as np
import numpy.typing as npt
import torch

from .. import _native
from ..arguments import instance, integer
from ..errors import UsageError
from ..table import Table

Pending = List[Tuple[int, "npt.NDArray[Any]", "npt.NDArray[Any]"]]

_calls = itertools.count()  # numbers forward passes: gradients are added in their order


class _Pool(torch.autograd.Function):
    """Sums rows by output; its gradient goes to `sink` instead of to `rows`."""

    @staticmethod
    def forward(ctx: Any, rows: torch.Tensor, places: Any, offsets: Any, mean: bool, sink: Any) -> torch.Tensor:
        ctx.args = (places, offsets, mean, rows.shape[0], sink)
        return torch.from_numpy(_native.pool(rows.detach().numpy(), places, offsets, mean))

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        places, offsets, mean, row_num, sink = ctx.args
        out_grads = grad.detach().to("cpu", torch.float32).contiguous().numpy()
        sink(_native.pool_backward(out_grads, places, offsets, mean, row_num))
        return None, None, None, None, None


def _host(tensor: Any, kind: Any) -> "npt.NDArray[Any]":
    """Keys or offsets as an array on the host; keys may live on a GPU."""
    if isinstance(tensor, torch.Tensor):
        tensor = tensor.detach().cpu().contiguous().numpy()
    elif kind is np.int32:
        instance("offsets", tensor, np.ndarray, "int32 or int64, torch or numpy")
    if kind is np.int32 and tensor.dtype == np.int64:  # torch's own offsets
        if tensor.size and (int(tensor.max()) >= 2**31 or int(tensor.min()) < 0):
            raise UsageError(f"offsets: from {int(tensor.min())} to {int(tensor.max())}: expected 0 to 2**31 - 1")
        return tensor.astype(np.int32)
    return tensor


class _FleetModule(torch.nn.Module):
    """What both embeddings share: a table, and how its rows enter a graph."""

    def __init__(self, table: Union[Table, Dict[str, Table]], l2: float, absent: str):
        super().__init__()
        if isinstance(table, dict):
            if len(table) != 1:
                raise UsageError(f"{len(table)} tables: expected one; make a module for each")
            (table,) = table.values()
        if absent not in ("first", "zero"):
            raise UsageError(f'absent={absent!r}: expected "first" or "zero"')
        self.table = instance("table", table, Table, 'a table: fleet.table("user", dim=16)')
        self.l2 = l2
        self.absent = absent

    @property
    def dim(self) -> int:
        """Floats of a row."""
        return self.table.dim

    def _pool(self, keys: Any, offsets: "npt.NDArray[Any]", mean: bool) -> torch.Tensor:
        device = keys.device if isinstance(keys, torch.Tensor) else torch.device("cpu")
        keys = _host(keys, np.int64)
        rows = self.table.rows
        if not (self.training and torch.is_grad_enabled()):
            values = rows.read(keys, not self.training and self.absent == "zero")
            places = np.arange(len(keys), dtype=np.int32)
            return torch.from_numpy(_native.pool(values, places, offsets, mean)).to(device)
        indices, places, weights = rows.look_up(keys)
        leaf = torch.from_numpy(weights).requires_grad_()
        call, pending, l2 = next(_calls), self.table.pending, self.l2

        def sink(grads: "npt.NDArray[Any]") -> None:
            pending.append((call, indices, grads + np.float32(l2) * weights if l2 else grads))

        return _Pool.apply(leaf, places, offsets, mean, sink).to(device)

    def get_extra_state(self) -> Dict[str, Any]:
        """Which rows belong to these dense weights: a table at a commit."""
        commit = self.table.fleet.last_commit()
        return {"table": self.table.name, "commit": commit.number, "digest": commit.digests.get(self.table.name)}

    def set_extra_state(self, state: Dict[str, Any]) -> None:
        """Refuses dense weights that were saved with other rows than the fleet's."""
        commit = self.table.fleet.claim()
        digest = commit.digests.get(self.table.name)
        if state.get("digest") is None or state["digest"] == digest:
            return
        raise UsageError(
            f"these weights belong to table {state['table']!r} at commit {state['commit']}, and the fleet is at commit "
            f"{commit.number} with other rows",
            "load the weights of the fleet's commit (Session.restore does), or load_state_dict(..., strict=False) after "
            "removing the '_extra_state' entries",
        )

    def extra_repr(self) -> str:
        return f"{self.table.name!r}, dim={self.dim}"


class EmbeddingBag(_FleetModule):
    """Sums (or means) of rows by (sample, slot): [batch, slots, dim].

    table: a `Table`. slots: of the input. mode: "sum" or "mean". l2: adds (l2 / 2) * |w|^2 of each distinct row of a
    batch to the loss. absent: what keys that the table does not have read after `eval()`: "zero", as in
    `cistern eval`, or "first".

    After `eval()`, and under `torch.no_grad()`, rows are read as this process has trained them, and no row is kept.
    """

    def __init__(self, table: Union[Table, Dict[str, Table]], slots: int, mode: str = "sum", l2: float = 0.0,
                 absent: str = "zero"):
        super().__init__(table, l2, absent)
        if mode not in ("sum", "mean"):
            raise UsageError(f'mode={mode!r}: expected "sum" or "mean"')
        self.slots = integer("slots", slots, 1)
        self.mode = mode

    def forward(self, keys: Any, offsets: Any) -> torch.Tensor:
        """keys: int64 [n]. offsets: int32 or int64 [batch * slots + 1], by (sample, slot), 0 first and n last."""
        offsets = _host(offsets, np.int32)
        if (len(offsets) - 1) % self.slots:
            raise UsageError(f"offsets: {len(offsets)} of them do not fit {self.slots} slots: expected batch * slots + 1")
        return self._pool(keys, offsets, self.mode == "mean").view(-1, self.slots, self.dim)


class Embedding(_FleetModule):
    """Rows one by one, for sequence models: [n, dim], or padded with offsets: ([batch, length, dim], mask)."""

    def __init__(self, table: Union[Table, Dict[str, Table]], l2: float = 0.0, absent: str = "zero"):
        super().__init__(table, l2, absent)

    def forward(self, keys: Any, offsets: Any = None, length: Optional[int] = None) -> Any:
        """keys: int64 [n]. Returns rows [n, dim].

        offsets: [batch + 1]: sequence i has keys[offsets[i] : offsets[i + 1]]. Then it returns (rows [batch, length,
        dim], with zeros after the end of a sequence; mask [batch, length], true where there is a key). length: longer
        sequences keep their last keys; None: of the longest.
        """
        rows = self._pool(keys, np.arange(len(keys) + 1, dtype=np.int32), False)
        if offsets is None:
            return rows
        offsets = torch.as_tensor(offsets)
        if len(offsets) == 0 or int(offsets[0]) != 0 or int(offsets[-1]) != len(keys):
            raise UsageError(f"offsets: expected the first to be 0 and the last to be the number of keys, {len(keys)}")
        return pad_rows(rows, offsets[:-1], offsets[1:], length)


def pad_rows(rows: torch.Tensor, begins: Any, ends: Any, length: Optional[int] = None) -> Tuple[torch.Tensor, torch.Tensor]:
    """Sequences of rows as one tensor: (padded [n, length, dim], mask [n, length]).

    Sequence i is rows[begins[i] : ends[i]]; what follows its end is zero, and false in the mask. length: longer
    sequences keep their last rows; None: that of the longest.
    """
    begins = torch.as_tensor(begins).long().to(rows.device)
    ends = torch.as_tensor(ends).long().to(rows.device)
    counts = ends - begins
    if len(counts) and (int(begins.min()) < 0 or int(ends.max()) > len(rows) or int(counts.min()) < 0):
        raise UsageError(f"begins and ends: expected ascending positions from 0 to {len(rows)}, the number of rows")
    if length is not None:
        integer("length", length)
    if length is None:
        length = int(counts.max()) if len(counts) else 0
    counts = counts.clamp(max=length)
    place = torch.arange(length, device=rows.device)
    mask = place[None] < counts[:, None]
    chosen = (ends - counts)[:, None] + place
    padded = rows.new_zeros(len(counts), length, rows.shape[1])
    return padded.masked_scatter(mask[:, :, None].expand_as(padded), rows[chosen[mask]]), mask


class RowOptimizer:
    """Applies the tables' rules to the rows of the last backward passes: the optimizer beside torch.optim.

    tables: those of the model's embeddings. `step` is number 1, 2, ... of a training (Adam's bias correction).
    """

    def __init__(self, tables: List[Table], steps: int = 0):
        self.tables = tables
        self.steps = steps

    @staticmethod
    def of(model: torch.nn.Module) -> "RowOptimizer":
        """The optimizer of all embeddings of a model."""
        tables: Dict[int, Table] = {id(m.table): m.table for m in model.modules() if isinstance(m, _FleetModule)}
        return RowOptimizer(list(tables.values()))

    def step(self) -> None:
        """One step of every table, with its learning rate (`Table.lr`)."""
        for table in self.tables:
            for _, rows, grads in sorted(table.pending, key=lambda p: p[0]):
                table.rows.add_gradients(rows, grads)
            table.pending.clear()
        self.steps += 1
        for table in self.tables:
            table.rows.step(table.lr, self.steps)

    def zero_grad(self) -> None:
        """Forgets gradients that no step has used."""
        for table in self.tables:
            table.pending.clear()
            table.rows.drop_gradients()


def clip_grad_norm_(model: torch.nn.Module, max_norm: float) -> float:
    """Scales the gradients of dense weights and of rows down to one norm over all of them; returns the norm before.

    Call it after `backward` and before `step`. `torch.nn.utils.clip_grad_norm_(model.parameters(), ...)` does not see
    rows: a large first gradient of a row then stays in its Adam state for a thousand steps.
    """
    if not max_norm > 0:
        raise UsageError(f"max_norm={max_norm!r}: expected a number above 0")
    dense = [p.grad for p in model.parameters() if p.grad is not None]
    tables = RowOptimizer.of(model).tables
    squares = sum(float(g.detach().double().square().sum()) for g in dense) + sum(_square_sum(t.pending) for t in tables)
    norm = squares**0.5
    if not norm > max_norm:  # also if it is not a number, which the step reports
        return norm
    scale = max_norm / norm
    for grad in dense:
        grad.mul_(scale)
    for table in tables:
        table.pending[:] = [(call, rows, grads * np.float32(scale)) for call, rows, grads in table.pending]
    return norm


def _square_sum(pending: Pending) -> float:
    """Of the gradients of a table's rows; those of one row, from several forward passes, are added first."""
    if not pending:
        return 0.0
    grads = np.concatenate([g for _, _, g in pending]).astype(np.float64)
    if len(pending) > 1:
        rows, place = np.unique(np.concatenate([r for _, r, _ in pending]), return_inverse=True)
        summed = np.zeros((len(rows), grads.shape[1]))
        np.add.at(summed, place.reshape(-1), grads)
        grads = summed
    return float(np.square(grads).sum())
