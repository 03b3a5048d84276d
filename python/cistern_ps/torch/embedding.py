"""Embedding modules backed by a fleet.

A forward pass pulls the distinct rows of its keys; the backward pass hands their gradients, summed in a fixed order,
to the table's rows in this process, where `RowOptimizer` (or `Session`) applies the table's rule. The model has one
small parameter for each module, its stand-in, through which torch.optim, GradScaler and clipping see those gradients.
"""

from __future__ import annotations

import contextlib
import itertools
from typing import Any, Callable, Collection, Dict, Iterator, List, Optional, Tuple, Union

import numpy as np
import numpy.typing as npt
import torch

from .. import _native
from ..arguments import array_fix, instance, integer, number
from ..errors import Error, UsageError
from ..fleet import Commit
from ..table import Table
from .row_gradients import RowGradients, square_sum

_calls = itertools.count()  # numbers forward passes: gradients are added in their order


class _Pool(torch.autograd.Function):
    """Sums rows by output; their gradient goes to `sink`, and the stand-in's is set after the backward pass."""

    @staticmethod
    def forward(ctx: Any, stand_in: torch.Tensor, rows: Any, places: Any, offsets: Any, mean: bool, key_weights: Any,
                sink: Callable[[Any], None]) -> torch.Tensor:
        ctx.args = (places, offsets, mean, rows.shape[0], key_weights, sink)
        ctx.stand_in = stand_in.shape, stand_in.dtype, stand_in.device
        return torch.from_numpy(_native.pool(rows, places, offsets, mean, key_weights))

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        places, offsets, mean, row_num, key_weights, sink = ctx.args
        out_grads = grad.detach().to("cpu", torch.float32).contiguous().numpy()
        sink(_native.pool_backward(out_grads, places, offsets, mean, row_num, key_weights))
        shape, dtype, device = ctx.stand_in
        return torch.zeros(shape, dtype=dtype, device=device), None, None, None, None, None, None


def _is_captured() -> bool:
    """Whether this call makes a graph that is used without it."""
    exporting = getattr(getattr(torch, "compiler", None), "is_exporting", None)
    return bool(torch.jit.is_tracing() or (exporting is not None and exporting()))  # type: ignore[attr-defined]


_in_commit = False  # a Session keeps modules in its commit: their rows are those of the same commit


@contextlib.contextmanager
def states_of_one_commit() -> "Iterator[None]":
    """In this scope, states of modules name no commit: for `Session`, whose commits hold rows and states."""
    global _in_commit
    before, _in_commit = _in_commit, True
    try:
        yield
    finally:
        _in_commit = before


def _host(tensor: Any, kind: Any) -> "npt.NDArray[Any]":
    """Keys or offsets as an array on the host; keys may live on a GPU."""
    if _is_captured():
        raise UsageError("a traced or exported model (torch.jit.trace, torch.export, torch.onnx.export) would have the rows "
                         "of these keys as constants", "export the dense part of the model, and pull the rows outside")
    if isinstance(tensor, torch.Tensor):
        tensor = tensor.detach().cpu().contiguous().numpy()
    elif kind is np.int32 and not isinstance(tensor, np.ndarray):
        raise TypeError(f"offsets: expected int32 or int64, torch or numpy; got {type(tensor).__name__}: "
                        + array_fix(tensor, "int64"))
    if kind is np.int32 and tensor.dtype == np.int64:  # torch's own offsets
        if tensor.size and (int(tensor.max()) >= 2**31 or int(tensor.min()) < 0):
            raise UsageError(f"offsets: from {int(tensor.min())} to {int(tensor.max())}: expected 0 to 2**31 - 1")
        return tensor.astype(np.int32)
    return tensor


