#!/usr/bin/env bash
# Everything that only a GPU can tell, in one call under nine minutes, as one JSON.
#
# usage: scripts/gpu_check.sh [--bin FOLDER] [--out FILE] [--limit SECONDS]
#        scripts/gpu_check.sh --pack FOLDER [--bin FOLDER]
#   --bin FOLDER     holds op_test, device_test, model_test, group_test, gpu_benchmark,
#                    model_benchmark and, for whole trainings, cistern
#                    (default build/release/bin; those of the preset gpu_check load few libraries)
#   --out FILE       the report                              (default gpu_check.json beside them)
#   --limit SECONDS  of the whole; what there is no time for is left out, and said   (default 530)
#   --pack FOLDER    puts these programs, stripped, with the libraries that they load, into
#                    FOLDER/programs.tgz, for a machine that has no compiler: there,
#                    scripts/gpu_check.sh --bin FOLDER
#
# It runs the tests of the ops, of whole models and of whole trainings on the GPU, the benchmark of
# the ops, steps of whole models, the cycle of a pass of 26 million rows and two runs that must end
# with the same bits, the same models and batches with PyTorch, where python3 (or CISTERN_PYTHON) has
# it, and the short tests again under compute-sanitizer (memcheck, racecheck), where that is
# installed and knows the GPU.
# Each has a limit of its own, and the report is written again after each: what hangs or is killed
# costs no more than itself. What the programs said is beside the report, in FILE without .json and
# with .logs.tgz.
#
# Without a GPU the report says "device": null and the exit code is 0; with one it is 1 if anything
# failed. cuBLASLt and NCCL are looked for where PyTorch and the toolkit put them.
set -euo pipefail

bin="" out="" pack="" whole=530
while [ $# -gt 0 ]; do
  case "$1" in
    --bin) bin=$2; shift 2 ;;
    --out) out=$2; shift 2 ;;
    --limit) whole=$2; shift 2 ;;
    --pack) pack=$2; shift 2 ;;
    -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
    *) echo "gpu_check: unknown argument '$1'; see --help" >&2; exit 2 ;;
  esac
done
root="$(cd "$(dirname "$0")/.." && pwd)"
bin="${bin:-$root/build/release/bin}"
out="${out:-$bin/gpu_check.json}"
mkdir -p "$(dirname "$out")"
if ! { : >"$out.new"; } 2>/dev/null; then
  echo "gpu_check: $out cannot be written: give --out FILE in a folder that can" >&2
  exit 2
