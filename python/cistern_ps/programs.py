"""The programs that the package brings: cistern, cistern-server and cistern-worker."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
from typing import Any, Callable, Dict, List, NoReturn, Optional, Sequence

from .errors import UsageError, make_error

_CODES = {1: "INTERNAL", 2: "INVALID_ARGUMENT", 3: "UNAVAILABLE", 4: "DATA_LOSS", 5: "DATA_LOSS", 130: "CANCELLED"}


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


def run_json(arguments: Sequence[str], on_line: Optional[Callable[[str], None]] = None) -> Any:
    """Runs `cistern ARGUMENTS --json` and returns what it prints.

    on_line: gets the lines that the program writes while it works. Ctrl-C lets the program save its state, as in a
    terminal, and raises KeyboardInterrupt. A failure is the same error as the program's, with its fix and exit code.
    """
    command = [find("cistern"), *arguments, "--json"]
    # The program's own group: this process decides what Ctrl-C means for it.
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        encoding="utf-8", errors="backslashreplace"  # messages name paths, which are any bytes
    )
    notes: List[str] = []
    with process:  # closes the pipes
        try:
            out = _communicate(process, notes, on_line)
        except BaseException:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
            raise
    if process.returncode == 0:
        return json.loads(out) if out.strip() else None
    message = next((line[7:] for line in notes if line.startswith("error: ")), "\n".join(notes[-3:]))
    fix = next((line[5:] for line in notes if line.startswith("fix: ")), "")
    error = make_error(message or f"{command[0]} ended with {process.returncode}", fix, process.returncode,
                       _CODES.get(process.returncode, "INTERNAL"))
    error.report = json.loads(out) if out.strip() else None
    raise error


def _communicate(process: "subprocess.Popen[str]", notes: List[str], on_line: Optional[Callable[[str], None]]) -> str:
    import threading

    assert process.stdout is not None and process.stderr is not None
    output: List[str] = []
    reader = threading.Thread(target=lambda: output.append(process.stdout.read()), daemon=True)  # type: ignore[union-attr]
    reader.start()
    for line in process.stderr:
        notes.append(line.rstrip("\n"))
        if on_line is not None:
            on_line(notes[-1])
    reader.join()
    process.wait()
    return "".join(output)


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
