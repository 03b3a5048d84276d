"""Rows of a table for a training loop in any framework: JAX, TensorFlow, NumPy.

    rows = cs.rows.LocalRows(table)
    for keys, label in batches:
        found = rows.look_up(keys)                      # the distinct rows of the batch
        loss, grads = value_and_grad(model)(found.weights, found.places, label)
        rows.add_gradients(found, grads)                # of found.weights
        rows.step()                                     # the table's rule
    rows.commit()
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .arguments import instance, integer
from .fleet import Commit
from .table import Table


@dataclass(frozen=True)
class Found:
    """The distinct rows of a batch.

    Attributes:
        weights: float32 [distinct, dim]; changes of it change nothing.
        places: int32 [keys]: the row in `weights` of each key.
        indices: int32 [distinct]: what names these rows to `LocalRows`.
    """

    weights: Any
    places: Any
    indices: Any


class LocalRows:
    """The rows that a loop has read since the last commit, with the values that its steps have given them.

    `cistern_ps.torch` does this by itself.
    """

    def __init__(self, table: Table, steps: int = 0):
        self.table = instance("table", table, Table, 'a table: fleet.table("user", dim=16)')
        self.steps = integer("steps", steps)

    def look_up(self, keys: Any) -> Found:
        """The rows of `keys` (int64 or uint64 [n], may repeat); pulls those that are not here yet."""
        indices, places, weights = self.table.rows.look_up(keys)
        return Found(weights, places, indices)

    def read(self, keys: Any, absent: str = "zero") -> Any:
        """Weights [n, dim] as they are now, for evaluation: no row is kept."""
        return self.table.rows.read(keys, absent == "zero")

    def add_gradients(self, found: Found, grads: Any) -> None:
        """Adds gradients of `found.weights` [distinct, dim] to those of the next step; any array that NumPy can read."""
        import numpy as np

        self.table.rows.add_gradients(found.indices, np.ascontiguousarray(grads, np.float32))

    def step(self) -> None:
        """Applies the table's rule, with its learning rate `Table.lr`, to the rows that have gradients."""
        self.steps += 1
        self.table.rows.step(self.table.lr, self.steps)

    def commit(self, worker: Any = None) -> Commit:
        """Makes the rows the state of the fleet. worker: kept in the commit, such as the place in the data."""
        return self.table.fleet.commit(worker)

    def __len__(self) -> int:
        return self.table.rows.size

    def __repr__(self) -> str:
        return f"<LocalRows of {self.table.name!r}: {len(self)} rows, {self.steps} steps>"