fi
rm -f "$out.new"
out_absolute="$(cd "$(dirname "$out")" && pwd)/$(basename "$out")"
case "$bin" in /*) ;; *) bin="$PWD/$bin" ;; esac
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
if [ -e "$bin/programs.tgz" ]; then
  mkdir "$work/programs"
  tar -xzf "$bin/programs.tgz" -C "$work/programs"
  bin="$work/programs"
fi
programs=(op_test device_test model_test group_test gpu_benchmark model_benchmark)
for program in "${programs[@]}"; do
  chmod +x "$bin/$program" 2>/dev/null || true  # the way here may have lost it
  if [ ! -x "$bin/$program" ]; then
    echo "gpu_check: $bin/$program is missing; scripts/build.sh gpu_check ${programs[*]} cistern" >&2
    exit 2
  fi
done

if [ -n "$pack" ]; then
  if [ -x "$bin/cistern" ]; then programs+=(cistern); fi
  mkdir -p "$pack" "$work/pack/lib"
  for program in "${programs[@]}"; do
    install -s "$bin/$program" "$work/pack/$program"
    # All that it loads but the C library, which goes with the machine.
    ldd "$bin/$program" | awk '/=> \// {print $3}' |
      grep -vE '/(libc|libm|libdl|librt|libpthread|ld-linux[^/]*)\.so' |
      while read -r library; do install -m 644 "$library" "$work/pack/lib/"; done
  done
  strip --strip-unneeded "$work"/pack/lib/* 2>/dev/null || true
  tar -czf "$pack/programs.tgz" -C "$work/pack" .
  du -h "$pack/programs.tgz"
  exit 0
fi

python="${CISTERN_PYTHON:-python3}"

# The libraries of the programs here are nobody else's: PyTorch brings its own, and wants them.
libraries="$bin/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
own=(env "LD_LIBRARY_PATH=$libraries")

# Runs a command for at most so many seconds: 124 or 137 if it was ended then. One that nothing can
# end, as a program that waits inside a GPU's driver, is left behind: 125.
limited() {
  local limit="$1" until="$((SECONDS + $1 + 8))" process
  shift
  timeout -k 4 "$limit" "$@" &
  process=$!
  while kill -0 "$process" 2>/dev/null; do
    if [ "$SECONDS" -ge "$until" ]; then return 125; fi
    sleep 0.1
  done
  wait "$process"
}

if ! limited 60 "${own[@]}" "$bin/gpu_benchmark" --query >"$out"; then
  printf '{\n  "device": null,\n  "reason": "gpu_benchmark --query failed"\n}\n' >"$out"
  echo "gpu_check: $bin/gpu_benchmark --query failed: it does not run here, or the GPU hangs" >&2
  exit 1
fi
if grep -q '"device": null' "$out"; then
  cat "$out"
  echo "gpu_check: no GPU here that these programs can use (the reason is above), nothing was checked" >&2
  exit 0
fi
device="$(sed -n 's/^  "device": \(.*"\),\{0,1\}$/\1/p' "$out")"
driver="$(limited 20 nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1 || true)"

# The libraries that are loaded when they are used: in PyTorch's packages, in the toolkit, anywhere.
site="$(limited 20 "$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' 2>/dev/null || true)"
found=""
for library in 'libcublasLt.so.1[23]' libnccl.so.2; do
  folder=""
  for file in "$site"/nvidia/*/lib/$library /opt/*/.venv/lib/python3*/site-packages/nvidia/*/lib/$library \
    /usr/local/lib/python3*/*-packages/nvidia/*/lib/$library \
    /usr/lib/python3*/*-packages/nvidia/*/lib/$library \
    /usr/local/cuda*/lib64/$library /usr/local/cuda*/lib/$library; do
    if [ -e "$file" ]; then folder="${file%/*}"; break; fi
  done
  if [ -z "$folder" ]; then
    folder="$(timeout 30 find / -xdev -name "$library" -printf '%h' -quit 2>/dev/null || true)"
  fi
  found="$found${folder:+${found:+:}$folder}"
done
own=(env "LD_LIBRARY_PATH=$libraries${found:+:$found}")

# Seconds until the last step must have ended.
left() { echo "$((whole - SECONDS - 12))"; }

