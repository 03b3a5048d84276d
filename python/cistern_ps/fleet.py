"""Fleets, tables and commits."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Optional, Set, Tuple, Union

from . import _native
from .arguments import instance, integer, number, optional
from .errors import Error, UsageError, no_pickle
from .rules import Bounds, Init, Rule, SGD, Uniform
from .table import Table, spec_difference

if TYPE_CHECKING:
    import numpy as np


SESSION_FORMAT = "cistern_ps.torch 1"  # of what a torch Session keeps in a commit


def is_session_state(worker: Any) -> bool:
    """Whether a commit's `worker` is what a torch Session keeps: for this package."""
    return isinstance(worker, dict) and worker.get("format") == SESSION_FORMAT


@dataclass(frozen=True)
class Commit:
    """A durable state of a fleet: all tables as of one moment.

    Attributes:
        number: 1, 2, 3 ...; 0 if the fleet keeps nothing on disk.
        commit_pass: the committed pass.
        rows: by table.
        digests: by table: the sum over all rows of a hash of (key, value), so two states with equal digests have the
            same bits. `cistern ckpt diff` compares the same numbers.
        worker: what the writer put beside the rows, such as the place in its data.
    """

    number: int
    commit_pass: int
    rows: Dict[str, int] = field(default_factory=dict)
    digests: Dict[str, int] = field(default_factory=dict)
    worker: Any = field(default=None, repr=False)

    @property
    def digest(self) -> str:
        """One number over all tables, in hex."""
        return f"{sum(self.digests.values()) % 2**64:016x}"

    def __str__(self) -> str:
        return f"commit {self.number}: {sum(self.rows.values())} rows, digest {self.digest}"


def _check_known(known: Dict[str, Any], wanted: Dict[str, Any], given: List[str], row_type: Optional[str]) -> None:
    """UsageError if a table of the servers differs from `wanted` in its dim, in a given part or in its row_type."""
    name, has_type = wanted["name"], known.get("row_type", "FLOAT32").lower()
    difference = spec_difference(known, wanted, given)
    if not difference and row_type not in (None, has_type):
        difference = f"row_type: {has_type}, not {row_type}"
    if difference:
        raise UsageError(f"table {name!r} exists with another {difference}",
                         f"use what it has, or leave it out: fleet.table({name!r})")


