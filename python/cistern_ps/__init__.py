"""Cistern from Python: fleets, tables, data sets, the trainer, and embeddings for PyTorch.

    import cistern_ps as cs
    fleet = cs.connect("h1:7700,h2:7700")        # or cs.local("runs/a", servers=2): in this process
    user = fleet.table("user", dim=16, rule=cs.Adam(lr=1e-3))
    rows = user.pull(keys)

docs/python.md describes all of it.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any


def _flags_of_module() -> int:
    """How the C++ module is opened.

    Where another version of its libraries is global (TensorFlow's protobuf, once that is imported), its own must find
    each other's symbols first. Not always: an allocator in LD_PRELOAD would then be bypassed.
    """
    import ctypes

    everything = ctypes.CDLL(None)
    names = ("_ZN6google8protobuf14DescriptorPool14generated_poolEv", "grpc_init")
    return sys.getdlopenflags() | (os.RTLD_DEEPBIND if any(hasattr(everything, n) for n in names) else 0)


_flags = sys.getdlopenflags()
sys.setdlopenflags(_flags_of_module())
try:
    from . import _native
finally:
    sys.setdlopenflags(_flags)

from .errors import CheckpointError, DataError, Error, Interrupted, UnreachableError, UsageError
from .fleet import Commit, Fleet, connect, local
from .jobs import (Run, apply_changes, commits, diff, evaluate, export, init, plan, predict, read_changes, save_changes,
                   status, train, verify)
from .rules import SGD, AdaGrad, AdaGradRowwise, Adam, AdamW, Bounds, Ftrl, Init, Momentum, Normal, Rule, Uniform, Zero
from .table import Table

if TYPE_CHECKING:
    from . import data, metrics, model, plots, rows, serve, servers
    from . import torch as torch

__version__ = "0.2.0"

__all__ = [
    "AdaGrad", "AdaGradRowwise", "Adam", "AdamW", "Bounds", "CheckpointError", "Commit", "DataError", "Error", "Fleet", "Ftrl", "Init",
    "Interrupted",
    "Momentum", "Normal", "Rule", "Run", "SGD", "Table", "Uniform", "UnreachableError", "UsageError", "Zero", "apply_changes",
    "commits", "connect", "data", "diff", "evaluate", "export", "init", "local", "metrics", "model", "plan", "plots", "predict",
    "read_changes", "rows", "save_changes", "serve", "servers", "status", "train", "verify",
]  # without torch, which may be missing

_LAZY = {"data", "metrics", "model", "plots", "rows", "serve", "servers", "torch"}  # imported when they are first named


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        import importlib

        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
