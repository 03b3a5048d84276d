"""Tables of embedding rows."""

from __future__ import annotations

import queue
import struct
import threading
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Tuple

from . import _native
from .arguments import integer, number
from .errors import UsageError, no_pickle

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

    from .fleet import Fleet
    from .rules import Rule
    from .torch.row_gradients import Pending


def _is_torch(array: Any) -> bool:
    return type(array).__module__.split(".")[0] == "torch"


def _like(keys: Any, array: "npt.NDArray[Any]") -> Any:
    """`array` as a tensor if `keys` is one; the same memory."""
    if not _is_torch(keys):
        return array
    import torch

    return torch.from_numpy(array)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, float) or isinstance(b, float):  # the servers keep float32
        return struct.pack("f", float(a)) == struct.pack("f", float(b))
    return str(a) == str(b)


def spec_difference(known: Dict[str, Any], wanted: Dict[str, Any], parts: List[str]) -> str:
    """The name of the first thing in which a table differs from what a caller wants of it, its dim and these parts; ""
    if in none."""
    if int(known["dim"]) != wanted["dim"]:
        return f"dim: {known['dim']}, not {wanted['dim']}"
    for part in parts:
        has = known.get(part, {})
        for name, value in wanted[part].items():
            if not _same(has.get(name, 0), value):
                return f"{part}: {name} is {has.get(name)}, not {value}"
    return ""


