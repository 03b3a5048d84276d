"""Servers of a fleet on this machine, as processes of their own."""

from __future__ import annotations

import os
import pathlib
import subprocess
import weakref
from typing import Any, List, Optional

from . import programs
from .errors import Error


class Servers:
    """cistern-server processes on loopback, which end with this object. Made by `start`; use it in a `with` statement.

    Attributes:
        addresses: for `cistern_ps.connect`.
    """

    def __init__(self, processes: "List[subprocess.Popen[str]]", addresses: str):
        self._processes = processes
        self._end = weakref.finalize(self, _end, processes, os.getpid())  # at the latest when Python ends
        self.addresses = addresses

    def stop(self) -> None:
        """Ends the servers; commits stay in their folder."""
        self._end()

    def __enter__(self) -> "Servers":
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<Servers {self.addresses}>" if self._end.alive else "<Servers, stopped>"


def _end(processes: "List[subprocess.Popen[str]]", owner: int) -> None:
    if os.getpid() != owner:  # a fork of the process that started them
        return
    for process in processes:
        process.terminate()
    for process in processes:
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def start(count: int, folder: "str | os.PathLike[str] | None" = None, memory_limit_mb: float = 0) -> Servers:
    """Starts `count` servers that share `folder`, where they keep commits and logs (None: in memory, no logs).

    memory_limit_mb: memory of each server for rows and the pushes of a pass, in MiB; rows that few passes need stay in
    the files of `folder`; 0: every row is in memory.

    Ctrl-C does not reach them: a training that it stops can still save its state there.
    """
    if folder is not None:
        pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    servers = Servers([], "")
    addresses: List[str] = []
    try:
        for rank in range(count):
            servers._processes.append(_start_one(rank, count, folder, memory_limit_mb))
        for rank, process in enumerate(servers._processes):
            line = process.stdout.readline() if process.stdout is not None else ""
            if "port=" not in line:
                raise Error(f"server {rank} did not start", f"see its log in {folder}" if folder else "")
            addresses.append("127.0.0.1:" + line.split("port=")[1].split()[0])
    except BaseException:
        servers.stop()
        raise
    servers.addresses = ",".join(addresses)
    return servers


def _start_one(rank: int, count: int, folder: "Optional[str | os.PathLike[str]]",
               memory_limit_mb: float) -> "subprocess.Popen[str]":
    command = [programs.find("cistern-server"), f"--rank={rank}", f"--server_num={count}", "--port=0",
               f"--memory_limit_mb={memory_limit_mb!r}"]
    def popen(command: List[str], log: Any) -> "subprocess.Popen[str]":
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True)

    if folder is None:
        return popen(command, subprocess.DEVNULL)
    with open(pathlib.Path(folder, f"server-{rank}.log"), "a", encoding="utf-8") as log:
        return popen([*command, f"--data_dir={os.fspath(folder)}"], log)
