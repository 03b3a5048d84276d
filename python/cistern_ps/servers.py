"""Servers of a fleet on this machine, as processes of their own."""

from __future__ import annotations

import os
import pathlib
import subprocess
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
        self.addresses = addresses

    def stop(self) -> None:
        """Ends the servers; commits stay in their folder."""
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
        self._processes = []

    def __enter__(self) -> "Servers":
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<Servers {self.addresses}>" if self._processes else "<Servers, stopped>"


def start(count: int, folder: "str | os.PathLike[str] | None" = None) -> Servers:
    """Starts `count` servers that share `folder`, where they keep commits and logs (None: in memory, no logs)."""
    if folder is not None:
        pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    servers = Servers([], "")
    addresses: List[str] = []
    try:
        for rank in range(count):
            servers._processes.append(_start_one(rank, count, folder))
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


def _start_one(rank: int, count: int, folder: "Optional[str | os.PathLike[str]]") -> "subprocess.Popen[str]":
    command = [programs.find("cistern-server"), f"--rank={rank}", f"--server_num={count}", "--port=0"]
    if folder is None:
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    with open(pathlib.Path(folder, f"server-{rank}.log"), "a", encoding="utf-8") as log:
        return subprocess.Popen([*command, f"--data_dir={os.fspath(folder)}"], stdout=subprocess.PIPE, stderr=log, text=True)
