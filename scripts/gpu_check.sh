#!/usr/bin/env bash
# Everything that only a GPU can tell, in one call under nine minutes, as one JSON.
#
# usage: scripts/gpu_check.sh [--bin FOLDER] [--out FILE]
#        scripts/gpu_check.sh --pack FOLDER [--bin FOLDER]
#   --bin FOLDER   holds op_test, device_test, model_test, collective_test, gpu_benchmark, model_benchmark
#                  (default build/release/bin; those of the preset gpu_check load few libraries)
#   --out FILE     the report                                  (default gpu_check.json beside them)
#   --pack FOLDER  copies these programs, stripped, with the libraries that they load, into FOLDER,
#                  for a machine that has no compiler: there, scripts/gpu_check.sh --bin FOLDER
#
# It runs the tests of the ops and of whole models on the GPU, the short ones again under
# compute-sanitizer (memcheck, racecheck), the benchmark of the ops, and steps of whole models beside
# those of PyTorch, where python3 (or CISTERN_PYTHON) has it. Without a GPU the report says "device": null and the exit code is 0;
# with one it is 1 if a test failed. cuBLASLt is looked for where PyTorch and the toolkit put it.
set -euo pipefail

bin="" out="" pack=""
while [ $# -gt 0 ]; do
  case "$1" in
    --bin) bin=$2; shift 2 ;;
    --out) out=$2; shift 2 ;;
    --pack) pack=$2; shift 2 ;;
    -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
    *) echo "gpu_check: unknown argument '$1'; see --help" >&2; exit 2 ;;
  esac
done
root="$(cd "$(dirname "$0")/.." && pwd)"
bin="${bin:-$root/build/release/bin}"
out="${out:-$bin/gpu_check.json}"
programs=(op_test device_test model_test collective_test gpu_benchmark model_benchmark)
for program in "${programs[@]}"; do
  if [ ! -x "$bin/$program" ]; then
    echo "gpu_check: $bin/$program is missing; scripts/build.sh gpu_check ${programs[*]}" >&2
    exit 2
  fi
done

if [ -n "$pack" ]; then
  mkdir -p "$pack/lib"
  for program in "${programs[@]}"; do
    install -s "$bin/$program" "$pack/$program"
    # All that it loads but the C library, which goes with the machine.
    ldd "$bin/$program" | awk '/=> \// {print $3}' |
      grep -vE '/(libc|libm|libdl|librt|libpthread|ld-linux[^/]*)\.so' |
      while read -r library; do install -m 644 "$library" "$pack/lib/"; done
  done
  strip --strip-unneeded "$pack"/lib/* 2>/dev/null || true
  du -sh "$pack"
  exit 0
fi

if [ -d "$bin/lib" ]; then LD_LIBRARY_PATH="$bin/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"; fi
export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:-}"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

"$bin/gpu_benchmark" --query >"$out"
if grep -q '"device": null' "$out"; then
  cat "$out"
  echo "gpu_check: no GPU here, nothing was checked" >&2
  exit 0
fi

# The product library: where toolkits and PyTorch put it, for what the loader does not know.
blas=""
for library in /usr/local/cuda*/lib64/libcublasLt.so.1[2-9] \
  /opt/*/.venv/lib/python3*/site-packages/nvidia/*/lib/libcublasLt.so.1[2-9] \
  /usr/lib/python3*/*-packages/nvidia/*/lib/libcublasLt.so.1[2-9] \
  /usr/local/lib/python3*/*-packages/nvidia/*/lib/libcublasLt.so.1[2-9]; do
  if [ -e "$library" ]; then blas="${blas:+$blas:}${library%/*}"; fi
done
if [ -z "$blas" ]; then
  blas="$(timeout 30 find / -xdev -name 'libcublasLt.so.1[2-9]' -printf '%h' -quit 2>/dev/null || true)"
fi
LD_LIBRARY_PATH="$LD_LIBRARY_PATH${blas:+:$blas}"

failed=0
steps=()
note() {  # NAME RESULT SECONDS LOG
  local last
  last="$(grep -E '^\[  (PASSED|FAILED|SKIPPED) +\]|ERROR SUMMARY|RACECHECK SUMMARY' "$4" |
    tail -n 12 | tr '"\\\t' "''  " | paste -sd ';' || true)"
  steps+=("    {\"name\": \"$1\", \"result\": \"$2\", \"seconds\": $3, \"says\": \"$last\"}")
  echo "== $1: $2, $3 s"
}
step() {  # NAME LIMIT_S COMMAND...
  local name="$1" limit="$2" start="$SECONDS" result=passed
  shift 2
  timeout "$limit" "$@" >"$work/$name.log" 2>&1 || result="failed, exit code $?"
  if [ "$result" != passed ]; then
    failed=1
    tail -n 40 "$work/$name.log"
  fi
  note "$name" "$result" "$((SECONDS - start))" "$work/$name.log"
}
sanitize() {  # TOOL: on the short cases
  if ! command -v compute-sanitizer >/dev/null; then
    steps+=("    {\"name\": \"$1\", \"result\": \"compute-sanitizer is not installed\"}")
    return
  fi
  step "$1" 50 compute-sanitizer --tool "$1" --error-exitcode 9 \
    "$bin/op_test" --gtest_filter='*/cuda_33_32_31:*/cuda_3_0_5:*/cuda_64_3_65:-*Gemm*:*FullyConnected*'
}

