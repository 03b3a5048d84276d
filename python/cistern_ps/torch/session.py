"""A training whose rows, dense weights, optimizer, random states and place in the data are committed as one."""

from __future__ import annotations

import contextlib
import random
import re
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Dict, Iterator, Optional, Union

import numpy as np
import torch

from ..arguments import instance, integer
from ..data import Batch, DataSet
from ..errors import Error, UsageError
from ..fleet import Commit, Fleet
from .dense_state import DenseState
from .embedding import RowOptimizer
from .plain import pack, unpack

_FORMAT = "cistern_ps.torch 1"


def _seconds(text: str) -> float:
    match = re.fullmatch(r"\s*([0-9.]+)\s*(ms|s|min|h)\s*", text)
    if match is None:
        raise UsageError(f'commit_every={text!r}: expected a time such as "30s" or "5min", or a number of steps')
    return float(match[1]) * {"ms": 0.001, "s": 1, "min": 60, "h": 3600}[match[2]]


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

    model: its `cs.torch` embeddings are trained by their tables' rules, everything else by `optimizer`.
    loader: anything iterable with `state_dict` and `load_state_dict`, such as `cs.data.norm(...)`; None: the place in
    the data is the caller's business. commit_every: a time such as "30s", a number of steps, or None: only `commit`.
    objects: more things to keep, by name, such as {"scheduler": scheduler}: with `state_dict` and `load_state_dict`.
    rows_mb: memory for rows; when it is full, the session commits and forgets them. prefetch: which input of a
    `cs.data` batch is looked up in which table, {"features": 0}: rows of the next batch are pulled while this one is
    trained; the default is right for one table and one input. name: of the dense table.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        fleet: Fleet,
        loader: Any = None,
        commit_every: Union[str, int, None] = "30s",
        objects: Optional[Dict[str, Any]] = None,
        rows_mb: int = 1024,
        prefetch: Optional[Dict[str, int]] = None,
        name: str = "torch",
    ):
        self.model = model
        self.optimizer = optimizer
        self.fleet = fleet
        self.loader = loader
        self.objects = objects or {}
        instance("fleet", fleet, Fleet, "a fleet: cs.local(...) or cs.connect(...)")
        self.rows = RowOptimizer.of(model)
        for table in self.rows.tables:
            if table.fleet is not fleet:
                raise UsageError(f"table {table.name!r} belongs to another fleet than the session's")
        self._name = name
        self._rows_bytes = rows_mb << 20
        if commit_every is not None and not isinstance(commit_every, str):
            integer("commit_every", commit_every, 1)
        self._every_seconds = _seconds(commit_every) if isinstance(commit_every, str) else None
        self._every_steps = commit_every if isinstance(commit_every, int) else None
        self._dense = DenseState(model, optimizer)
        fleet.declare_dense(name, self._dense.rows, self._dense.columns)
        if prefetch is None:
            prefetch = {t.name: 0 for t in self.rows.tables} if len(self.rows.tables) == 1 else {}
        self._prefetch = prefetch
        self._prefetched: "Optional[Future[None]]" = None
        self._threads = ThreadPoolExecutor(1, "cistern prefetch")
        self._loops = 0  # of batches, that run
        self._uncommitted = 0
        self._committed_at = time.monotonic()
        self._last: Optional[Commit] = None

    @property
    def steps(self) -> int:
        """Steps since the training began, in this process or in earlier ones."""
        return self.rows.steps

    def __enter__(self) -> "Session":
        self.restore()
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None:
            if self._uncommitted or self._last is None:
                self.commit()
        else:
            self.rows.zero_grad()
            self.fleet.abort()

    def restore(self) -> Optional[Commit]:
        """Claims the fleet and puts model, optimizer, random states and loader where its last commit left them.

        Returns that commit; None if there is none, and then nothing changes. Changes since the commit are dropped.
        """
        self._await_prefetch()
        commit = self.fleet.claim()
        for table in self.rows.tables:
            table.pending.clear()
            table.rows.clear()
        self._uncommitted = 0
        self._committed_at = time.monotonic()
        if commit.worker is None:
            self._last = None
            return None
        saved = commit.worker
        if not isinstance(saved, dict) or saved.get("format") != _FORMAT:
            raise UsageError(f"{commit} was not made by a torch Session", "use another folder or fleet")
        values = self.fleet.native.pull_dense(self.fleet._dense_id(self._name))
        self._dense.load(values, saved["dense"])
        self.rows.steps = saved["steps"]
        for table in self.rows.tables:
            table.lr = saved["rates"][table.name]
        for key, thing in self.objects.items():
            thing.load_state_dict(unpack(saved["objects"][key]))
        if self.loader is not None and saved["loader"] is not None:
            self.loader.load_state_dict(unpack(saved["loader"]))
        self._set_random(unpack(saved["random"]))
        self._last = commit
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

    def step(self) -> None:
        """One step of the optimizer and of the rows, then zero_grad.

        A commit that is due follows once the loop asks `batches` for the next batch, so that it includes all that the
        loop does for this one, such as `scheduler.step()`. Without `batches` it follows at once.
        """
        self.optimizer.step()
        self.rows.step()
        self.optimizer.zero_grad(set_to_none=True)
        self._uncommitted += 1
        if not self._loops and self._is_due():
            self.commit()

    def commit(self) -> Commit:
        """Makes the present the state to which `restore` goes: all of it, or (if this fails) nothing.

        Call it between a step and the next batch: gradients are not kept. After an error (a server that is being
        restarted, a full disk) the training is as before; call it again, or `restore`.
        """
        try:
            for table in self.rows.tables:
                table.rows.push_changed()
            self.fleet.native.push_dense(self.fleet._dense_id(self._name), self._dense.values())
            self._last = self.fleet.commit(self._position())
        except Exception:
            with contextlib.suppress(Error):  # so that the next attempt pushes everything anew
                self.fleet.abort()
            raise
        for table in self.rows.tables:
            table.rows.committed()
            if table.rows.bytes > self._rows_bytes // max(1, len(self.rows.tables)):
                table.rows.clear()
        self._uncommitted = 0
        self._committed_at = time.monotonic()
        return self._last

    def _is_due(self) -> bool:
        if not self._uncommitted:
            return False
        if self._every_steps is not None and self._uncommitted >= self._every_steps:
            return True
        if self._every_seconds is not None and time.monotonic() - self._committed_at >= self._every_seconds:
            return True
        return sum(t.rows.bytes for t in self.rows.tables) > self._rows_bytes

    def _position(self) -> Dict[str, Any]:
        loader = None if self.loader is None else pack(self.loader.state_dict())
        return {
            "format": _FORMAT,
            "steps": self.rows.steps,
            "rates": {t.name: t.lr for t in self.rows.tables},
            "dense": self._dense.rest(),
            "loader": loader,
            "objects": {k: pack(v.state_dict()) for k, v in self.objects.items()},
            "random": pack(self._random()),
        }

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
