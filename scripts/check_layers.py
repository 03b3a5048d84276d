#!/usr/bin/env python3
"""Checks that every #include points down the house plan (ARCHITECTURE.md):

    proto <- common <- common/rpc <- server
               ^------ cuda <------- worker      cli and test see everything

Linking cannot enforce these arrows, so this does. Run by scripts/check and by ctest.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# What the files of a folder may include; the longest matching folder decides. Everything may
# include its own folder and what lies below it.
ALLOWED = {
    "proto": [],
    "common": ["proto"],
    "common/rpc": ["proto", "common"],
    "cuda": ["proto", "common"],
    "server": ["proto", "common", "common/rpc"],
    "server/table": ["proto", "common", "common/rpc"],  # frame.h: what an absent row looks like
    "server/pass": ["proto", "common", "common/rpc", "server/table"],
    "worker": ["proto", "common", "common/rpc", "cuda"],
    "worker/client": ["proto", "common", "common/rpc"],
    "worker/data": ["proto", "common"],
    "worker/metric": ["common"],
    "worker/config": ["proto", "common", "worker/data", "worker/metric"],
    "worker/pass": ["proto", "common", "cuda", "worker/data"],
    "worker/model": ["proto", "common", "cuda", "worker/config", "worker/pass"],
    "worker/team": ["proto", "common", "cuda", "worker/data", "worker/pass"],
    "cli": ["proto", "common", "common/rpc", "server", "worker", "cuda"],
    "test": ["proto", "common", "common/rpc", "server", "worker", "cuda", "cli"],
}
SOURCES = ("proto", "common", "cuda", "server", "worker", "cli", "test")
THIRD_PARTY = ("absl/", "nlohmann/", "CLI/", "spdlog/")  # may be written in quotes
SUFFIXES = {".h", ".cc", ".cu", ".cuh"}

# gRPC is known to common/rpc alone; tests may use it to misbehave on purpose.
GRPC = re.compile(r"^(grpc|grpcpp|grpc\+\+)/|\.grpc\.pb\.h$")
CUDA_HEADER = re.compile(r"^(cuda(_\w+)?\.h|cublas|curand|nccl|cub/|thrust/)")
CUDA_CONDITION = re.compile(r"^\s*#\s*(if|ifdef|ifndef|elif)\b.*(CUDA|NVCC)")
# The one mark by which formulas are shared between host and device.
CUDA_CONDITION_ALLOWED = {"common/host_device.h"}

INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]')


def is_below(path, folder):
    return path == folder or path.startswith(folder + "/")


def owner(path):
    """The folder of ALLOWED that a file belongs to: the longest that holds it."""
    return max((f for f in ALLOWED if is_below(path, f)), key=len, default=None)


def include_error(source, target):
    """Why `source` must not include `target` (both relative to the root), or None."""
    layer, wanted = owner(source), owner(target)
    if wanted is None:
        return "is outside every known folder"
    # An allowed folder allows its subfolders, but common alone does not open common/rpc.
    for folder in [layer] + ALLOWED[layer]:
        if is_below(wanted, folder) and not (wanted == "common/rpc" and folder == "common"):
            return None
    return f"{layer} must not see {wanted}"


def errors_of(path):
    name = path.relative_to(ROOT).as_posix()
    layer = owner(name)
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        where = f"{name}:{number}"
        if CUDA_CONDITION.match(line) and not is_below(name, "cuda"):
            if name not in CUDA_CONDITION_ALLOWED:
                yield f"{where}: conditions on CUDA belong in cuda/"
        match = INCLUDE.match(line)
        if not match:
            continue
        quote, target = match.groups()
        if GRPC.search(target) and layer not in ("common/rpc", "test"):
            yield f"{where}: only common/rpc includes gRPC ({target})"
        elif CUDA_HEADER.match(target) and not is_below(name, "cuda"):
            yield f"{where}: only cuda/ includes the CUDA toolkit ({target})"
        elif quote == '"':
            if target.startswith(THIRD_PARTY):
                continue
            if not target.startswith(tuple(f"{s}/" for s in SOURCES)):
                yield f'{where}: write the path from the root: "{target}"'
            elif reason := include_error(name, target):
                yield f"{where}: {target}: {reason}"


def main():
    files = sorted(p for s in SOURCES for p in (ROOT / s).rglob("*") if p.suffix in SUFFIXES)
    errors = [error for path in files for error in errors_of(path)]
    print("\n".join(errors + [f"check_layers: {len(files)} files, {len(errors)} errors"]))
    return 1 if errors or not files else 0


if __name__ == "__main__":
    sys.exit(main())
