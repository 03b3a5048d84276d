#!/usr/bin/env python3
"""Checks style rules that a program can check (see CONTRIBUTING.md): length of files and lines, banned
calls, notes left in the code, one definition for each name, a test for each source file, a row for it in
CMakeLists.txt and README.md, and broken links.

scripts/check and ctest run it.
"""

import fnmatch
import pathlib
import re
import subprocess
import sys

import file_lists
import repeated_names

ROOT = pathlib.Path(__file__).resolve().parent.parent
MAX_LINES, MAX_COLUMNS = 700, 100

CODE = {".h", ".cc", ".cu", ".cuh"}
TEXT = CODE | {".py", ".sh", ".cmake", ".proto", ".md", ".txt", ".json", ""}

# (pattern, where it is allowed, why it is banned)
BANNED = [
    (re.compile(r"\b(system|popen)\s*\("), r"$^", "never run a shell: start programs by fork and exec"),
    (re.compile(r"\bstd::j?thread\b(?!::)"), r"^(common/base/thread_pool\.|python/binding/interrupt\.|test/)",
     "only common/base/thread_pool starts threads (and Ctrl-C leaves one behind in Python)"),
    (re.compile(r"\bgil_scoped_\w+|\bPyGILState_Ensure\b|\bPyEval_RestoreThread\b"), r"^python/binding/gil\.",
     "only python/binding/gil asks for the GIL: it also works while Python ends"),
    (re.compile(r"\b_?exit\s*\("), r"^(app/fleet/process\.cc$|cli/|common/base/memory_exhausted\.cc$|.*_main\.cc$|test/)",
     "only main and the out-of-memory handler end a program"),
    (re.compile(r"(StrContains|StartsWith|EndsWith)\([^;]*message\(\)|message\(\)\.(find|rfind)"), r"^test/",
     "no code reads meaning out of a message: branch on the code or the kind (KindOf)"),
    (re.compile(r"([!=]=|\bcase) (\w+::)*TextFormat::k"), r"^test/",
     "ask the format's entry (EntryOf, text_format.h), so that a new format is one entry and one reader"),
]
# A flag of the command line in a text of a library.
FLAG = re.compile(r'"([^"]*[^-\w"])?--[a-z]')
FLAG_ALLOWED = re.compile(r"^(app/demo/demo\.cc$|app/fleet/local_servers\.cc$|cli/|common/manual/|python/|.*_main\.cc$|test/)")
FOREIGN_FLAG = "hadoop classpath --glob"
NOTE = re.compile(r"\b(TODO|FIXME|XXX)\b")
NOTE_ALLOWED = {"scripts/tidy.py", "CONTRIBUTING.md"}

# The test of a/b.cc is test/a/b_test.cc. Parts of something larger need no test of their own: a source
# file counts as tested if a test, or a tested source file of its folder, includes its header.
TESTED = ("common", "server", "worker", "serve", "cuda", "app", "cli")
UNTESTED = {
    # Integration tests run programs and commands as users do; the code that computes is in libraries.
    "cli/*.cc": "test/integration/lifecycle_test.py",
    "server/server_main.cc": "test/integration/server_process_test.cc",
    # Most of their work is to run as one of several processes, or to survive the end of another.
    "worker/pass/data_source.cc": "test/worker/train/train_job_test.cc",
    "worker/pass/pass_pipeline.cc": "test/worker/train/train_job_test.cc",
    # This compares tables that only a fleet or a saved state has.
    "server/table/table_diff.cc": "test/integration/ckpt_test.py",
}

LINK = re.compile(r"\]\(([^)#\s]+)(#[^)]*)?\)")


def text_of(path, name, errors):
    """The text of a file, or None for binary golden files, whose names have no suffix."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        if path.suffix:
            errors.append(f"{name}: not UTF-8 at byte {error.start}")
        return None


def tracked_files():
    """All files that git tracks, and new files that it does not ignore."""
    command = ["git", "ls-files", "-co", "--exclude-standard", "-z"]
    try:
        names = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout
        paths = [ROOT / name for name in names.split("\0") if name]
    except (OSError, subprocess.CalledProcessError):  # a source archive without git
        paths = [p for p in ROOT.rglob("*") if p.is_file() and "build" not in p.parts[:-1]]
    return sorted(p for p in paths if p.is_file())


def without_comments(line):
    """The code of a line, without string contents and // comments."""
    line = re.sub(r'"(\\.|[^"\\])*"', '""', line)
    return line.split("//")[0]


