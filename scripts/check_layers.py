#!/usr/bin/env python3
"""Checks that every #include follows the allowed directions between folders (the table below), which
the linker cannot enforce, and that libraries link in these directions. scripts/check and ctest run it.
"""

import functools
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Maps each folder with code to the folders one layer below it. A file may include headers of its own
# folder, of those, and of all folders below them. `test` may include everything.
BELOW = {
    "proto": [],
    "common/base": [],
    "common/io": ["common/base"],
    "common/value/rule": ["common/base"],
    "common/value": ["common/value/rule", "proto"],
    "common/value/accessor": ["common/value"],
    "common/saved_model": ["common/io", "common/value"],
    "common/serving": ["common/io", "common/value"],
    "common/manual": ["common/io"],
    "common/wire": ["common/base", "proto"],
    "common/tls": ["common/io"],
    "common/trace": ["common/io"],
    "common/metrics": ["common/base"],
    "common/rpc": ["common/metrics", "common/tls", "common/trace", "common/wire"],
    "common/http": ["common/metrics", "common/rpc"],
    "server/table": ["common/value", "common/io"],
    "server/checkpoint": ["server/table", "common/io"],
    "server/commit": ["server/checkpoint"],
    "server/saved_model": ["server/table", "common/saved_model"],
    "server/service": ["server/commit", "server/saved_model", "common/metrics", "common/wire"],
    "server": ["server/service", "common/http", "common/manual"],  # the program
    "cuda/core": ["common/base"],
    "cuda/op/primitive": ["cuda/core"],
    "cuda/op/key": ["cuda/op/primitive"],
    "cuda/op/embedding": ["cuda/op/primitive"],
    "cuda/op/dense": ["cuda/op/primitive"],
    "cuda/op/loss": ["cuda/op/primitive"],
    "cuda/op/update": ["cuda/op/primitive", "common/value/accessor"],
    "cuda/collective": ["cuda/core"],
    "worker/data/storage": ["common/io"],
    "worker/data/format": ["worker/data/storage"],
    "worker/data/source": ["worker/data/format"],
    "worker/data/recipe": ["worker/data/format"],
    "worker/data/feed": ["worker/data/source", "worker/data/recipe"],
    "worker/data/prepare": ["worker/data/recipe"],
    "worker/model/metric": ["common/base"],
    "worker/model/config": ["worker/data/recipe", "worker/model/metric", "common/value"],
    "worker/model/batch": [
        "worker/data/source", "cuda/op/key", "cuda/op/embedding", "common/value"],
    "worker/model/layer": [
        "worker/model/config", "worker/model/batch", "cuda/collective", "cuda/op/dense",
        "cuda/op/loss", "cuda/op/update"],
    "worker/model/graph": ["worker/model/layer"],
    "worker/client": ["common/value", "common/wire"],
    "worker/group": ["cuda/collective", "common/tls"],
    "worker/pass": [
        "common/trace", "worker/client", "worker/data/feed", "worker/group", "worker/model/graph"],
    "worker/export": ["worker/client", "worker/model/graph"],
    "worker/export/hugectr": ["worker/export"],
    "worker/export/xbox": ["worker/export"],
    "worker/export/cache": ["worker/export/xbox"],
    "worker/export/dnn_plugin": ["worker/export"],
    "worker/export/onnx": ["worker/export"],
    "worker/export/serving": ["worker/export", "worker/data/recipe", "common/serving"],
    "worker/report": ["common/io"],
    "worker/train": [
        "worker/pass", "worker/report", "worker/export/hugectr", "common/metrics",
        "common/saved_model"],
    "serve/predictor": ["common/serving", "worker/data/recipe", "worker/model/graph"],
    "serve/library": ["serve/predictor"],
    "serve/server": ["serve/predictor", "common/http", "common/metrics", "common/rpc"],
    "cli/terminal": ["worker/train", "common/manual"],
    "app": ["common/base"],
    "app/certs": ["app", "common/tls"],
    "app/demo": ["app/admin", "app/predict", "worker/data/prepare"],
    "app/diagnose": ["app/fleet", "common/http"],
    "app/fleet": ["app/state", "common/rpc"],
    "app/state": ["app", "worker/train", "server/service"],
    "app/run": ["app", "worker/train", "worker/data/recipe"],
    "app/data": ["app/run", "worker/data/prepare", "worker/model/config"],
    "app/model": ["app/fleet", "app/run", "app/state"],
    "app/predict": ["app/data", "app/model", "serve/predictor", "worker/data/prepare"],
    "app/track": ["app", "worker/train", "proto"],
    "app/train": ["app/data", "app/export", "app/model", "app/track", "common/http"],
    "app/export": [
        "app/model", "serve/predictor", "worker/export/cache", "worker/export/dnn_plugin", "worker/export/onnx",
        "worker/export/serving"],
    "app/admin": ["app/model"],
    "app/plan": ["app/model", "worker/data/prepare"],
    "app/report": ["app/data", "app/model"],
    "app/serve": ["app/export", "serve/server"],
    "app/table": ["app/fleet", "worker/data/recipe"],
    "app/tune": ["app/train"],
    "app/verify": ["app/model", "serve/predictor", "worker/export/serving"],
    "cli/doctor": ["app/state", "cli/terminal"],
    "cli/command": [
        "app/certs", "app/demo", "app/diagnose", "app/export", "app/plan", "app/report", "app/serve", "app/table", "app/tune", "app/verify", "cli/doctor"],
    "cli": ["cli/command"],  # the programs
    "python/rows": ["worker/client", "worker/data/source"],
    "python/binding": [
        "app/data", "app/export", "app/plan", "app/predict", "app/train", "app/verify", "cli/terminal", "python/rows", "serve/predictor"],
}
SOURCES = ("proto", "common", "cuda", "server", "worker", "serve", "app", "cli", "python", "test")
THIRD_PARTY = ("absl/", "nlohmann/", "CLI/", "spdlog/")  # may be included with quotes
SUFFIXES = {".h", ".cc", ".cu", ".cuh"}

