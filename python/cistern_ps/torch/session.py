"""A training whose rows, dense weights, optimizer, random states and place in the data are committed as one."""

from __future__ import annotations

import contextlib
import inspect
import json
import random
import re
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Callable, Dict, Iterator, Optional, Union

import numpy as np
import torch

from ..arguments import instance, integer, optional
from ..data import Batch, DataSet
from ..errors import Error, UsageError
from ..fleet import SESSION_FORMAT, Commit, Fleet, is_session_state
from .dense_state import DenseState
from .embedding import RowOptimizer, embeddings_of, states_of_one_commit
from .plain import pack, unpack


def _check_state(name: str, thing: Any, fix: str) -> None:
    """Refuses what a commit cannot keep and restore."""
    for method in ("state_dict", "load_state_dict"):
        if not callable(getattr(thing, method, None)):
            raise UsageError(f"{name}: {type(thing).__name__} has no {method}, so a commit cannot keep its state", fix)



def _seconds(text: str) -> float:
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*(ms|s|min|h)\s*", text)
    if match is None:
        raise UsageError(f'commit_every={text!r}: expected a time such as "30s" or "5min", or a number of steps')
    return float(match[1]) * {"ms": 0.001, "s": 1, "min": 60, "h": 3600}[match[2]]


def _rate_is_zero(group: Dict[str, Any]) -> bool:
    return "lr" in group and float(group["lr"]) == 0