def code_errors(name, lines):
    if len(lines) > MAX_LINES:
        yield f"{name}: {len(lines)} lines, but at most {MAX_LINES} are allowed: split it by subject"
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_COLUMNS:
            yield f"{name}:{number}: {len(line)} columns, but at most {MAX_COLUMNS} are allowed"
        if FLAG.search(line) and FOREIGN_FLAG not in line and not line.strip().startswith("//") and not FLAG_ALLOWED.search(name):
            yield (f"{name}:{number}: a message of a library names no flag: attach the option (WithOptions), which "
                   "front-ends write as their users type it")
        for pattern, allowed, why in BANNED:
            if pattern.search(without_comments(line)) and not re.search(allowed, name):
                yield f"{name}:{number}: {pattern.search(line).group(0)}...: {why}"


def link_errors(path, name, lines):
    in_code = False
    for number, line in enumerate(lines, 1):
        in_code ^= line.lstrip().startswith("```")
        for target, _ in [] if in_code else LINK.findall(line):
            if "://" in target or target.startswith("mailto:"):
                continue
            if not (path.parent / target).exists():
                yield f"{name}:{number}: link to {target}, which does not exist"


def stem_of(name):
    """The common stem "a/b" of a header, its source file and its device variants."""
    return re.sub(r"(_cpu|_cuda|_none)?\.(h|cc|cu)$", "", name)


def tested_stems(names):
    """The stems after which tests are named or that tests include, and those that tested files include
    from their own folders."""
    includes = {name: re.findall(r'#include "([^"]+)"', (ROOT / name).read_text(encoding="utf-8"))
                for name in names if name.endswith((".h", ".cc", ".cu"))}
    tests = [name for name in includes if name.startswith("test/")]
    tested = {stem_of(header) for test in tests for header in includes[test]}
    tested |= {test[len("test/"):-len("_test.cc")] for test in tests if test.endswith("_test.cc")}
    folder_of = {name: name.rpartition("/")[0] for name in includes}
    own = {name: {stem_of(header) for header in headers
                  if header.rpartition("/")[0] == folder_of[name]}
           for name, headers in includes.items() if name not in tests}
    size = -1
    while len(tested) != size:
        size = len(tested)
        for name, stems in own.items():
            stem = stem_of(name)
            # A source file without its own header belongs to the headers that it includes.
            if stem not in tested and f"{stem}.h" not in includes and stems & tested:
                tested.add(stem)
            if stem in tested:
                tested |= stems
    return tested


def untested(names):
    tested = tested_stems(names)
    sources = [n for n in names if n.endswith(".cc") and n.split("/")[0] in TESTED]
    for name in sources:
        known = any(fnmatch.fnmatch(name, glob) for glob in UNTESTED)
        if stem_of(name) not in tested and not known:
            yield (f"{name}: has no test: write test/{stem_of(name)}_test.cc, or include its header in a test")
    for glob, test in UNTESTED.items():
        if test not in names:
            yield f"scripts/tidy.py: {glob}: {test} does not exist"
        if not any(fnmatch.fnmatch(name, glob) for name in sources):
            yield f"scripts/tidy.py: the exception for {glob} matches no file: remove it"


def main():
    paths = tracked_files()
    names = [p.relative_to(ROOT).as_posix() for p in paths]
    errors = []
    for path, name in zip(paths, names):
        is_bytes = name.startswith(("test/golden/", "test/fuzz/corpus/")) and not path.suffix
        if path.suffix not in TEXT or name == "LICENSE" or is_bytes:
            continue
        text = text_of(path, name, errors)
        if text is None:
            continue
        lines = text.splitlines()
        if path.suffix in CODE:
            # Generated files may have any length.
            if not lines[:1] or "do not edit" not in lines[0]:
                errors += code_errors(name, lines)
        if path.suffix == ".md":
            errors += link_errors(path, name, lines)
        if name not in NOTE_ALLOWED:
            errors += [f"{name}:{number}: {NOTE.search(line).group(0)}: resolve it, or open an issue"
                       for number, line in enumerate(lines, 1) if NOTE.search(line)]
    errors += repeated_names.repeated_names(
        (name, path.read_text(encoding="utf-8")) for path, name in zip(paths, names)
        if path.suffix in CODE and not name.startswith("test/"))
    errors += untested(names)
    errors += file_lists.unlisted(names, lambda name: (ROOT / name).read_text(encoding="utf-8"))
    print("\n".join(errors + [f"tidy: {len(names)} files, {len(errors)} errors"]))
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