# Only common/rpc and serve/server include gRPC. Tests may too, to misbehave on purpose.
GRPC = re.compile(r"^(grpc|grpcpp|grpc\+\+)/|\.grpc\.pb\.h$")
MAY_INCLUDE_GRPC = ("common/rpc", "serve/server", "test")
HTTP = re.compile(r"^(microhttpd\.h|gnutls/)")
MAY_INCLUDE_HTTP = ("common/http", "serve/server", "test")
CUDA_HEADER = re.compile(r"^(cuda(_\w+)?\.h|cublas|curand|nccl|cub/|thrust/)")
CUDA_CONDITION = re.compile(r"^\s*#\s*(if|ifdef|ifndef|elif)\b.*(CUDA|NVCC)")
# The macro that marks functions shared between host and device.
CUDA_CONDITION_ALLOWED = {"common/base/host_device.h"}

# A library, its name without "cistern_" or with it, and what it links.
LIBRARY = re.compile(r"\b(cistern_library|add_library|target_link_libraries)\((\w+)([^)]*)\)")
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]')


def is_below(path, folder):
    return path == folder or path.startswith(folder + "/")


def owner(path):
    """The layer of a file: `test`, its folder if BELOW lists it, else None."""
    folder = path.rpartition("/")[0]
    return "test" if is_below(folder, "test") else folder if folder in BELOW else None


@functools.cache
def seen_from(folder):
    """All folders whose headers the files of `folder` may include."""
    return {folder}.union(*map(seen_from, BELOW[folder]))


def include_error(source, target):
    """Why `source` must not include `target` (both relative to the root), or None."""
    folder, wanted = owner(source), owner(target)
    if wanted is None:
        return "is in a folder that scripts/check_layers.py does not know"
    if folder == "test" or wanted in seen_from(folder):
        return None
    return f"{folder} must not include headers of {wanted}"


def errors_of(path):
    name = path.relative_to(ROOT).as_posix()
    layer = owner(name)
    if layer is None:
        yield f"{name}: is in a folder that scripts/check_layers.py does not know: add it to BELOW"
        return
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        where = f"{name}:{number}"
        if CUDA_CONDITION.match(line) and not is_below(name, "cuda"):
            if name not in CUDA_CONDITION_ALLOWED:
                yield f"{where}: only cuda/ may test for CUDA or NVCC in the preprocessor"
        match = INCLUDE.match(line)
        if not match:
            continue
        quote, target = match.groups()
        if GRPC.search(target) and layer not in MAY_INCLUDE_GRPC:
            yield f"{where}: only common/rpc and serve/server may include gRPC ({target})"
        elif HTTP.search(target) and layer not in MAY_INCLUDE_HTTP:
            yield f"{where}: only common/http and serve/server may include the HTTP library ({target})"
        elif CUDA_HEADER.match(target) and not is_below(name, "cuda"):
            yield f"{where}: only cuda/ may include the CUDA toolkit ({target})"
        elif quote == '"':
            if target.startswith(THIRD_PARTY):
                continue
            if not target.startswith(tuple(f"{s}/" for s in SOURCES)):
                yield f'{where}: write the path relative to the repository root: "{target}"'
            elif reason := include_error(name, target):
                yield f"{where}: {target}: {reason}"


def link_errors():
    homes, links = {}, []
    for path in sorted(p for s in SOURCES for p in (ROOT / s).rglob("CMakeLists.txt")):
        folder = path.parent.relative_to(ROOT).as_posix()
        for rule, name, rest in LIBRARY.findall(re.sub("#.*", "", path.read_text(encoding="utf-8"))):
            if rule != "target_link_libraries":
                homes["cistern_" + name.removeprefix("cistern_")] = folder
            links += [(folder, library) for library in re.findall(r"\bcistern_\w+", rest)]
    for folder, library in links:
        wanted = homes.get(library)
        if folder in BELOW and wanted in BELOW and wanted not in seen_from(folder):
            yield f"{folder}/CMakeLists.txt: {folder} must not link {library}, the library of {wanted}"


def main():
    files = sorted(p for s in SOURCES for p in (ROOT / s).rglob("*") if p.suffix in SUFFIXES)
    errors = [error for path in files for error in errors_of(path)] + list(link_errors())
    print("\n".join(errors + [f"check_layers: {len(files)} files, {len(errors)} errors"]))
    return 1 if errors or not files else 0


if __name__ == "__main__":
    sys.exit(main())
