"""Cistern from Python: fleets, tables, data sets, the trainer, and embeddings for PyTorch.

    import cistern_ps as cs
    fleet = cs.connect("h1:7700,h2:7700")        # or cs.local("runs/a", servers=2): in this process
    user = fleet.table("user", dim=16, rule=cs.Adam(lr=1e-3))
    rows = user.pull(keys)

docs/python.md describes all of it.
"""

from __future__ import annotations

from typing import Any

from .errors import CheckpointError, DataError, Error, Interrupted, UnreachableError, UsageError
from .fleet import Commit, Fleet, connect, local
from .jobs import Run, commits, diff, evaluate, export, plan, predict, status, train, verify
from .rules import SGD, AdaGrad, Adam, Ftrl, Init, Momentum, Normal, Rule, Uniform, Zero
from .table import Table

__version__ = "0.1.0"

_LAZY = {"torch", "data", "metrics", "model", "serve", "servers"}  # imported when they are first named: torch takes seconds


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        import importlib

        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
