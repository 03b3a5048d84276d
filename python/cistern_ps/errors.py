"""The errors of Cistern: what happened, what to do about it, and the exit code of the programs."""

from __future__ import annotations

from typing import Any


class Error(Exception):
    """An error of Cistern.

    Attributes:
        fix: what to do about it; empty if the message already says so.
        exit_code: the exit code of the programs for this error (`cistern --help` lists them).
        code: the name of the status, such as "NOT_FOUND".
        report: what was found although it failed, as a dict: of `verify`, `status` and the like; None: nothing.
    """

    exit_code = 1
    report: Any = None

    def __init__(self, message: str, fix: str = "", code: str = "INTERNAL", exit_code: int | None = None):
        super().__init__(message)
        self.fix = fix
        self.code = code
        if exit_code is not None:
            self.exit_code = exit_code

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message}\nfix: {self.fix}" if self.fix else message

    def in_words_of(self, path: str, name: str) -> "Error":
        """The same error, with `name` in place of `path`, a file that the user has not written; for this package."""
        told = type(self)(super().__str__().replace(path, name), self.fix.replace(path, name), self.code, self.exit_code)
        told.report = self.report
        return told

    def __reduce__(self) -> "tuple[Any, ...]":
        return type(self), (super().__str__(), self.fix, self.code, self.exit_code)


class UsageError(Error, ValueError):
    """A wrong argument, model file or configuration (exit code 2)."""

    exit_code = 2


class UnreachableError(Error, ConnectionError):
    """A server of the fleet does not answer (exit code 3)."""

    exit_code = 3


class DataError(Error, ValueError):
    """A data file is damaged or has another shape (exit code 4)."""

    exit_code = 4


class CheckpointError(Error):
    """A commit or a saved model is damaged (exit code 5)."""

    exit_code = 5


class Interrupted(Error):
    """A run was interrupted, with its state saved (exit code 130)."""

    exit_code = 130


_BY_EXIT_CODE = {c.exit_code: c for c in (UsageError, UnreachableError, DataError, CheckpointError, Interrupted)}


def make_error(message: str, fix: str, exit_code: int, code: str) -> Error:
    """The error of an exit code. For the bindings."""
    return _BY_EXIT_CODE.get(exit_code, Error)(message, fix, code, exit_code)


def no_pickle(what: str) -> UsageError:
    """The error of pickling what only this process can use: for this package."""
    return UsageError(
        f"{what} cannot be pickled: it is a connection to servers, for this process alone",
        "save model.state_dict(), whose rows are those of a commit, not the model; in another process, open the fleet "
        "there (cs.connect, cs.local) and make the model anew",
    )
