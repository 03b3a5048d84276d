#!/usr/bin/env bash
# Measures serving: lookups, delays under an open load, commits published under load, and beside them
# Python with onnxruntime and with TorchScript on the same network. Takes about 6 minutes and 2 GB.
#
#   scripts/bench_serving.sh [--out FILE] [--model deepfm|dlrm] [--rows N] [--seconds S] [--python PYTHON]
#
#   --out FILE       one JSON object a line; by default standard output
#   --python PYTHON  an interpreter with numpy, and onnxruntime or torch          default python3
#
# Both peers on Debian 12, whose torch needs its own numpy (pip: of a Python 3.11, too):
#
#   apt-get install python3-numpy python3-torch
#   pip install --target DIR --no-deps onnxruntime flatbuffers protobuf packaging
#   PYTHONPATH=DIR scripts/bench_serving.sh --python /usr/bin/python3
#
# Let nothing else run on the machine: the first line says what it did before.
set -euo pipefail
self="$(readlink -f "$0")"
cd "$(dirname "$self")/.."
usage() { echo "bench_serving: $*; see --help" >&2; exit 2; }

out=/dev/stdout model=deepfm rows=10000000 seconds=4 python=python3
while [ $# -gt 0 ]; do
  case "$1" in
    -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$self"; exit 0 ;;
    --out | --model | --rows | --seconds | --python) [ $# -ge 2 ] || usage "$1 needs a value" ;;&
    --out) out="$2" ;;
    --model) model="$2" ;;
    --rows) rows="$2" ;;
    --seconds) seconds="$2" ;;
    --python) python="$2" ;;
    *) usage "unknown argument '$1'" ;;
  esac
  shift 2
done
benchmark=build/release/bin/serve_benchmark
[ -x "$benchmark" ] || { echo "bench_serving: $benchmark is missing: scripts/build.sh" >&2; exit 1; }
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
{
  echo "{\"what\":\"machine\",\"cpu\":\"$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)\",\"cores\":$(nproc),\"load\":$(cut -d' ' -f1 /proc/loadavg)}"
  "$benchmark" --folder "$folder/serving" --model "$model" --rows "$rows" --seconds "$seconds" \
    --onnx "$folder/network.onnx"
  rm -rf "$folder/serving"
  "$python" test/benchmark/serve_peers.py --onnx "$folder/network.onnx" --model "$model" \
    --rows "$rows" --seconds "$seconds"
} >"$out"
