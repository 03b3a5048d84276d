"""Rows in memory as files: what reads tables of text reads data frames, too."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pathlib
import tempfile
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Mapping, Sequence, Union

from .errors import Error, UsageError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

Path = Union[str, "os.PathLike[str]"]
Frame = Union["pd.DataFrame", "pl.DataFrame", "pa.Table"]
# Paths; a frame; or rows: {column: values}, {column: value} for one row, or a sequence of these.
Data = Union[Path, Sequence[Path], Frame, Mapping[str, Any], Sequence[Mapping[str, Any]], None]


def is_frame(data: Any) -> bool:
    """Whether `data` is a data frame of pandas or polars (also a lazy one), or a table, batch or reader of Arrow."""
    is_lazy = callable(getattr(data, "collect", None)) and callable(getattr(data, "collect_schema", None))
    is_reader = callable(getattr(data, "read_all", None)) and hasattr(data, "schema")
    has_rows = any(callable(getattr(data, name, None)) for name in ("to_csv", "write_parquet", "to_pylist"))
    return is_lazy or is_reader or (has_rows and hasattr(data, "columns"))


def _is_path(value: Any) -> bool:
    return isinstance(value, (str, os.PathLike))


@contextlib.contextmanager
def files_of(name: str, data: Data) -> Iterator[List[str]]:
    """The paths in `data`; rows in memory are in a file for the time of the block. name: of the argument, for errors."""
    if data is None:
        yield []
        return
    if _is_path(data):
        yield [os.fspath(data)]  # type: ignore[arg-type]
        return
    rows: Any = data if is_frame(data) else _without_frame(name, data)
    if isinstance(rows, list) and all(_is_path(d) for d in rows):
        yield [os.fspath(d) for d in rows]
        return
    with tempfile.TemporaryDirectory() as folder:
        path = _write(name, rows, pathlib.Path(folder, name))
        try:
            yield [path]
        except Error as error:  # the file is not the user's
            raise error.in_words_of(path, name) from None


def _without_frame(name: str, data: Any) -> Any:
    """Columns as a dict, or a list of paths or rows."""
    if isinstance(data, Mapping):
        return data
    if callable(getattr(data, "to_dict", None)) and hasattr(data, "index"):  # a row or column of a pandas frame
        return dict(data.to_dict())
    names = getattr(getattr(data, "dtype", None), "names", None)
    if names:  # a structured array of numpy
        return {column: data[column] for column in names}
    if hasattr(data, "dtype") or isinstance(data, (bytes, io.IOBase)) or not isinstance(data, Iterable):
        hint = "; name its columns: pandas.DataFrame(array, columns=[...])" if hasattr(data, "dtype") else ""
        raise TypeError(f"{name}: expected paths, a data frame, or rows as dicts; got {type(data).__name__}{hint}")
    rows = list(data)
    if not rows:
        raise UsageError(f"{name}: an empty list", "name files, or give rows")
    return rows


def _write(name: str, data: Any, stem: pathlib.Path) -> str:
    """Writes rows to `stem` with an ending."""
    if is_frame(data):
        return str(_write_frame(data, stem))
    rows = _rows_of_columns(name, data) if isinstance(data, Mapping) else data
    for row in rows:
        if not isinstance(row, Mapping):
            raise TypeError(f"{name}: expected paths, a data frame, or rows as dicts; got a row of {type(row).__name__}; "
                            "name its columns: dict(zip(columns, row))")
    path = stem.with_suffix(".jsonl")
    with open(path, "w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(dict(row), default=_plain) + "\n")
    return str(path)


def _is_column(value: Any) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, (str, bytes, Mapping))


def _rows_of_columns(name: str, columns: Mapping[str, Any]) -> List[Dict[str, Any]]:
    if not all(_is_column(values) for values in columns.values()):
        return [dict(columns)]  # one row, whose fields may hold several values
    lengths = {column: len(values) for column, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"{name}: columns of different lengths: {lengths}")
    return [dict(zip(columns, values)) for values in zip(*columns.values())]


def _plain(value: Any) -> Any:
    """What json cannot write: numpy's numbers and arrays, and times."""
    for method in ("tolist", "isoformat"):
        if callable(getattr(value, method, None)):
            return getattr(value, method)()
    return str(value)


def _write_frame(frame: Any, stem: pathlib.Path) -> pathlib.Path:
    """As Parquet, which keeps types and lists; what Parquet cannot hold, and without pyarrow, as CSV."""
    path = stem.with_suffix(".parquet")
    if callable(getattr(frame, "collect", None)):  # lazy, of polars
        frame = frame.collect()
    if callable(getattr(frame, "write_parquet", None)):  # polars
        frame.write_parquet(path)
        return path
    if callable(getattr(frame, "read_all", None)):  # a reader of Arrow
        frame = frame.read_all()
    if callable(getattr(frame, "to_pylist", None)):  # Arrow
        import pyarrow.parquet

        table = frame if isinstance(frame, pyarrow.Table) else pyarrow.Table.from_batches([frame])
        pyarrow.parquet.write_table(table, path)
        return path
    # An index with a name is a column, as after set_index and groupby.
    kept = [level for level in frame.index.names if level is not None and level not in frame.columns]
    frame = frame.reset_index(level=kept) if kept else frame.copy(deep=False)
    frame.columns = [str(column) for column in frame.columns]
    try:
        import pyarrow
    except ImportError:
        return _write_csv(frame, stem)
    try:
        frame.to_parquet(path, engine="pyarrow", index=False)
    except pyarrow.ArrowException:  # values of several types in a column
        return _write_csv(frame, stem)
    return path


def _write_csv(frame: Any, stem: pathlib.Path) -> pathlib.Path:
    path = stem.with_suffix(".csv")
    frame.to_csv(path, index=False)
    return path
