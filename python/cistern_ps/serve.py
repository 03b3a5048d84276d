"""Predictions from a serving folder (`cistern_ps.export`), in this process and without servers."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, Sequence, Tuple, Union

from . import _native
from .data import Batch
from .errors import UsageError
from .frames import Data, files_of

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True)
class Prediction:
    """Probabilities of a batch.

    Attributes:
        probabilities: float32 [samples], or [samples, labels].
        commit: the one commit that predicted all of them.
        unseen_keys: occurrences of keys for which the model has no row; they count as zeros.
    """

    probabilities: Any
    commit: int
    unseen_keys: int

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        import numpy as np

        return np.asarray(self.probabilities, dtype)

    def __len__(self) -> int:
        return len(self.probabilities)


class Model:
    """An exported model that follows its folder: a newer version replaces it between two calls. Made by `open`.

    Any number of threads may predict at the same time. Pickled, for another process or machine, it is opened there
    from the same path.
    """

    def __init__(self, folder: str, *options: Any):
        self._opened = (folder, *options)
        self._native = _native.open_serving(*self._opened)
        self._shape = self._native.shape

    def __reduce__(self) -> "Tuple[Any, ...]":
        return type(self), self._opened

    def predict(self, batch: "Union[Batch, Data]", add_column: "Union[str, Sequence[str]]" = ()) -> Prediction:
        """Predicts a batch of `cistern_ps.data`, or anything with its fields (numpy or torch); or what `cistern_ps.predict`
        takes: rows as dicts, a data frame, or a table of text, which the recipe of the model encodes. add_column: columns
        that such rows lack; they are empty in all of them.
        """
        added = [add_column] if isinstance(add_column, str) else list(add_column)
        if not all(hasattr(batch, field) for field in ("size", "dense", "inputs")):
            if batch is None:
                raise TypeError("batch: expected a Batch of cistern_ps.data, or rows; got None")
            with files_of("batch", batch) as files:
                return _prediction(*self._native.predict_rows(self._opened[0], files, added))
        if added:
            raise UsageError("add_column: columns can be added to rows, not to a batch of keys")
        given: Any = batch
        weights = getattr(given, "key_weights", None) or [None] * len(given.inputs)
        if len(weights) != len(given.inputs):
            raise UsageError(f"key_weights: {len(weights)} of them for {len(given.inputs)} inputs: expected one for each, or None")
        inputs = [(_numpy(k), _numpy(o), None if w is None else _numpy(w)) for (k, o), w in zip(given.inputs, weights)]
        return _prediction(*self._native.predict(given.size, _numpy(given.dense), inputs))

    def follow(self) -> bool:
        """Looks for a newer version now; true if there is one, which is used from now on."""
        return self._native.follow()

    @property
    def commit(self) -> int:
        """The commit that is served."""
        return self._native.commit

    @property
    def shape(self) -> Dict[str, Any]:
        """What a sample consists of: labels, dense, inputs [(name, slots)], key_weights [name of an input whose keys have them]."""
        return self._shape

    def __repr__(self) -> str:
        inputs = ", ".join(f"{n} with {s} slots" for n, s in self._shape["inputs"])
        return f"<serve.Model {self._native.name!r}, commit {self.commit}: dense {self._shape['dense']}, {inputs}>"


def _prediction(values: Any, commit: int, unseen: int) -> Prediction:
    return Prediction(values[:, 0] if values.shape[1] == 1 else values, commit, unseen)


def _numpy(array: Any) -> "npt.NDArray[Any]":
    return array.numpy() if hasattr(array, "detach") else array


def open(folder: "str | os.PathLike[str]", threads: int = 0, max_samples: int = 16384, poll_ms: int = 200,
         verify: bool = False, version: str = "") -> Model:
    """Opens the current version of a serving folder.

    threads: predictions at the same time; 0: one per core. poll_ms: how often to look for a newer version; 0: only
    `Model.follow` does. verify: checks every byte of the rows first. version: serves only this one.
    """
    return Model(os.path.join(os.getcwd(), os.fspath(folder)), threads, max_samples, poll_ms, verify, version)