failed=0
steps=()
parts=(models torch benchmark)
report() {
  local part
  {
    echo "{"
    echo "  \"device\": ${device:-null},"
    echo "  \"driver\": \"$driver\","
    echo "  \"date\": \"$(date -u +%Y-%m-%dT%H:%M:%SZ)\","
    echo "  \"seconds\": $SECONDS,"
    echo "  \"libraries\": \"$found\","
    echo "  \"steps\": ["
    if [ "${#steps[@]}" -gt 0 ]; then printf '%s\n' "${steps[@]}" | sed '$!s/$/,/'; fi
    echo "  ],"
    for part in "${parts[@]}"; do
      printf '  "%s": ' "$part"
      if [ -s "$work/$part.json" ]; then sed '1!s/^/  /' "$work/$part.json"; else echo null; fi |
        if [ "$part" = benchmark ]; then cat; else sed '$s/$/,/'; fi
    done
    echo "}"
  } >"$out.new"
  mv "$out.new" "$out"
  (cd "$work" && tar -czf "${out_absolute%.json}.logs.tgz" ./*.log ./*.json 2>/dev/null) || true
}
trap 'report; exit 1' TERM INT

# Text as it may stand between the quotes of a JSON.
quoted() { tr -d '\000-\010\013-\037' | sed 's/\\/\\\\/g; s/"/\\"/g; s/\t/ /g'; }
note() {  # NAME RESULT SECONDS LOG
  local says=""
  if [ -e "$4" ]; then
    says="$(grep -aE '^\[  (PASSED|FAILED|SKIPPED) +\]|^(OK|FAILED)( |$)|^Ran |ERROR SUMMARY|RACECHECK SUMMARY' "$4" |
      tail -n 12 | quoted | paste -sd ';' || true)"
  fi
  steps+=("    {\"name\": \"$1\", \"result\": \"$2\", \"seconds\": $3, \"says\": \"$says\"}")
  echo "== $1: $2, $3 s"
  report
}

# Runs COMMAND within its limit and what is left of the whole: sets `code`, `result` and `took`. Its
# output goes to $work/NAME.json (standard) and NAME.log (errors; both where it is no measurement).
run() {  # NAME LIMIT_S OUTPUT COMMAND...
  local name="$1" limit="$2" output="$3" start="$SECONDS" left
  left="$(left)"
  shift 3
  if [ "$left" -lt 5 ]; then
    code=0 took=0 result="left out: no time left of $whole s"
    return
  fi
  if [ "$limit" -gt "$left" ]; then limit="$left"; fi
  code=0
  if [ "$output" = json ]; then
    limited "$limit" "$@" >"$work/$name.json" 2>"$work/$name.log" || code=$?
  else
    limited "$limit" "$@" >"$work/$name.log" 2>&1 || code=$?
  fi
  took="$((SECONDS - start))"
  case "$code" in
    0) result=passed ;;
    124 | 137) result="failed, not ended within $limit s" ;;
    125) result="failed, cannot be ended" ;;
    *) result="failed, exit code $code" ;;
  esac
}
# A program of tests.
step() {  # NAME LIMIT_S COMMAND...
  run "$1" "$2" log "${own[@]}" "${@:3}"
  if [ "$code" -gt 1 ]; then  # it was ended, or ended itself
    result="$result, in $(grep -a '^\[ RUN ' "$work/$1.log" | tail -n 1 | quoted | cut -c13-)"
  fi
  if [ "$code" -ne 0 ]; then
    failed=1
    tail -n 40 "$work/$1.log"
  fi
  note "$1" "$result" "$took" "$work/$1.log"
  if [ "$code" -ne 0 ]; then alone "$1" "${@:3}"; fi
}
# CUDA keeps some errors, so that every test behind one fails, too: which fail in a process of their
# own, as far as twenty seconds go?
alone() {  # NAME COMMAND...
  local name="$1" test failing="" until="$((SECONDS + 20))" start="$SECONDS" tested=0
  shift
  for test in $(grep -aoE '^\[  FAILED  \] [^ ,]+\.[^ ,]+' "$work/$name.log" | cut -c14- | awk '!seen[$0]++'); do
    if [ "$SECONDS" -ge "$until" ] || [ "$(left)" -lt 20 ]; then break; fi
    tested="$((tested + 1))"
    limited 15 "${own[@]}" "$@" --gtest_filter="$test" >>"$work/$name.alone.log" 2>&1 || failing="$failing $test"
  done
  note "$name, failed tests alone" "of $tested failing:${failing:- none}" "$((SECONDS - start))" ""
}
# Its JSON goes into the report; of one that did not come to its end, what it said until then.
measure() {  # NAME LIMIT_S COMMAND...
  run "$1" "$2" json "${@:3}"
  if [ -e "$work/$1.log" ]; then tail -n 60 "$work/$1.log"; fi
  if [ "$code" -ne 0 ]; then failed=1; fi
  if [ "$code" -ne 0 ] && [ ! -s "$work/$1.json" ] && [ -e "$work/$1.log" ]; then
    { echo "{\"ended_early\": ["; quoted <"$work/$1.log" | sed 's/.*/  "&"/; $!s/$/,/'; echo "]}"; } \
      >"$work/$1.json"
  fi
  note "$1" "$result" "$took" "$work/$1.log"
}
# On the short cases. It is a tool of the machine: where it is missing, does not know the GPU (as in
# some virtual machines) or is slow nothing has failed.
sanitize() {  # TOOL
  local tool
  tool="$(command -v compute-sanitizer || ls -d /usr/local/cuda*/bin/compute-sanitizer 2>/dev/null | head -n 1 || true)"
  if [ -z "$tool" ]; then
    note "$1" "not available: compute-sanitizer is not installed" 0 ""
    return
  fi
  run "$1" 70 log "$tool" --tool "$1" --target-processes all --error-exitcode 9 \
    "${own[@]}" "$bin/op_test" \
    --gtest_filter='*/cuda_33_32_31:*/cuda_3_0_5:*/cuda_64_3_65:-*Gemm*:*FullyConnected*'
  if [ "$code" -ne 0 ]; then tail -n 40 "$work/$1.log"; fi
  if grep -qiE 'device not supported|unable to (attach|launch|inject)|not supported on' "$work/$1.log" 2>/dev/null; then
    result="not available: compute-sanitizer does not know this GPU"
  elif [ "$code" -eq 9 ] || grep -qa '^\[  FAILED  \]' "$work/$1.log" 2>/dev/null; then
    failed=1
  elif [ "$code" -ne 0 ]; then
    result="not available: ${result#failed, }"
  fi
  note "$1" "$result" "$took" "$work/$1.log"
}

export CISTERN_REQUIRE_GPU=1
# The limits of all but the sanitizer fit into the whole: what hangs takes no other's time.
step device_test 25 "$bin/device_test"
step group_test 25 "$bin/group_test" --gtest_filter='Gpu*'
step op_test_on_gpu 80 "$bin/op_test" --gtest_filter='*cuda_*:*Gpu*'
step model_test_on_gpu 65 env CISTERN_TEST_DEVICE=cuda CISTERN_SOURCE_DIR="$root" "$bin/model_test"
if [ -x "$bin/cistern" ] && ! command -v "$python" >/dev/null; then
  note training_on_gpu "not available: no $python here" 0 ""
elif [ -x "$bin/cistern" ]; then
  # Python has its own libraries, too.
  mkdir "$work/whole"
  printf '#!/bin/sh\nLD_LIBRARY_PATH="%s" exec "%s" "$@"\n' "$libraries${found:+:$found}" "$bin/cistern" \
    >"$work/whole/cistern"
  chmod +x "$work/whole/cistern"
  run training_on_gpu 50 log env CISTERN_BIN="$work/whole" CISTERN_DEVICE_PROGRAM=cistern \
    "$python" "$root/test/integration/device_test.py" Device.test_a_dnn \
    Device.test_rows_are_carried_from_pass_to_pass Device.test_ctr_rows_and_steps_that_are_made_up \
    Device.test_a_step_that_is_not_finite_ends_the_run_or_is_skipped
  if [ "$code" -ne 0 ]; then
    failed=1
    tail -n 40 "$work/training_on_gpu.log"
  fi
  note training_on_gpu "$result" "$took" "$work/training_on_gpu.log"
fi
measure benchmark 70 "${own[@]}" "$bin/gpu_benchmark"
# What the models are held against: copies and products as this machine made them just now.
roofs=""
for roof in copy_gb_s product_fp32_tflop_s product_tf32_tflop_s product_bf16_tflop_s; do
  rate="$(sed -n "s/^ *\"$roof\": \([0-9.]*\),\{0,1\}$/\1/p" "$work/benchmark.json" 2>/dev/null | head -n 1)"
  roofs="$roofs${roofs:+,}${rate:-0}"
done
measure models 100 "${own[@]}" "$bin/model_benchmark" --device cuda --roofs "$roofs" \
  --batches "$work/batches"
if [ "$(left)" -lt 20 ]; then
  note torch "left out: no time left of $whole s" 0 ""
elif limited 40 "$python" -c 'import torch' >/dev/null 2>&1; then
  seconds="$(left)"
  if [ "$seconds" -gt 100 ]; then seconds=100; fi
  data=(--batches "$work/batches")  # those of the models just now
  if [ ! -s "$work/batches" ]; then data=(); fi
  measure torch "$seconds" "$python" "$root/test/benchmark/torch_models.py" --device cuda \
    --seconds "$((seconds > 25 ? seconds - 12 : seconds / 2))" "${data[@]}"
else
  echo "{\"error\": \"$python has no torch here\"}" >"$work/torch.json"
fi
sanitize memcheck
sanitize racecheck
report
echo "gpu_check: the report is $out"
exit "$failed"