def _weights(tensor: Any) -> "npt.NDArray[Any]":
    """Weights of keys as an array on the host."""
    if isinstance(tensor, torch.Tensor):
        if tensor.requires_grad:
            raise UsageError("per_sample_weights: expected weights without a gradient, as rows alone are trained",
                             "detach() them; for weights that are trained, multiply the rows of cs.torch.Embedding")
        tensor = tensor.detach().cpu().numpy()
    elif not isinstance(tensor, np.ndarray):
        raise TypeError(f"per_sample_weights: expected float32, torch or numpy; got {type(tensor).__name__}: "
                        + array_fix(tensor, "float32"))
    return np.ascontiguousarray(tensor)


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
        if table.fleet.is_created:
            self.table.rows  # refuses a table whose rule only the trainer knows
        self.l2 = number("l2", l2, 0)
        self.absent = absent
        self.gradients = RowGradients(self.table.name, self.table.dim, self.table.pending)
        self.stand_in = self.gradients.stand_in
        self.was_read_in_eval = False  # since the last step, where gradients were possible

    @property
    def dim(self) -> int:
        """Floats of a row."""
        return self.table.dim

    def _pool(self, keys: Any, offsets: "npt.NDArray[Any]", mean: bool, key_weights: Any = None) -> torch.Tensor:
        device = keys.device if isinstance(keys, torch.Tensor) else torch.device("cpu")
        keys = _host(keys, np.int64)
        rows = self.table.rows
        may_train = torch.is_grad_enabled() and self.stand_in.requires_grad
        if not (self.training and may_train):
            self.was_read_in_eval |= may_train
            values = rows.read(keys, not self.training and self.absent == "zero")
            places = np.arange(len(keys), dtype=np.int32)
            return torch.from_numpy(_native.pool(values, places, offsets, mean, key_weights)).to(device)
        indices, places, weights = rows.look_up(keys)
        call, gradients, l2 = next(_calls), self.gradients, self.l2

        def sink(grads: "npt.NDArray[Any]") -> None:
            gradients.add(call, indices, grads + np.float32(l2) * weights if l2 else grads)

        return _Pool.apply(gradients.watch(), weights, places, offsets, mean, key_weights, sink).to(device)

    def _apply(self, *arguments: Any, **more: Any) -> "_FleetModule":
        """Moves the stand-in to another device; its type stays, since it holds a norm."""
        super()._apply(*arguments, **more)
        self.gradients.stand_in = self.stand_in
        if self.stand_in.dtype != torch.float32:
            grad = self.stand_in.grad
            self.stand_in.grad = None
            self.stand_in.data = self.stand_in.data.float()
            self.stand_in.grad = None if grad is None else grad.float()
        return self

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        del destination[prefix + "stand_in"]  # its value means nothing

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool,
                              missing_keys: List[str], unexpected_keys: List[str], error_msgs: List[str]) -> None:
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        missing_keys[:] = [key for key in missing_keys if key != prefix + "stand_in"]

    def _replicate_for_data_parallel(self) -> Any:
        raise UsageError("torch.nn.DataParallel copies a model to several devices, and rows are pulled for one",
                         "train on one device, without DataParallel")

    def get_extra_state(self) -> Dict[str, Any]:
        """Which rows belong to these dense weights: a table at a commit."""
        if _in_commit:
            return {"table": self.table.name}
        commit = self.table.fleet.last_commit()
        state = {"table": self.table.name, "commit": commit.number, "digest": commit.digests.get(self.table.name)}
        return {**state, "uncommitted": True} if self.table.has_trained_rows else state

    def set_extra_state(self, state: Dict[str, Any]) -> None:
        """Refuses dense weights that were saved with other rows than the fleet's."""
        if state.get("uncommitted"):
            raise UsageError(
                f"these weights belong to rows of table {state['table']!r} that no commit has: they were saved between commits",
                "commit before state_dict() is called (Session.commit, Fleet.commit)")
        if state.get("digest") is None:
            return
        if self.table.has_trained_rows:
            raise UsageError(
                f"these weights belong to table {state['table']!r} at commit {state['commit']}, and its rows have been "
                "trained since", "Session.restore goes back to the last commit, rows and weights")
        commit = self.table.fleet.claim()
        digest = commit.digests.get(self.table.name)
        if state["digest"] == digest:
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

    def forward(self, keys: Any, offsets: Any, per_sample_weights: Any = None) -> torch.Tensor:
        """keys: int64 [n]. offsets: int32 or int64 [batch * slots + 1], by (sample, slot), 0 first and n last.

        per_sample_weights: float32 [n], the weights of the keys (`Batch.key_weights`), without a gradient of their own. A
        mean is then divided by the sum of the weights; where that is 0, it is zeros.
        """
        offsets = _host(offsets, np.int32)
        if per_sample_weights is not None:
            per_sample_weights = _weights(per_sample_weights)
        if (len(offsets) - 1) % self.slots:
            raise UsageError(f"offsets: {len(offsets)} of them do not fit {self.slots} slots: expected batch * slots + 1")
        return self._pool(keys, offsets, self.mode == "mean", per_sample_weights).view(-1, self.slots, self.dim)


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

    tables: those of the model's embeddings. steps: done before: `step` is number 1, 2, ... of a training (Adam's bias
    correction). Call `step` before torch's `zero_grad`, which clears gradients of rows, too.
    """

    def __init__(self, tables: List[Table], steps: int = 0):
        self.tables = [instance("tables", table, Table, "a list of tables") for table in tables]
        self.steps = integer("steps", steps)
        self._modules: List[_FleetModule] = []

    @staticmethod
    def of(model: torch.nn.Module, steps: int = 0) -> "RowOptimizer":
        """The optimizer of all embeddings of a model."""
        modules = embeddings_of(model)
        optimizer = RowOptimizer(list({id(m.table): m.table for m in modules}.values()), steps)
        optimizer._modules = modules
        return optimizer

    @property
    def param_groups(self) -> Any:
        """Refuses a GradScaler: for this package."""
        raise UsageError("a GradScaler sees gradients of rows through the optimizer that has model.parameters()",
                         "use Session(..., scaler=scaler); or scaler.unscale_(optimizer) before rows.step()")

    def step(self) -> None:
        """One step of every table, with its learning rate (`Table.lr`)."""
        self.prepare()
        self.apply()

    def prepare(self, frozen: Collection[int] = ()) -> None:
        """Collects the gradients, and raises what would spoil a step before anything moves: for this package.

        frozen: ids of stand-ins whose rows do not move.
        """
        had = {id(p.owner) for t in self.tables for p in t.pending}
        for owner in self._owners():
            owner.settle()
            if id(owner.stand_in) in frozen:
                owner.pending[:] = [p for p in owner.pending if p.owner is not owner]
                had.discard(id(owner))
        left = {id(p.owner) for t in self.tables for p in t.pending}
        if had - left:
            raise UsageError("zero_grad cleared gradients of rows before a step used them",
                             "call zero_grad after the step of the rows, or before the backward pass")
        for module in self._modules:
            if module.gradients.has_other_hooks():
                raise UsageError(f"a hook on the gradient of a parameter does not reach the rows of table {module.table.name!r}",
                                 "leave out the parameters named stand_in, or change the loss instead")
            if (module.was_read_in_eval and not module.training and id(module.stand_in) not in frozen
                    and id(module.gradients) not in left):
                raise UsageError(
                    f"rows of table {module.table.name!r} were read after model.eval(), so this step has no gradient of them",
                    "call model.train() before the forward pass; to freeze rows: embedding.requires_grad_(False)")
        try:
            for table in self.tables:
                for pending in sorted(table.pending, key=lambda p: p.call):
                    table.rows.add_gradients(pending.rows, pending.grads)
        except Exception as error:
            self.take_back()
            if isinstance(error, Error) and not error.fix:  # a gradient that is not finite
                error.fix = "skip such a batch (zero_grad instead of a step); a loss in float16: Session(..., scaler=scaler)"
            raise

    def take_back(self) -> None:
        """Undoes `prepare`: for this package."""
        for table in self.tables:
            table.rows.drop_gradients()

    def apply(self, rates: "Optional[Dict[str, float]]" = None) -> None:
        """The step that `prepare` has prepared, with other rates than the tables', by name: for this package."""
        self.steps += 1
        for table in self.tables:
            table.rows.step((rates or {}).get(table.name, table.lr), self.steps)
        self._forget()

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets gradients that no step has used."""
        self.take_back()
        self._forget()

    def commit(self, worker: Any = None) -> Commit:
        """Makes the rows the state of their fleet: `Fleet.commit`."""
        fleets = {id(t.fleet): t.fleet for t in self.tables}
        if len(fleets) != 1:
            raise UsageError(f"the tables belong to {len(fleets)} fleets: expected one", "call Fleet.commit of each")
        (fleet,) = fleets.values()
        return fleet.commit(worker)

    def _owners(self) -> List[RowGradients]:
        return list({id(p.owner): p.owner for t in self.tables for p in t.pending}.values())

    def _forget(self) -> None:
        for owner in [*self._owners(), *(m.gradients for m in self._modules)]:
            owner.forget()
        for table in self.tables:
            table.pending.clear()
        for module in self._modules:
            module.was_read_in_eval = False


def embeddings_of(model: torch.nn.Module) -> List[_FleetModule]:
    """The embeddings of a model: for this package."""
    return [m for m in model.modules() if isinstance(m, _FleetModule)]


def clip_grad_norm_(model: torch.nn.Module, max_norm: float) -> float:
    """Scales the gradients of dense weights and of rows down to one norm over all of them; returns the norm before.

    Call it after `backward` and before `step`. `torch.nn.utils.clip_grad_norm_(model.parameters(), ...)` does the same
    for the Euclidean norm, unless two modules read the same rows: it counts the gradients of each module for themselves.
    """
    if not max_norm > 0:
        raise UsageError(f"max_norm={max_norm!r}: expected a number above 0")
    rows = RowOptimizer.of(model)
    stand_ins = {id(m.stand_in) for m in embeddings_of(model)}
    dense = [p.grad for p in model.parameters() if p.grad is not None and id(p) not in stand_ins]
    for owner in rows._owners():
        owner.settle()
    norm = (sum(float(g.detach().double().square().sum()) for g in dense) + sum(square_sum(t.pending) for t in rows.tables)) ** 0.5
    if not norm > max_norm:  # also if it is not a number, which the step reports
        return norm
    scale = max_norm / norm
    for grad in dense:
        grad.mul_(scale)
    for owner in rows._owners():
        owner.scale(scale)
    return norm