class Fleet:
    """The servers of a model. Made by `connect` or `local`; usable in a `with` statement.

    All tables of a fleet are created together, by the first call that needs the servers to have them. Declare them all
    first (`table`, and a `cistern_ps.torch.Session` if there is one).
    """

    def __init__(self, native: _native.Fleet, name: str, folder: str = "", servers: str = ""):
        self._native = native
        self._name = name
        self._folder = folder
        self._servers = servers
        self._declared: Dict[str, Dict[str, Any]] = {}
        self._declared_dense: Dict[str, Dict[str, Any]] = {}
        self._tables: Dict[str, Table] = {}
        self._schema = json.loads(native.schema())
        self._creating = threading.Lock()
        self.session_steps = 0  # of a torch Session, that no commit has
        self._pushed: Set[str] = set()  # tables, by Table.push since the last commit

    @property
    def native(self) -> _native.Fleet:
        """The binding's object: for this package."""
        return self._native

    @property
    def tables(self) -> List[str]:
        """The names of the tables that the servers have or will have."""
        created = [t["name"] for t in self._schema["tables"]]
        return created + [name for name in self._declared if name not in created]

    @property
    def state(self) -> str:
        """The folder of this fleet's commits, for `cistern_ps.commits`, `diff` and `export`."""
        if not self._folder:
            raise UsageError(f"{self._name} has no folder of commits on this machine",
                             'open it with one: cs.local("runs/a"), or name the data_dir of the servers')
        return os.path.join(self._folder, "state")

    @property
    def servers(self) -> str:
        """The addresses of the servers, "host:port,host:port"; empty if they are in this process."""
        return self._servers

    def refresh(self) -> None:
        """Reads which tables the servers have, after something else has made them: for this package."""
        self._schema = json.loads(self._native.schema())

    @property
    def is_created(self) -> bool:
        """Whether the servers have tables."""
        return bool(self._schema["tables"] or self._schema["dense_tables"])

    def table(
        self,
        name: str,
        dim: Optional[int] = None,
        rule: Optional[Rule] = None,
        init: Optional[Init] = None,
        seed: int = 0,
        bounds: Optional[Bounds] = None,
        row_type: Optional[str] = None,
    ) -> Table:
        """The table `name`: declared, or found on the servers and checked.

        dim: floats of a row; not needed for a table that exists. rule: how rows are trained (default `SGD`); also
        the learning rate of `cistern_ps.torch`. init: first values (default `Uniform(0.05)`). seed: of the first values.
        bounds: which rows the servers remove on their own (default: none). row_type: "bfloat16" stores and sends weights
        and their state in 16 bits, rounded at each commit; "float32" is the default.

            >>> fleet = cs.local()
            >>> user = fleet.table("user", dim=4, rule=cs.Adam(lr=0.01), init=cs.Uniform(0.1))
            >>> user.pull(np.array([7, 8])).shape
            (2, 4)
        """
        instance("name", name, str, "a str")
        optional("rule", rule, Rule, "a rule, such as cs.Adam(lr=0.001)")
        optional("init", init, Init, "first values, such as cs.Uniform(0.05)")
        optional("bounds", bounds, Bounds, "bounds, such as cs.Bounds(max_rows=1_000_000)")
        if row_type not in (None, "float32", "bfloat16"):
            raise UsageError(f'row_type={row_type!r}: expected "float32" or "bfloat16"')
        integer("seed", seed, most=2**64 - 1)
        if dim is not None:
            dim = integer("dim", dim, 1, 4096)
        known = self._spec_of(name)
        if known is None and self.is_created:
            raise UsageError(
                f"{self._name} has no table {name!r}; it has {', '.join(self.tables) or 'none'}",
                "declare all tables before the first call that uses one, or use another folder or fleet",
            )
        if known is None and dim is None:
            raise UsageError(f"table {name!r} does not exist yet, so it needs dim")
        if dim is not None:
            parts: Dict[str, Union[Rule, Init, Bounds, None]] = {"rule": rule, "initializer": init, "bounds": bounds}
            given = {part: value.spec() for part, value in parts.items() if value is not None}
            wanted = {"name": name, "accessor": "EMBEDDING", "dim": dim, "rule": SGD().spec(),
                      "initializer": Uniform().spec(), "seed": str(seed), **given}
            if known is not None:
                _check_known(known, wanted, list(given), row_type)
            else:
                if row_type == "bfloat16":  # without it, the schema is that from before there was this field
                    wanted["row_type"] = "BFLOAT16"
                self._declared[name] = wanted
        if name not in self._tables:
            self._tables[name] = Table(self, name, rule)
        elif rule is not None:
            self._tables[name].rule, self._tables[name].lr = rule, rule.lr
        return self._tables[name]

    def declare_dense(self, name: str, rows: int, columns: List[str]) -> None:
        """Declares a table of `rows` x `columns` floats, which is read and written as a whole: for this package."""
        for spec in self._schema["dense_tables"]:
            if spec["name"] == name:
                if int(spec["rows"]) == rows and spec["columns"] == columns:
                    return
                raise UsageError(
                    f"the dense table {name!r} exists with {spec['rows']} rows of {spec['columns']}; this needs "
                    f"{rows} rows of {columns}",
                    "restore with the model and the optimizer that were committed, or use another folder",
                )
        if self.is_created:
            raise UsageError(
                f"{self._name} has tables, but not the dense table {name!r}",
                "make the Session before the first call that uses a table, or use another folder",
            )
        self._declared_dense[name] = {"name": name, "rows": str(rows), "columns": columns}

    def create(self) -> None:
        """Creates the declared tables now. Calls that use a table do this by themselves."""
        with self._creating:  # threads may begin with their first calls at once
            if not self._declared and not self._declared_dense:
                if not self.is_created:
                    raise UsageError(f"{self._name} has no tables", 'declare one: fleet.table("user", dim=16)')
                return
            schema = {"tables": list(self._declared.values()), "dense_tables": list(self._declared_dense.values())}
            self._native.create(json.dumps(schema))
            self._schema = json.loads(self._native.schema())
            self._declared.clear()
            self._declared_dense.clear()

    def commit(self, worker: Any = None, durable: bool = True) -> Commit:
        """Makes everything since the last commit the state of the fleet: all of it, or nothing.

        That is what was pushed, and all rows that `RowOptimizer.step` or `LocalRows.step` have moved. worker: kept in
        the commit, such as the place in the data; anything that is JSON. durable=False: the servers keep the state in
        memory only, and the next durable commit writes it.
        """
        if self.session_steps and not is_session_state(worker):
            raise UsageError(f"a Session has {self.session_steps} steps that no commit has: Fleet.commit would keep "
                             "their rows without the dense weights", "commit with the session: s.commit()")
        self.create()
        if worker is None:  # dense weights that a session has committed stay with the rows
            self._native.begin()
            last = self.last_commit().worker
            worker = last if is_session_state(last) else None
        trained = [t for t in self._tables.values() if t.has_trained_rows]
        try:
            for table in trained:
                table.rows.push_changed()
            self._native.commit("" if worker is None else json.dumps(worker), durable)
        except Exception:
            if trained and not self._pushed:
                with contextlib.suppress(Error):  # so that the next attempt pushes everything anew
                    self._native.abort()
            raise
        for table in self._tables.values():
            table.committed(was_pushed=table.name in self._pushed)
        self._pushed.clear()
        return self.last_commit()

    def push_begins(self, table: str) -> None:
        """Notes a push of rows: for this package."""
        self._pushed.add(table)

    def abort(self) -> None:
        """Drops what was pushed since the last commit; rows that were trained in this process stay trained."""
        self._pushed.clear()
        self._native.abort()

    def __copy__(self) -> Fleet:
        return self

    def __deepcopy__(self, memo: Any) -> Fleet:
        return self  # a copy of a model uses the same servers

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise no_pickle("a fleet")

    def claim(self) -> Commit:
        """Becomes the only writer; older writers are refused from now on. Returns the state that it starts from.

        The first push or commit does this by itself.
        """
        self.create()
        self._native.claim()
        return self.last_commit()

    def last_commit(self) -> Commit:
        """The newest durable commit that this writer made or found when it claimed the fleet."""
        manifest = json.loads(self._native.manifest())
        if not int(manifest["commit"]):
            return Commit(0, self._native.committed_pass)
        states = manifest["tables"] + manifest["dense_tables"]
        return Commit(
            number=int(manifest["commit"]),
            commit_pass=int(manifest["pass"]),
            rows={t["name"]: int(t["rows"]) for t in manifest["tables"]},
            digests={t["name"]: int(t["digest"]) for t in states},
            worker=json.loads(manifest["worker"]) if manifest["worker"] else None,
        )

    def status(self, digest: bool = False) -> List[Dict[str, Any]]:
        """What each server says of itself: rows, memory, commit. digest: also the tables' digests (reads all rows)."""
        return json.loads(self._native.stats(digest))

    def digests(self) -> Dict[str, int]:
        """The digest of each table, computed from the servers' memory."""
        sums: Dict[str, int] = {}
        for server in self.status(digest=True):
            for table in server["tables"] + server["dense_tables"]:
                sums[table["name"]] = (sums.get(table["name"], 0) + int(table["digest"])) % 2**64
        return sums

    def close(self) -> None:
        """Closes the connections, or ends the servers in this process. Uncommitted changes are dropped."""
        self._tables.clear()
        self._native.close()

    def __enter__(self) -> Fleet:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._native.closed:
            return f"<Fleet {self._name}, closed>"
        kept = "durable" if self._native.durable else "in memory"
        return f"<Fleet {self._name}: {self._native.server_num} servers, {kept}, tables: {', '.join(self.tables) or 'none'}>"

    def _spec_of(self, name: str) -> Optional[Dict[str, Any]]:
        for spec in self._schema["tables"]:
            if spec["name"] == name:
                return spec
        return self._declared.get(name)

    def _table_id(self, name: str) -> int:
        self.create()
        for i, spec in enumerate(self._schema["tables"]):
            if spec["name"] == name:
                return i
        raise Error(f"no table {name!r}")

    def _dense_id(self, name: str) -> int:
        self.create()
        for i, spec in enumerate(self._schema["dense_tables"]):
            if spec["name"] == name:
                return i
        raise Error(f"no dense table {name!r}")


