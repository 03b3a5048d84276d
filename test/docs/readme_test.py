#!/usr/bin/env python3
"""Runs every block of README.md, in order, in a fresh folder.

A block is a fenced one, or lines indented by four or more. Text in a list item is indented by three. An HTML
comment before a block says what the block is; without one it is a list of commands.

    <!-- test: skip (REASON) -->               not run
    <!-- test: write FILE -->                  the block is the contents of FILE
    <!-- test: rows FILE FILE -->              the block is the start of a CSV; the files get its header and more rows
    <!-- test: interrupt (COMMAND, ...) -->    these commands run until they print a line, and then get a SIGINT

CISTERN_BIN is the folder of the programs. Python's standard library only.
"""

import os
import pathlib
import random
import re
import select
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("CISTERN_BIN", ROOT / "build/release/bin")).resolve()
LIMIT_SECONDS = 60  # for one command
# Free ports instead of the default ones, which another test or a fleet of this machine may use.
FREE_PORTS = {
    "scripts/launch_servers.sh": "scripts/launch_servers.sh --base-port 0",
    "cistern serve ": "cistern serve --port 0 --grpc-port 0 ",
}
MARK = re.compile(r"\s*<!-- test: (skip|write|rows|interrupt) (.*) -->$")


class Block:
    def __init__(self, line, text, mark):
        self.line, self.text = line, text
        self.kind, self.argument = mark if mark else ("run", "")


def without_indent(lines):
    margin = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    return "\n".join(line[margin:] for line in lines) + "\n"


def read_blocks(markdown):
    """The blocks of a page, each with the mark above it."""
    lines = markdown.splitlines()
    blocks, mark, at = [], None, 0
    while at < len(lines):
        begin = at
        if lines[at].lstrip().startswith("```"):
            at += 1
            while not lines[at].lstrip().startswith("```"):
                at += 1
            blocks.append(Block(begin + 1, without_indent(lines[begin + 1:at]), mark))
            mark = None
        elif lines[at].startswith("    "):
            while at < len(lines) and (lines[at].startswith("    ") or not lines[at].strip()):
                at += 1
            blocks.append(Block(begin + 1, without_indent(lines[begin:at]).rstrip() + "\n", mark))
            mark = None
            continue
        elif MARK.match(lines[at]):
            mark = MARK.match(lines[at]).groups()
        elif "<!-- test" in lines[at]:
            raise SystemExit(f"README.md:{at + 1}: not a mark of this test: {lines[at]}")
        elif lines[at].strip() and mark:
            raise SystemExit(f"README.md:{at + 1}: expected the block of the mark above")
        at += 1
    return blocks


def write_rows(header, path, count, seed):
    """Rows whose label depends on the user and the item, so that a model has something to learn."""
    draw = random.Random(seed)
    columns = {
        "label": lambda user, item: int(draw.random() < 0.1 + 0.5 * (user % 3 == 0) + 0.2 * (item % 5 == 0)),
        "age": lambda user, item: 18 + user % 50,
        "price": lambda user, item: f"{draw.random() * 50:.2f}",
        "user": lambda user, item: f"u{user}",
        "item": lambda user, item: f"i{item}",
        "city": lambda user, item: draw.choice(["paris", "rome", "oslo"]),
    }
    unknown = set(header.split(",")) - set(columns)
    if unknown:
        raise SystemExit(f"write_rows: add how to draw the columns {sorted(unknown)}")
    with open(path, "w", encoding="utf-8") as out:
        out.write(header + "\n")
        for _ in range(count):
            user, item = draw.randrange(300), draw.randrange(200)
            out.write(",".join(str(columns[name](user, item)) for name in header.split(",")) + "\n")


def commands_of(text):
    """The commands of a block: lines that end in a backslash continue on the next one."""
    return [line for line in text.replace("\\\n", " ").splitlines() if line.strip()]


def start(command, folder, environment, **options):
    for default, free in FREE_PORTS.items():
        command = command.replace(default, free)
    return subprocess.Popen(["bash", "-euo", "pipefail", "-c", command], cwd=folder, env=environment,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            start_new_session=True, **options)


def run(command, folder, environment):
    """Exit code and output."""
    process = start(command, folder, environment)
    try:
        out = process.communicate(timeout=LIMIT_SECONDS)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return 124, process.communicate()[0].decode() + f"\nno end after {LIMIT_SECONDS} s"
    return process.returncode, out.decode()


def run_until_it_prints(command, folder, environment):
    """Exit code and output of a command that gets a SIGINT after its first line."""
    process = start("exec " + command, folder, environment)
    ready, _, _ = select.select([process.stdout], [], [], LIMIT_SECONDS)
    # Without a line, or after the end of the command, there is nothing to interrupt.
    first = process.stdout.readline() if ready else b""
    os.killpg(process.pid, signal.SIGINT if first else signal.SIGKILL)
    try:
        rest = process.communicate(timeout=LIMIT_SECONDS)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        rest = process.communicate()[0]
    return process.returncode, (first + rest).decode()


def run_block(block, folder, environment):
    """Runs the commands one after the other. Returns false after a command that failed."""
    endless = [name.strip() for name in block.argument.strip("()").split(",")] if block.argument else []
    for command in commands_of(block.text):
        is_endless = any(command.startswith(name) for name in endless)
        code, out = (run_until_it_prints if is_endless else run)(command, folder, environment)
        print(f"README.md:{block.line}: {command.strip()}: exit code {code}")
        if code != 0:
            print(out)
            return False
    return True


def run_readme(readme, folder):
    environment = dict(os.environ, CISTERN_BIN=str(BIN), PATH=f"{BIN}:{os.environ['PATH']}")
    environment.pop("GOMP_SPINCOUNT", None)  # set by scripts/test.sh; the programs set it themselves
    (folder / "scripts").symlink_to(ROOT / "scripts")
    ran = 0
    for block in read_blocks(readme.read_text(encoding="utf-8")):
        if block.kind == "skip":
            print(f"README.md:{block.line}: skipped {block.argument}")
        elif block.kind == "write":
            (folder / block.argument).write_text(block.text, encoding="utf-8")
        elif block.kind == "rows":
            for seed, name in enumerate(block.argument.split()):
                write_rows(block.text.splitlines()[0], folder / name, [8000, 2000][seed > 0], seed)
        elif run_block(block, folder, environment):
            ran += 1
        else:
            return f"the block at README.md:{block.line} fails"
    return None if ran >= 4 else f"only {ran} blocks ran: are the others marked?"


def main():
    readme = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "README.md"
    with tempfile.TemporaryDirectory(prefix="cistern_readme_") as name:
        folder = pathlib.Path(name)
        try:
            failure = run_readme(readme, folder)
        finally:
            subprocess.run([ROOT / "scripts/stop.sh", "--dir", folder / "run", "--grace", "5"],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    if failure:
        sys.exit(f"FAILED: {failure}")
    print("passed")


if __name__ == "__main__":
    main()