class Table:
    """Embedding rows by 64-bit key. Made by `Fleet.table`."""

    def __init__(self, fleet: "Fleet", name: str, rule: "Optional[Rule]" = None):
        self.fleet = fleet
        self.name = name
        self.rule = rule
        self._lr = rule.lr if rule is not None else 0.001
        self.pending: "List[Pending]" = []  # gradients: see cistern_ps.torch
        self._rows: Optional[_native.Rows] = None
        self._pending_id: Optional[int] = None

    @property
    def _id(self) -> int:
        if self._pending_id is None:
            self._pending_id = self.fleet._table_id(self.name)
        return self._pending_id

    @property
    def lr(self) -> float:
        """The learning rate of training with `cistern_ps.torch` and `cistern_ps.rows`; may be set at any time."""
        return self._lr

    @lr.setter
    def lr(self, value: float) -> None:
        self._lr = float(number("lr", value, 0))

    @property
    def dim(self) -> int:
        """Floats of a row, without its optimizer state."""
        spec = self.fleet._spec_of(self.name)
        assert spec is not None
        return int(spec["dim"])

    @property
    def is_bounded(self) -> bool:
        """Whether the servers remove rows on their own (`Bounds`)."""
        spec = self.fleet._spec_of(self.name)
        return spec is not None and "bounds" in spec

    @property
    def floats(self) -> int:
        """Floats of a row with its optimizer state."""
        table = self._id
        return self.fleet.native.floats(table)

    def pull(self, keys: Any, out: Any = None, absent: str = "first", state: bool = False) -> Any:
        """Reads committed rows: [n, dim], or with `state` the whole values [n, floats].

        keys: int64 or uint64 [n], numpy or torch, read without a copy; they may repeat. out: float32 of the result's
        shape, written in place and returned. absent: what keys read that the table does not have: "first", the value
        with which their training would start, or "zero".

        Raises TypeError naming the argument for another type; nothing is converted.
        """
        if absent not in ("first", "zero"):
            raise UsageError(f'absent={absent!r}: expected "first" or "zero"')
        rows: Any = self.fleet.native.pull(self._id, keys, out, absent == "zero", state)
        return rows if out is not None else _like(keys, rows)

    def push(self, keys: Any, rows: Any) -> None:
        """Writes rows at the next `Fleet.commit`: [n, dim], which keeps their optimizer state, or whole values [n, floats].

        keys: int64 or uint64 [n]. rows: float32. numpy or torch, read without a copy. Each key at most once between two
        commits, which `commit` checks. After an error, or Ctrl-C in the middle, `Fleet.abort` drops what was pushed.
        """
        self.fleet.push_begins(self.name)
        self.fleet.native.push(self._id, keys, rows)

    def scan(self, piece: int = 65536) -> "Iterator[Tuple[npt.NDArray[Any], npt.NDArray[Any]]]":
        """Streams all committed rows: (keys int64 [n], whole values [n, floats]) with n <= piece, by shard."""
        integer("piece", piece, 1)
        pieces: "queue.Queue[Any]" = queue.Queue(maxsize=2)
        ended = threading.Event()

        def visit(keys: Any, values: Any) -> bool:
            while not ended.is_set():
                try:
                    pieces.put((keys, values), timeout=0.1)
                    return True
                except queue.Full:
                    continue
            return False

        def run(table: int) -> None:
            try:
                self.fleet.native.scan(table, visit, piece)
                last: Any = None
            except BaseException as error:  # handed to the caller below
                last = error
            while not ended.is_set():
                try:
                    pieces.put(last, timeout=0.1)
                    return
                except queue.Full:
                    continue

        thread = threading.Thread(target=run, args=(self._id,), daemon=True)
        thread.start()
        interrupted = False
        try:
            while True:
                item = pieces.get()
                if item is None:
                    return
                if isinstance(item, BaseException):
                    raise item
                yield item
        except KeyboardInterrupt:
            interrupted = True  # a server may not answer for long: the thread ends by itself
            raise
        finally:
            ended.set()
            if not interrupted:
                thread.join()

    def to_arrow(self, keys: Any = None) -> Any:
        """The same as `to_pandas`, as a pyarrow.Table (needs pyarrow)."""
        import pyarrow as pa

        names = ["key", *self.field_names]
        if keys is not None:
            columns = [keys.numpy() if _is_torch(keys) else keys, *self.pull(_numpy(keys), state=True).T]
            return pa.table([pa.array(c) for c in columns], names=names)
        schema = pa.schema([("key", pa.int64()), *((n, pa.float32()) for n in self.field_names)])
        return pa.Table.from_batches((pa.record_batch([k, *v.T], schema=schema) for k, v in self.scan()), schema)

    def to_pandas(self, keys: Any = None) -> "pd.DataFrame":
        """Rows as a DataFrame with the columns key, w[0] ..., and the optimizer's state.

        keys: these rows, absent ones with their first value; None: all rows of the table.
        """
        import numpy as np
        import pandas as pd

        if keys is not None:
            keys = _numpy(keys)
            values = self.pull(keys, state=True)
        else:
            pieces = list(self.scan())
            keys = np.concatenate([k for k, _ in pieces]) if pieces else np.empty(0, np.int64)
            values = np.concatenate([v for _, v in pieces]) if pieces else np.empty((0, self.floats), np.float32)
        frame = pd.DataFrame(values, columns=self.field_names)
        frame.insert(0, "key", keys)
        return frame

    @property
    def field_names(self) -> List[str]:
        """The names of a whole value's floats."""
        return self.fleet.native.field_names(self._id)

    @property
    def rows(self) -> _native.Rows:
        """The rows of a training loop on this table (`cistern_ps.torch`): for this package."""
        if self._rows is None:
            self._rows = _native.Rows(self.fleet.native, self._id)
        return self._rows

    @property
    def has_trained_rows(self) -> bool:
        """Whether steps have moved rows that no commit has: for this package."""
        return self._rows is not None and self._rows.changed > 0

    def committed(self, was_pushed: bool) -> None:
        """After a commit of trained rows and, if `was_pushed`, of rows that were pushed: for this package."""
        if self._rows is None:
            return
        self._rows.committed()
        if was_pushed or self.is_bounded:  # those here may be others, or gone
            self.pending.clear()
            self._rows.clear()

    def __copy__(self) -> "Table":
        return self

    def __deepcopy__(self, memo: Any) -> "Table":
        return self  # copies of a model share its rows

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise no_pickle(f"table {self.name!r}")

    def __len__(self) -> int:
        return sum(int(t["rows"]) for s in self.fleet.status() for t in s["tables"] if t["name"] == self.name)

    def __repr__(self) -> str:
        return f"<Table {self.name!r}: dim {self.dim}, {self.fleet!r}>"


def _numpy(keys: Any) -> Any:
    return keys.numpy() if _is_torch(keys) else keys
