#!/usr/bin/env bash
# Configures and builds one preset with as many jobs as this machine's cores and memory allow.
#
#   scripts/build.sh [PRESET [TARGET...]]     PRESET: release (default), dev, asan, tsan, clang, cuda, gpu_check
set -euo pipefail
cd "$(dirname "$0")/.."

preset="${1:-release}"
shift $(($# > 0 ? 1 : 0))

# A compiler process needs up to 1.5 GB (for files that include gRPC), so memory limits the jobs too.
jobs() {
  local cores kilobytes limit by_memory
  cores="$(nproc)"
  kilobytes="$(awk '/^MemAvailable/ {print $2}' /proc/meminfo)"
  limit="$(cat /sys/fs/cgroup/memory.max 2>/dev/null || echo max)"
  if [ "$limit" != max ] && [ $((limit / 1024)) -lt "$kilobytes" ]; then
    kilobytes=$((limit / 1024))
  fi
  by_memory=$((kilobytes / 1572864))
  if [ "$by_memory" -lt 1 ]; then by_memory=1; fi
  echo $((cores < by_memory ? cores : by_memory))
}

# Configuring prints nothing unless it fails; its full output is kept in the build folder.
mkdir -p "build/$preset"
log="build/$preset/configure.log"
if ! cmake --preset "$preset" >"$log" 2>&1; then
  cat "$log" >&2
  echo "build: configuring preset '$preset' failed; to install missing packages: scripts/install_deps.sh" >&2
  exit 1
fi
cmake --build --preset "$preset" -j "$(jobs)" ${1:+--target "$@"}
