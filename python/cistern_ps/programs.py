"""The programs that the package brings: cistern, cistern-server and cistern-worker."""

from __future__ import annotations

import os
import pathlib
import shutil
import sys
from typing import NoReturn

from .errors import UsageError


def find(name: str) -> str:
    """The path of a program: the package's own, else the one of a build or in PATH."""
    here = pathlib.Path(__file__).parent
    for folder in (here / "bin", os.environ.get("CISTERN_BIN"), here.parent.parent / "bin"):
        if not folder or not pathlib.Path(folder, name).is_file():
            continue
        path = pathlib.Path(folder, name)
        if os.access(path, os.X_OK):
            return str(path)
        raise UsageError(
            f"{path} may not be executed",
            f"chmod +x {path.parent}/cistern*; where programs are forbidden (a file system mounted with noexec), install "
            "the package elsewhere, or copy its programs and set CISTERN_BIN to their folder",
        )
    found = shutil.which(name)
    # This package's console scripts lead here again.
    if found and pathlib.Path(found).parent != pathlib.Path(sys.executable).parent:
        return found
    raise UsageError(f"the program {name} is missing", "install the wheel, or set CISTERN_BIN to a build's bin folder")


def _become(name: str) -> NoReturn:
    path = find(name)
    os.execv(path, [path, *sys.argv[1:]])


def cistern() -> NoReturn:
    """The console script `cistern`."""
    _become("cistern")


def server() -> NoReturn:
    """The console script `cistern-server`."""
    _become("cistern-server")


def worker() -> NoReturn:
    """The console script `cistern-worker`."""
    _become("cistern-worker")