class Session:
    """Trains a model with rows on a fleet; the loop stays the caller's own.

        with cs.torch.Session(model, opt, fleet, loader=train, commit_every="30s") as s:
            for b in s.batches():
                loss = loss_of(model(b), b.label)
                loss.backward()
                s.step()

    Entering the session claims the fleet and goes to its last commit (`restore`); leaving it commits. A process that
    is killed loses what came after the last commit, all of it: started again, it continues with the same bits as if
    nothing had happened.

    model: its `cs.torch` embeddings are trained by their tables' rules, everything else by `optimizer`; None: the model
    has nothing else to train. loader: anything iterable with `state_dict` and `load_state_dict`, such as
    `cs.data.norm(...)`; None: the place in the data is the caller's business. commit_every: a time such as "30s", a
    number of steps, or None: only `commit`. objects: more things to keep, by name, such as {"scheduler": scheduler}:
    with `state_dict` and `load_state_dict`. rows_mb: memory for rows; when it is full, the session commits and forgets
    them. prefetch: which input of a `cs.data` batch is looked up in which table, {"features": 0}: rows of the next batch
    are pulled while this one is trained; the default is right for one table and one input. name: of the dense table.
    scaler: a GradScaler that has scaled the loss: `step` unscales, skips what overflows and updates it, and a commit
    keeps its state.

    Everything is checked here, before the first step.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        optimizer: Optional[torch.optim.Optimizer],
        fleet: Fleet,
        loader: Any = None,
        commit_every: Union[str, int, None] = "30s",
        objects: Optional[Dict[str, Any]] = None,
        rows_mb: int = 1024,
        prefetch: Optional[Dict[str, int]] = None,
        name: str = "torch",
        scaler: Any = None,
    ):
        self.model = instance("model", model, torch.nn.Module, "a torch.nn.Module")
        self.fleet = instance("fleet", fleet, Fleet, "a fleet: cs.local(...) or cs.connect(...)")
        self.loader = loader
        self.objects = optional("objects", objects, dict, 'a dict, such as {"scheduler": scheduler}') or {}
        self.scaler = scaler
        self.rows = RowOptimizer.of(model)
        for table in self.rows.tables:
            if table.fleet is not fleet:
                raise UsageError(f"table {table.name!r} belongs to another fleet than the session's")
        self.optimizer = self._checked(optimizer)
        self._first_rates = [float(g.get("lr", 0)) for g in self.optimizer.param_groups]
        self._name = instance("name", name, str, "a str")
        self._rows_bytes = integer("rows_mb", rows_mb) << 20
        self._every_seconds = _seconds(commit_every) if isinstance(commit_every, str) else None
        self._every_steps = None if commit_every is None or isinstance(commit_every, str) else integer("commit_every", commit_every, 1)
        self._prefetch = self._checked_prefetch(prefetch)
        self._dense = DenseState(model, self.optimizer)
        self._check_states()
        fleet.declare_dense(name, self._dense.rows, self._dense.columns)
        self._prefetched: "Optional[Future[None]]" = None
        self._threads = ThreadPoolExecutor(1, "cistern prefetch")
        self._loops = 0  # of batches, that run
        self._committed_at = time.monotonic()
        self._last: Optional[Commit] = None
        self._is_restored = False

    def _checked(self, optimizer: Optional[torch.optim.Optimizer]) -> torch.optim.Optimizer:
        """The optimizer, which from now on has all stand-ins, so that torch's functions for it reach rows."""
        embeddings = embeddings_of(self.model)
        stand_ins = [m.stand_in for m in embeddings]
        mine = {id(p): n for n, p in self.model.named_parameters()}
        if optimizer is None:
            dense = [n for n, p in self.model.named_parameters() if p.requires_grad and id(p) not in set(map(id, stand_ins))]
            if dense:
                raise UsageError(f"no optimizer for the model's dense weights, such as {dense[0]}",
                                 "pass one, such as torch.optim.Adam(model.parameters()), or freeze them: requires_grad_(False)")
            if not stand_ins:
                raise UsageError("the model has nothing to train", "give it a cs.torch.EmbeddingBag")
            return torch.optim.SGD(stand_ins, lr=1.0)
        instance("optimizer", optimizer, torch.optim.Optimizer, "an optimizer of torch.optim, or None")
        closure = inspect.signature(optimizer.step).parameters.get("closure")
        if closure is not None and closure.default is inspect.Parameter.empty:
            raise UsageError(f"{type(optimizer).__name__} evaluates the loss several times in a step, which Session.step "
                             "cannot do", "use another optimizer, such as torch.optim.Adam")
        known = {id(p) for g in optimizer.param_groups for p in g["params"]}
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if id(parameter) not in mine:
                    raise UsageError(
                        f"the optimizer trains a tensor of shape {list(parameter.shape)} that is no parameter of the model, "
                        "so a commit would not keep it",
                        "make it part of one torch.nn.Module with the model; make the optimizer after the model's last change")
        for group in optimizer.param_groups:
            self._check_group(group, len(optimizer.param_groups))
        missing = [p for p in stand_ins if id(p) not in known]
        if missing:
            groups = [g for g in optimizer.param_groups if not _rate_is_zero(g) and g["params"]] or optimizer.param_groups
            groups[-1]["params"].extend({id(p): p for p in missing}.values())
        return optimizer

    def _check_group(self, group: Dict[str, Any], group_num: int) -> None:
        """Refuses options of a group that look as if they were for rows, and are not."""
        inside = {id(p) for p in group["params"]}
        embeddings = [m for m in embeddings_of(self.model) if id(m.stand_in) in inside]
        if embeddings and group.get("maximize"):
            raise UsageError(f"the optimizer has maximize=True, and the rule of table {embeddings[0].table.name!r} minimizes",
                             "minimize the negative loss")
        is_for_rows = group_num > 1 and inside == {id(m.stand_in) for m in embeddings}
        if not is_for_rows or "lr" not in group or _rate_is_zero(group):
            return
        for table in {id(m.table): m.table for m in embeddings}.values():
            if abs(float(group["lr"]) - table.lr) > 1e-6 * table.lr:
                raise UsageError(
                    f"the optimizer has a group with lr={float(group['lr'])} for the embedding of table {table.name!r}, whose "
                    f"rows are trained with the table's lr={table.lr}",
                    f"give the table that rate, table.lr = {float(group['lr'])}, or the rule with which it is declared")

    def _checked_prefetch(self, prefetch: Optional[Dict[str, int]]) -> Dict[str, int]:
        tables = [t.name for t in self.rows.tables]
        if prefetch is None:
            return {name: 0 for name in tables} if len(tables) == 1 else {}
        for name, input in instance("prefetch", prefetch, dict, 'a dict, such as {"features": 0}').items():
            if name not in tables:
                raise UsageError(f"prefetch: the model has no table {name!r}; it has {', '.join(tables) or 'none'}")
            integer(f"prefetch[{name!r}]", input)
        return dict(prefetch)

    def _check_states(self) -> None:
        """Everything that a commit asks of loader, objects and scaler."""
        if self.loader is not None:
            _check_state("loader", self.loader, "pass a cs.data data set or torchdata's StatefulDataLoader; or leave loader out "
                         "and iterate over it yourself: after a restart it begins from its start")
            if not callable(getattr(self.loader, "__iter__", None)):
                raise UsageError(f"loader: {type(self.loader).__name__} cannot be iterated over")
        for name, thing in self.objects.items():
            instance("objects: a name", name, str, "a str")
            _check_state(f"objects[{name!r}]", thing, "leave it out, and keep its state in a buffer of the model")
        if self.scaler is not None:
            _check_state("scaler", self.scaler, "pass a torch.amp.GradScaler")
            for method in ("unscale_", "step", "update", "is_enabled"):
                if not callable(getattr(self.scaler, method, None)):
                    raise TypeError(f"scaler: expected a torch.amp.GradScaler; got {type(self.scaler).__name__}")
        json.dumps(self._position())

    @property
    def param_groups(self) -> Any:
        """Refuses a GradScaler: for this package."""
        raise UsageError("a Session is no optimizer for a GradScaler",
                         "use Session(..., scaler=scaler) and s.step(); for clipping: scaler.unscale_(optimizer) before it")

    @property
    def steps(self) -> int:
        """Steps since the training began, in this process or in earlier ones."""
        return self.rows.steps

    def __enter__(self) -> "Session":
        self.restore()
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None:
            if self.fleet.session_steps or self._last is None:
                self.commit()
        else:
            self.rows.zero_grad()
            self.fleet.abort()

    def restore(self) -> Optional[Commit]:
        """Claims the fleet and puts model, optimizer, random states and loader where its last commit left them.

        Returns that commit; None if there is none, and then nothing changes. Changes since the commit are dropped.
        """
        self._await_prefetch()
        self._is_restored = False
        commit = self.fleet.claim()
        self.rows.zero_grad()
        for table in self.rows.tables:
            table.pending.clear()
            table.rows.clear()
        self.fleet.session_steps = 0
        self._committed_at = time.monotonic()
        if commit.worker is None:
            self._last, self._is_restored = None, True
            return None
        saved = commit.worker
        if not is_session_state(saved):
            raise UsageError(f"{commit} was not made by a torch Session", "use another folder or fleet")
        values = self.fleet.native.pull_dense(self.fleet._dense_id(self._name))
        self._dense.load(values, saved["dense"])
        self.rows.steps = saved["steps"]
        for table in self.rows.tables:
            table.lr = saved["rates"].get(table.name, table.lr)
        for key, thing in self.objects.items():
            if key not in saved["objects"]:
                raise UsageError(f"{commit} has no object {key!r}; it has {', '.join(saved['objects']) or 'none'}",
                                 "leave it out of objects, or use another folder or fleet")
            thing.load_state_dict(unpack(saved["objects"][key]))
        scale = unpack(saved.get("scaler"))  # empty if the scaler was not enabled
        if self.scaler is not None and scale:
            self.scaler.load_state_dict(scale)
        if self.loader is not None and saved["loader"] is not None:
            self.loader.load_state_dict(unpack(saved["loader"]))
        self._set_random(unpack(saved["random"]))
        self._last, self._is_restored = commit, True
        return commit

    def batches(self) -> Iterator[Batch]:
        """The loader's batches as tensors, from the place of the last commit on."""
        if self.loader is None:
            raise UsageError("this session has no loader", "give it one: Session(..., loader=cs.data.norm(...))")
        self._loops += 1
        try:
            for batch in self.loader:
                self._prefetch_next()
                yield batch.torch() if isinstance(batch, Batch) else batch
                if self._is_due():
                    self.commit()
        finally:
            self._loops -= 1
            self._await_prefetch()

    def _prefetch_next(self) -> None:
        """Pulls the rows of the next batch while this one is trained."""
        self._await_prefetch()
        if not self._prefetch or not isinstance(self.loader, DataSet):
            return
        loader, tables = self.loader, {t.name: t for t in self.rows.tables}

        def pull() -> None:
            for name, input in self._prefetch.items():
                keys = loader.peek_keys(input)
                if keys is not None:
                    tables[name].rows.prefetch(keys)

        self._prefetched = self._threads.submit(pull)

    def _await_prefetch(self) -> None:
        if self._prefetched is not None:
            self._prefetched.exception()  # a failed one is of no account: the forward pass pulls again
            self._prefetched = None

    def step(self, closure: "Optional[Callable[[], Any]]" = None) -> Any:
        """One step of the optimizer and of the rows, then zero_grad.

        closure: computes the loss and its gradients, as for an optimizer of torch.optim; returns what it returns.

        A commit that is due follows once the loop asks `batches` for the next batch, so that it includes all that the
        loop does for this one, such as `scheduler.step()`. Without `batches` it follows at once.
        """
        self._check_restored()
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if any(m.gradients.has_stepped for m in embeddings_of(self.model)):
            raise UsageError("the optimizer has stepped since the backward pass, and Session.step would step it again",
                             "leave out optimizer.step(); with a GradScaler: Session(..., scaler=scaler)")
        rates = self._rates()
        overflowed = self.scaler is not None and self._unscale()
        if not overflowed:
            self.rows.prepare({id(p) for g in self.optimizer.param_groups if _rate_is_zero(g) for p in g["params"]})
        try:
            if self.scaler is None:
                self.optimizer.step()
            else:
                self.scaler.step(self.optimizer)  # which skips it after an overflow
                self.scaler.update()
        except BaseException:
            self.rows.take_back()
            raise
        if not overflowed:
            self.rows.apply(rates)
        self.rows.zero_grad()
        self.optimizer.zero_grad(set_to_none=True)
        self.fleet.session_steps += 1
        if not self._loops and self._is_due():
            self.commit()
        return loss

    def _rates(self) -> Dict[str, float]:
        """The learning rates of rows, by table: the table's, moved as schedulers have moved that of the stand-in's group."""
        moved: Dict[int, float] = {}
        for group, first in zip(self.optimizer.param_groups, self._first_rates):
            base = float(group.get("initial_lr", first))  # a scheduler keeps it; OneCycleLR replaces it
            if "max_lr" in group:
                base = float(self.optimizer.defaults.get("lr", base))
            if base > 0:
                moved.update({id(p): float(group["lr"]) / base for p in group["params"]})
        rates: Dict[str, float] = {}
        for module in embeddings_of(self.model):
            if not module.stand_in.requires_grad:
                continue
            rate = module.table.lr * moved.get(id(module.stand_in), 1.0)
            if rates.setdefault(module.table.name, rate) != rate and moved.get(id(module.stand_in)) != 0:
                raise UsageError(f"two embeddings of table {module.table.name!r} are in groups whose learning rates have moved "
                                 "differently", "put them into one group")
        return rates

    def _check_restored(self) -> None:
        if not self._is_restored:
            raise UsageError("this session has not begun: its model may be another than that of the fleet's last commit",
                             "use it in a with statement, or call s.restore() first")

    def _unscale(self) -> bool:
        """Unscales the gradients, unless the loop has; true if one of them is not finite."""
        try:
            self.scaler.unscale_(self.optimizer)
        except RuntimeError as error:
            if "unscale_() has already been called" not in str(error):
                raise
        if not self.scaler.is_enabled():
            return False
        grads = [p.grad for g in self.optimizer.param_groups for p in g["params"] if p.grad is not None]
        return not all(bool(torch.isfinite(g).all()) for g in grads)

    def commit(self) -> Commit:
        """Makes the present the state to which `restore` goes: all of it, or (if this fails) nothing.

        Call it between a step and the next batch: gradients are not kept. After an error (a server that is being
        restarted, a full disk) the training is as before; call it again, or `restore`.
        """
        self._check_restored()
        if any(table.is_bounded for table in self.rows.tables):
            self._await_prefetch()  # what it pulls may be gone after the commit
        try:
            self.fleet.native.push_dense(self.fleet._dense_id(self._name), self._dense.values())
            self._last = self.fleet.commit(self._position())
        except Exception:
            with contextlib.suppress(Error):  # so that the next attempt pushes everything anew
                self.fleet.abort()
            raise
        for table in self.rows.tables:
            if table.rows.bytes > self._rows_bytes // max(1, len(self.rows.tables)) and not table.pending:
                table.rows.clear()
        self.fleet.session_steps = 0
        self._committed_at = time.monotonic()
        return self._last

    def _is_due(self) -> bool:
        if not self.fleet.session_steps:
            return False
        if self._every_steps is not None and self.fleet.session_steps >= self._every_steps:
            return True
        if self._every_seconds is not None and time.monotonic() - self._committed_at >= self._every_seconds:
            return True
        return sum(t.rows.bytes for t in self.rows.tables) > self._rows_bytes

    def _position(self) -> Dict[str, Any]:
        with states_of_one_commit():
            objects = {k: pack(v.state_dict(), f"objects[{k!r}]") for k, v in self.objects.items()}
        position = {
            "format": SESSION_FORMAT,
            "steps": self.rows.steps,
            "rates": {t.name: t.lr for t in self.rows.tables},
            "dense": self._dense.rest(),
            "loader": None if self.loader is None else pack(self.loader.state_dict(), "the state of the loader"),
            "objects": objects,
            "random": pack(self._random()),
        }
        return position if self.scaler is None else {**position, "scaler": pack(self.scaler.state_dict(), "scaler")}

    @staticmethod
    def _random() -> Dict[str, Any]:
        kind, state, place, has_gauss, gauss = np.random.get_state()
        return {
            "torch": torch.get_rng_state(),
            "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
            "numpy": [kind, state, place, has_gauss, gauss],
            "python": np.array(random.getstate()[1], np.uint32),
            "python_gauss": random.getstate()[2],
        }

    @staticmethod
    def _set_random(saved: Dict[str, Any]) -> None:
        torch.set_rng_state(saved["torch"])
        if saved["cuda"] and torch.cuda.is_available():
            torch.cuda.set_rng_state_all(saved["cuda"])
        kind, state, place, has_gauss, gauss = saved["numpy"]
        np.random.set_state((kind, state, place, has_gauss, gauss))
        random.setstate((3, tuple(saved["python"].tolist()), saved["python_gauss"]))

    def __repr__(self) -> str:
        return f"<Session: {self.steps} steps, last {self._last or 'commit: none'}, on {self.fleet!r}>"
