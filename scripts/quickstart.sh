#!/usr/bin/env bash
# From a fresh clone to a trained model: installs packages, builds the programs, runs the demo.
#
#   scripts/quickstart.sh        CISTERN_PRESET (default: release) selects the preset to build
#
# GPU kernels take longer to build than everything else, so they are built only on a machine with a GPU, or
# with CISTERN_CUDA=ON.
[ -n "${BASH_VERSION:-}" ] || exec bash "$0" "$@" # of "sh scripts/quickstart.sh"
set -euo pipefail
self="$(readlink -f "$0")"
cd "$(dirname "$self")/.."

case "${1:-}" in
  "") ;;
  -h | --help) sed -n '2,/^[^#]/{/^[^#]/d;s/^# \{0,1\}//;p}' "$self"; exit 0 ;;
  *) echo "quickstart: unknown argument '$1'; see --help" >&2; exit 2 ;;
esac

preset="${CISTERN_PRESET:-release}"
started=$SECONDS
if [ -z "${CISTERN_CUDA:-}" ] && ! compgen -G '/dev/nvidia[0-9]*' >/dev/null; then
  export CISTERN_CUDA=OFF
fi

echo "== 1/3 packages"
scripts/install_deps.sh

echo "== 2/3 build ($preset)"
build_started=$SECONDS
if [ "${CISTERN_CUDA:-}" = OFF ]; then
  echo "no GPU here: built for the CPU (CISTERN_CUDA=ON builds the GPU kernels as well)"
fi
scripts/build.sh "$preset" cistern cistern-server cistern-worker
echo "built in $((SECONDS - build_started)) s: build/$preset/bin/"

echo "== 3/3 demo: 2 servers and a worker on this machine"
log="build/$preset/demo.log"
demo_started=$SECONDS
if ! "build/$preset/bin/cistern" demo 2>&1 | tee "$log"; then
  echo "quickstart: the demo failed; its output is in $log" >&2
  exit 1
fi
echo "demo took $((SECONDS - demo_started)) s"

echo
echo "== done in $((SECONDS - started)) s"
grep -i 'auc' "$log" | tail -n 1 || true
if "build/$preset/bin/cistern" version | grep -q '^parquet *none'; then
  echo "This build cannot read Parquet files: Arrow is missing (scripts/install_deps.sh says why)."
fi
cat <<NEXT
Next:
  build/$preset/bin/cistern --help     lists all commands
  scripts/test.sh                      builds and runs every test
  README.md                            your own data in five minutes, a fleet in three commands
NEXT
