#!/usr/bin/env python3
"""Numbers and habits that a program can check (STYLE in CONTRIBUTING.md): short files, short lines,
no banned calls, no forgotten notes, a test for each source file, links that lead somewhere.

Run by scripts/check and by ctest.
"""

import fnmatch
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MAX_LINES, MAX_COLUMNS = 400, 100

CODE = {".h", ".cc", ".cu", ".cuh"}
TEXT = CODE | {".py", ".sh", ".cmake", ".proto", ".md", ".txt", ".json", ""}

# (pattern, where it is allowed, why it is banned)
BANNED = [
    (re.compile(r"\b(system|popen)\s*\("), r"$^", "no shell, ever: start programs by fork and exec"),
    (re.compile(r"\bstd::j?thread\b(?!::)"), r"^(common/thread_pool\.|test/)",
     "threads start in common/thread_pool"),
    (re.compile(r"\b_?exit\s*\("), r"^(cli/|common/memory_exhausted\.cc$|.*_main\.cc$|test/)",
     "only a program's main ends it, and want of memory"),
]
NOTE = re.compile(r"\b(TODO|FIXME|XXX)\b")
NOTE_ALLOWED = {"scripts/tidy.py", "CONTRIBUTING.md"}

# A source file a/b.cc is tested where test/ holds b_test.cc or includes a/b.h; an op's x_cpu.cc goes
# by x.h. Parts that are tested through the whole they belong to name the test of the whole.
TESTED = ("common", "server", "worker", "cuda", "cli")
TESTED_THROUGH = {
    "cli/demo*.cc": "test/integration/demo_test.py",
    "cli/*.cc": "test/integration/lifecycle_test.py",
    "common/rpc/*.cc": "test/integration/server_process_test.cc",
    "common/file.cc": "test/common/model_folder_test.cc",
    "common/model_file.cc": "test/common/model_folder_test.cc",
    "common/row_cutter.cc": "test/common/model_folder_test.cc",
    "common/first_weights.cc": "test/cuda/ctr_update_test.cc",
    "cuda/collective/*.cc": "test/cuda/collective/communicator_test.cc",
    "cuda/device_*.cc": "test/cuda/device_test.cc",
    "cuda/op/gemm_*.cc": "test/cuda/fully_connected_test.cc",
    "server/server_main.cc": "test/integration/server_process_test.cc",
    "server/service/*.cc": "test/client/parameter_client_test.cc",
    "server/checkpoint/*.cc": "test/checkpoint/durable_commit_test.cc",
    "server/snapshot/*_store.cc": "test/server/model_snapshot_test.cc",
    "server/snapshot/load_plan.cc": "test/server/model_snapshot_test.cc",
    "server/table/row_map.cc": "test/server/sparse_table_test.cc",
    "server/table/table_diff.cc": "test/integration/ckpt_test.py",
    "server/table/value_block.cc": "test/server/sparse_table_test.cc",
    "worker/client/*.cc": "test/client/parameter_client_test.cc",
    "worker/config/*.cc": "test/model/model_config_test.cc",
    "worker/data/criteo_*.cc": "test/data/criteo_test.cc",
    "worker/data/data_set.cc": "test/integration/data_formats_test.py",
    "worker/data/mapped_file.cc": "test/data/raw_test.cc",
    "worker/data/parquet_*.cc": "test/data/parquet_test.cc",
    "worker/data/*_set_writer.cc": "test/data/generate_test.cc",
    "worker/data/slot_sizes.cc": "test/data/raw_test.cc",
    "worker/data/norm_*.cc": "test/data/norm_test.cc",
    "worker/data/byte_stream.cc": "test/data/norm_test.cc",
    "worker/data/file_list.cc": "test/data/norm_test.cc",
    "worker/data/output_*.cc": "test/data/norm_test.cc",
    "worker/data/sample_block.cc": "test/data/norm_test.cc",
    "worker/data/column_*.cc": "test/data/convert_test.cc",
    "worker/data/*_text.cc": "test/data/convert_test.cc",
    "worker/data/line_reader.cc": "test/data/convert_test.cc",
    "worker/data/row_encoder.cc": "test/data/convert_test.cc",
    "worker/data/vocabulary.cc": "test/data/convert_test.cc",
    "worker/metric/metric_name.cc": "test/metric/metric_set_test.cc",
    "worker/metric/ranked_scores.cc": "test/metric/metric_set_test.cc",
    "worker/model/*.cc": "test/model/model_gradient_test.cc",
    "worker/pass/batch_builder.cc": "test/data/pass_source_test.cc",
    "worker/pass/sample_cursor.cc": "test/data/pass_source_test.cc",
    "worker/snapshot/new_file.cc": "test/integration/hugectr_files_test.py",
    "worker/train/*.cc": "test/train/train_job_test.cc",
}
# No test of its own, and why.
UNTESTED = {
    "common/log.cc": "a thin front to spdlog; every integration test reads its lines",
}