export CISTERN_REQUIRE_GPU=1
measure() {  # NAME LIMIT_S COMMAND...: its JSON goes into the report
  local name="$1" limit="$2" start="$SECONDS" result=passed
  shift 2
  timeout "$limit" "$@" >"$work/$name.json" 2>"$work/$name.log" || result="failed, exit code $?"
  cat "$work/$name.log"
  if [ "$result" != passed ]; then failed=1; fi
  note "$name" "$result" "$((SECONDS - start))" "$work/$name.log"
  if [ ! -s "$work/$name.json" ]; then echo null >"$work/$name.json"; fi
}
step device_test 20 "$bin/device_test"
step collective_test 20 "$bin/collective_test" --gtest_filter='Gpu*'
step op_test_on_gpu 70 "$bin/op_test" --gtest_filter='*cuda_*:Gpu*:StreamOfGpu*'
step model_test_on_gpu 50 env CISTERN_TEST_DEVICE=cuda CISTERN_SOURCE_DIR="$root" "$bin/model_test"
sanitize memcheck
sanitize racecheck
measure benchmark 120 "$bin/gpu_benchmark"
measure models 90 "$bin/model_benchmark" --device cuda
python="${CISTERN_PYTHON:-python3}"
if "$python" -c 'import torch' 2>/dev/null; then
  measure torch 80 "$python" "$root/test/benchmark/torch_models.py" --device cuda
else
  echo '{"error": "python3 has no torch here"}' >"$work/torch.json"
fi

device="$(sed -n 's/^  "device": \(.*\),$/\1/p' "$work/benchmark.json")"
{
  echo "{"
  echo "  \"device\": ${device:-null},"
  echo "  \"driver\": \"$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1)\","
  echo "  \"date\": \"$(date -u +%Y-%m-%dT%H:%M:%SZ)\","
  echo "  \"cublaslt\": \"$blas\","
  echo "  \"steps\": ["
  printf '%s\n' "${steps[@]}" | sed '$!s/$/,/'
  echo "  ],"
  for part in models torch benchmark; do
    printf '  "%s": ' "$part"
    sed '1!s/^/  /' "$work/$part.json" | if [ "$part" = benchmark ]; then cat; else sed '$s/$/,/'; fi
  done
  echo "}"
} >"$out"
echo "gpu_check: the report is $out"
exit "$failed"
