#!/usr/bin/env python3
"""Looks up every message that the documents quote in the source.

A quoted message is a line of a fenced block in docs/troubleshooting.md or docs/upgrading.md that begins like one. Names
and numbers in it differ from run to run, so a message passes if one stretch of STRETCH characters is in a string of
the source. A changed message therefore fails here, and its quotation is corrected. Python's standard library only.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ["docs/troubleshooting.md", "docs/upgrading.md"]
FOLDERS = ["app", "cli", "common", "cuda", "serve", "server", "worker"]
MESSAGE = re.compile(r"^(error|fix|note|cistern|cistern-server): (.*)$")
STRETCH = 14
# Words of libraries, and words that the source puts together.
ELSEWHERE = ["No such file or directory", "syntax error while parsing", " was given twice", ": unknown command '"]
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
BETWEEN = re.compile(r"^\s*$")


def strings_of(text):
    """The string literals of a C++ file, with adjacent ones joined."""
    joined, end = [], None
    for found in LITERAL.finditer(text):
        literal = found.group(1).replace('\\"', '"')
        if end is not None and BETWEEN.match(text[end:found.start()]):
            joined[-1] += literal
        else:
            joined.append(literal)
        end = found.end()
    return joined


def source_strings():
    strings = []
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".cc", ".h", ".cu"):
                strings += strings_of(path.read_text(encoding="utf-8"))
    return "\n".join(strings)


def quoted_messages(page):
    fenced = False
    for number, line in enumerate((ROOT / page).read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("```"):
            fenced = not fenced
        elif fenced and MESSAGE.match(line):
            yield f"{page}:{number}", MESSAGE.match(line).group(2)


def is_in(message, strings):
    stretch = min(STRETCH, len(message))
    return any(message[at:at + stretch] in strings for at in range(len(message) - stretch + 1))


def main():
    strings = "\n".join([source_strings(), *ELSEWHERE])
    messages = [quoted for page in PAGES if (ROOT / page).exists() for quoted in quoted_messages(page)]
    missing = [(place, message) for place, message in messages if not is_in(message, strings)]
    for place, message in missing:
        print(f"{place}: not in the source: {message}")
    if missing or len(messages) < 40:
        sys.exit(f"FAILED: {len(missing)} of {len(messages)} quoted messages are not in the source")
    print(f"{len(messages)} quoted messages are in the source")


if __name__ == "__main__":
    main()