LINK = re.compile(r"\]\(([^)#\s]+)(#[^)]*)?\)")


def text_of(path, name, errors):
    """None for a file that is no text: golden bytes have names without a suffix."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        if path.suffix:
            errors.append(f"{name}: not UTF-8 at byte {error.start}")
        return None


def tracked_files():
    """What git tracks, and what is new and not ignored."""
    command = ["git", "ls-files", "-co", "--exclude-standard", "-z"]
    try:
        names = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout
        paths = [ROOT / name for name in names.split("\0") if name]
    except (OSError, subprocess.CalledProcessError):  # a source archive without git
        paths = [p for p in ROOT.rglob("*") if p.is_file() and "build" not in p.parts[:-1]]
    return sorted(p for p in paths if p.is_file())


def without_comments(line):
    """The code of a line: no string contents, no // comment."""
    line = re.sub(r'"(\\.|[^"\\])*"', '""', line)
    return line.split("//")[0]


def code_errors(name, lines):
    if len(lines) > MAX_LINES:
        yield f"{name}: {len(lines)} lines; {MAX_LINES} at most: split it by subject"
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_COLUMNS:
            yield f"{name}:{number}: {len(line)} columns; {MAX_COLUMNS} at most"
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


def untested(names):
    tests = [name for name in names if name.startswith("test/") and name.endswith((".cc", ".h"))]
    seen = {pathlib.PurePath(name).name for name in tests}
    for name in tests:
        seen.update(re.findall(r'#include "([^"]+)"', (ROOT / name).read_text(encoding="utf-8")))
    sources = [n for n in names if n.endswith(".cc") and n.split("/")[0] in TESTED]
    for name in sources:
        stem = re.sub(r"(_cpu|_cuda|_none)?\.cc$", "", name)
        known = any(fnmatch.fnmatch(name, glob) for glob in [*TESTED_THROUGH, *UNTESTED])
        if not known and f"{stem}.h" not in seen and f"{stem.split('/')[-1]}_test.cc" not in seen:
            yield f"{name}: no test has its name or includes its header; see scripts/tidy.py"
    for glob, test in TESTED_THROUGH.items():
        if test not in names:
            yield f"scripts/tidy.py: {glob}: there is no {test}"
    for glob in [*TESTED_THROUGH, *UNTESTED]:
        if not any(fnmatch.fnmatch(name, glob) for name in sources):
            yield f"scripts/tidy.py: exception for {glob}, which matches nothing"


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
            # What a program wrote is as long as it is.
            if not lines[:1] or "do not edit" not in lines[0]:
                errors += code_errors(name, lines)
        if path.suffix == ".md":
            errors += link_errors(path, name, lines)
        if name not in NOTE_ALLOWED:
            errors += [f"{name}:{number}: {NOTE.search(line).group(0)}: finish it, or open an issue"
                       for number, line in enumerate(lines, 1) if NOTE.search(line)]
    errors += untested(names)
    print("\n".join(errors + [f"tidy: {len(names)} files, {len(errors)} errors"]))
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
