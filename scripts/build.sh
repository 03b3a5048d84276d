#!/usr/bin/env bash
# Configures and builds one preset with as many jobs as this machine's cores and memory allow.
#
#   scripts/build.sh [PRESET [TARGET...]]     PRESET: release (default), dev, asan, tsan, clang, cuda, gpu_check
#
# CISTERN_CUDA=ON, OFF or AUTO (default: build the kernels where nvcc is found) applies to release and dev.
set -euo pipefail
self="$(readlink -f "$0")"
cd "$(dirname "$self")/.."

case "${1:-}" in
  -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$self"; exit 0 ;;
  -*) echo "build: unknown argument '$1'; see --help" >&2; exit 2 ;;
esac
preset="${1:-release}"
shift $(($# > 0 ? 1 : 0))

# A compiler process needs up to 1.5 GB (for files that include gRPC), so memory limits the jobs too: that of the machine,
# or of the container (control groups, version 2 and 1). A quota of processors counts as in common/base/machine_limits.h.
jobs() {
  local cores kilobytes limit quota period file by_memory
  cores="$(nproc)"
  kilobytes="$(awk '/^MemAvailable/ {print $2}' /proc/meminfo)"
  for file in memory.max memory/memory.limit_in_bytes; do
    limit="$(cat "/sys/fs/cgroup/$file" 2>/dev/null || echo max)"
    if [ "$limit" != max ] && [ $((limit / 1024)) -lt "$kilobytes" ]; then kilobytes=$((limit / 1024)); fi
  done
  read -r quota period 2>/dev/null </sys/fs/cgroup/cpu.max || quota=max
  if [ "$quota" != max ] && [ $((quota / period)) -lt "$cores" ]; then cores=$((quota / period)); fi
  if [ "$cores" -lt 1 ]; then cores=1; fi
  by_memory=$((kilobytes / 1572864))
  if [ "$by_memory" -lt 1 ]; then by_memory=1; fi
  echo $((cores < by_memory ? cores : by_memory))
}

# Shortens the build tool's "[12/340] ..." lines to one every few seconds, with the time left.
show_progress() {
  local line started=$SECONDS last=0 elapsed left
  while IFS= read -r line; do
    if [[ ! "$line" =~ ^\[([0-9]+)/([0-9]+)\]\  ]]; then
      echo "$line"
      continue
    fi
    elapsed=$((SECONDS - started))
    if [ $((elapsed - last)) -lt 10 ] && [ "${BASH_REMATCH[1]}" != "${BASH_REMATCH[2]}" ]; then continue; fi
    last=$elapsed
    left=$((elapsed * (BASH_REMATCH[2] - BASH_REMATCH[1]) / BASH_REMATCH[1]))
    printf '  %d of %d steps after %d:%02d min, about %d:%02d left\n' \
      "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}" $((elapsed / 60)) $((elapsed % 60)) \
      $((left / 60)) $((left % 60))
  done
}

# Configuring prints nothing unless it fails; its full output is kept in the build folder.
mkdir -p "build/$preset"
log="build/$preset/configure.log"
options=()
case "$preset" in release | dev) options=("-DCISTERN_CUDA=${CISTERN_CUDA:-AUTO}") ;; esac
if ! cmake --preset "$preset" "${options[@]}" >"$log" 2>&1; then
  cat "$log" >&2
  echo "build: configuring preset '$preset' failed; to install missing packages: scripts/install_deps.sh" >&2
  exit 1
fi
cmake --build --preset "$preset" -j "$(jobs)" ${1:+--target "$@"} 2>&1 | show_progress