def connect(servers: "str | Iterable[str]", cluster: str = "cistern", timeout: float = 20.0, take_over: bool = False,
            tls_ca: "str | os.PathLike[str] | None" = None, tls_cert: "str | os.PathLike[str] | None" = None,
            tls_key: "str | os.PathLike[str] | None" = None) -> Fleet:
    """Connects to the servers of a fleet: "host:port,host:port", all of them, in any order.

    timeout: how long to retry a server that does not answer, in seconds. take_over: a push claims the fleet even from
    a writer that is at work. tls_ca, tls_cert, tls_key: for servers behind TLS, the files with the certificate of their
    authority, with the certificate to show them, and with its key; None: as CISTERN_TLS_CA, CISTERN_TLS_CERT and
    CISTERN_TLS_KEY say, which every function that takes `servers` obeys.
    """
    if isinstance(servers, (str, bytes)) or not hasattr(servers, "__iter__"):
        servers = instance("servers", servers, str, 'a str, "host:port,host:port", or several of them')
    text = servers if isinstance(servers, str) else ",".join(servers)
    number("timeout", timeout)
    if not text:
        raise UsageError("connect: no servers", 'name them: cs.connect("host:7700,host:7701"), or use cs.local()')
    files = [os.fspath(path) if path is not None else "" for path in (tls_ca, tls_cert, tls_key)]
    return Fleet(_native.Fleet.open(text, 1, "", 0.0, [], cluster, timeout, take_over, *files), text, servers=text)


def local(folder: "str | os.PathLike[str] | None" = None, servers: int = 1, memory_limit_mb: float = 0) -> Fleet:
    """Starts servers inside this process.

    folder: they keep their commits in `folder`/state and start from the newest one there; None: in memory only. Any
    number of servers gives the same bits. memory_limit_mb: as in `train`.
    """
    integer("servers", servers, 1, 64)
    return _embedded("" if folder is None else os.fspath(folder), servers, memory_limit_mb, [])


def _embedded(root: str, servers: int, memory_limit_mb: float, pass_caches: "List[Tuple[str, int, float, int]]") -> Fleet:
    """pass_caches: of tables whose memory is counted in passes: name, num_blocks, target_hit_rate, max_num_evict."""
    if root:
        os.makedirs(root, exist_ok=True)
    native = _native.Fleet.open("", servers, root, memory_limit_mb, pass_caches, "cistern", 20.0, False, "", "", "")
    return Fleet(native, root or "in memory", root)
