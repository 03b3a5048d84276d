#!/usr/bin/env bash
# Runs all checks that need a GPU, in under nine minutes, and writes one JSON report.
#
# usage: scripts/gpu_check.sh [--bin FOLDER] [OPTION ...]
#        scripts/gpu_check.sh --pack FOLDER [--bin FOLDER]
#        scripts/gpu_check.sh --dry [--keep FOLDER] [--bin FOLDER]
#   --bin FOLDER     contains op_test, device_test, model_test, group_test, gpu_benchmark,
#                    model_benchmark and, for whole training runs, cistern and libkernel_times.so
#                    (default build/release/bin; the programs of the preset gpu_check load few libraries)
#   --models "NAME ..."  the models to measure (default all of model_benchmark)
#   --trainings "NAME ..."  what test/benchmark/gpu_training.py trains (default dlrm16, dlrm128 and
#                    dlrm128 with larger passes); "": nothing
#   --out FILE       the report                            (default gpu_check.json in the --bin folder)
#   --limit SECONDS  time limit of the whole check; steps without time left are reported as left out
#                    (default 530)
#   --pack FOLDER    writes these programs, stripped, and the libraries that they load to
#                    FOLDER/programs.tgz, for a machine without a compiler. There, run
#                    scripts/gpu_check.sh --bin FOLDER
#   --dry            tries here, without a GPU, what a call to such a machine depends on: the archive of
#                    the --bin folder (or one made of its programs) in a copy of the tracked files and an
#                    empty environment. Names each piece that is missing or too large, with exit code 1.
#                    --keep: where it leaves the archive that it makes
#
# The steps on the GPU: a smoke test; the benchmark of the ops; steps of whole models, the cycle of a
# pass of 26 million rows, and two runs that must produce the same bits; what the GPU does in a step,
# kernel by kernel; whole trainings end to end; the same models and batches with PyTorch, if python3
# (or CISTERN_PYTHON) has it; then the tests of the ops, of whole models and of whole training runs;
# and the short tests again under compute-sanitizer (memcheck, racecheck), if it is installed and
# supports the GPU. Figures come first, because a failed test is run again.
# Each step has its own time limit, and the report is rewritten after each step, so a step that hangs or
# is killed loses only its own results. The output of the programs is stored with the report, as FILE
# with .logs.tgz in place of .json.
#
# Without a GPU the report has "device": null and the exit code is 0. With a GPU the exit code is 1 if
# anything failed. cuBLASLt, NCCL and CUPTI are searched for in the folders of PyTorch and of the toolkit.
set -euo pipefail

bin="" out="" pack="" dry=no keep="" whole=530 models=""
trainings="dlrm16 dlrm128 dlrm128,cistern.pass_memory_mb=8192"
while [ $# -gt 0 ]; do
  case "$1" in
    --bin) bin=$2; shift 2 ;;
    --models) models=$2; shift 2 ;;
    --trainings) trainings=$2; shift 2 ;;
    --out) out=$2; shift 2 ;;
    --limit) whole=$2; shift 2 ;;
    --pack) pack=$2; shift 2 ;;
    --dry) dry=yes; shift ;;
    --keep) keep=$2; shift 2 ;;
    -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
    *) echo "gpu_check: unknown argument '$1'; see --help" >&2; exit 2 ;;
  esac
done
root="$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)"
bin="${bin:-$root/build/release/bin}"
case "$bin" in /*) ;; *) bin="$PWD/$bin" ;; esac
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
python="${CISTERN_PYTHON:-python3}"

programs=(op_test device_test model_test group_test gpu_benchmark model_benchmark)
extras=(cistern libkernel_times.so)
op_filter='*cuda_*:*Gpu*' group_filter='Gpu*'
trained=(Device.test_a_dnn Device.test_rows_are_carried_from_pass_to_pass
  Device.test_ctr_rows_and_deferred_updates Device.test_a_step_that_is_not_finite_ends_the_run_or_is_skipped)

# Makes `bin` the folder of the programs: unpacks the archive, if there is one.
find_programs() {
  local program
  if [ -e "$bin/programs.tgz" ]; then
    mkdir "$work/programs"
    tar -xzf "$bin/programs.tgz" -C "$work/programs"
    bin="$work/programs"
  fi
  for program in "${programs[@]}"; do
    chmod +x "$bin/$program" 2>/dev/null || true  # copying may have lost the permission
    if [ ! -x "$bin/$program" ]; then
      echo "gpu_check: $bin/$program is missing; build it: scripts/build.sh gpu_check ${programs[*]} cistern kernel_times" >&2
      exit 2
    fi
  done
}

# What ldd says about each library of PROGRAM, except the C library, which belongs to the machine.
libraries_of() {  # PROGRAM
  ldd "$1" | grep '=>' | grep -vE '^\s*(libc|libm|libdl|librt|libpthread|ld-linux[^ ]*)\.so' || true
}

# The archive must fit into one call to a machine, beside the tracked files.
archive_limit=$((48 << 20))
write_archive() {  # FOLDER LEVEL_OF_GZIP
  local program library
  mkdir -p "$1" "$work/pack/lib"
  for program in "${programs[@]}" "${extras[@]}"; do
    if [ ! -e "$bin/$program" ]; then continue; fi
    install -s "$bin/$program" "$work/pack/$program"
    libraries_of "$bin/$program" | awk '$3 ~ /^\// {print $3}' |
      while read -r library; do install -m 644 "$library" "$work/pack/lib/"; done
  done
  strip --strip-unneeded "$work"/pack/lib/* 2>/dev/null || true
  tar -c -C "$work/pack" . | gzip "-$2" >"$1/programs.tgz"
  rm -r "$work/pack"
}

if [ -n "$pack" ]; then
  find_programs
  write_archive "$pack" 6
  du -h "$pack/programs.tgz"
  if [ "$(stat -c %s "$pack/programs.tgz")" -gt "$archive_limit" ]; then
    echo "gpu_check: the archive is large; build the programs with the preset gpu_check, which has no Arrow and oneDNN" >&2
    exit 1
  fi
  exit 0
fi

# The checks of --dry. They continue after a problem, so one run reports all problems.
problems=0
problem() {
  echo "gpu_check: $*" >&2
  problems=$((problems + 1))
}
check_size() {  # ARCHIVE, unpacked in $bin
  local bytes library large=()
  for library in "$bin"/lib/lib{arrow,parquet,dnnl}*; do
    if [ -e "$library" ]; then large+=("--exclude=./lib/${library##*/}"); fi
  done
  bytes="$(stat -c %s "$1")"
  if [ "${#large[@]}" -gt 0 ]; then bytes="$(tar -c "${large[@]}" -C "$bin" . | gzip -1 | wc -c)"; fi
  echo "the archive: $((bytes >> 20)) MB of at most $((archive_limit >> 20)), not counting ${#large[@]} libraries of Arrow and oneDNN, which the preset gpu_check does not have"
  # A build for several architectures is larger than what is carried.
  if [ "$bytes" -gt "$archive_limit" ] && [ "$made" = no ]; then problem "$1 is too large: $bytes bytes of at most $archive_limit"; fi
}
check_libraries() {  # PROGRAM
  local name file
  while read -r name _ file _; do
    case "$file" in
      "$bin/lib/"*) ;;
      /*) problem "$1 would load $file of this machine: the archive does not have $name" ;;
      *) problem "$1 needs $name, which the archive does not have" ;;
    esac
  done < <(LD_LIBRARY_PATH="$bin/lib" libraries_of "$bin/$1")
}
# Runs COMMAND in the copy of the tracked files, with nothing of this shell's environment. Its output
# must match PATTERN, unless that is empty.
try() {  # PATTERN COMMAND...
  local pattern="$1" code=0
  shift
  (cd "$work/tree" && exec env -i PATH="$PATH" HOME="$work/home" TMPDIR="$work/home" CUDA_VISIBLE_DEVICES= \
    timeout -k 4 60 "$@") >"$work/said" 2>&1 </dev/null || code=$?
  if [ "$code" -ne 0 ]; then
    problem "exit code $code of $*"
  elif [ -n "$pattern" ] && ! grep -qE "$pattern" "$work/said"; then
    problem "'$pattern' is not in the output of $*"
  else
    return 0
  fi
  tail -n 5 "$work/said" >&2
}
dry_run() {
  local archive="$bin/programs.tgz" made=no program own
  if [ ! -e "$archive" ]; then
    find_programs
    made=yes
    write_archive "${keep:-$work/archive}" 1  # fast, a tenth larger
    bin="${keep:-$work/archive}"
    archive="$bin/programs.tgz"
  fi
  mkdir -p "$work/tree/.gpu" "$work/home"
  git -C "$root" ls-files -z | tar -C "$root" --null --ignore-failed-read -T - -c | tar -x -C "$work/tree"
  ln "$archive" "$work/tree/.gpu/" 2>/dev/null || cp "$archive" "$work/tree/.gpu/"
  find_programs
  check_size "$archive"
  for program in "${programs[@]}" "${extras[@]}"; do
    if [ -e "$bin/$program" ]; then
      check_libraries "$program"
    else
      echo "the archive has no $program: what needs it will be left out"
    fi
  done
  # Each program starts, and finds the tests that it has to run.
  own=(env "LD_LIBRARY_PATH=$bin/lib")
  try '^  [^ ]' "${own[@]}" "$bin/op_test" --gtest_list_tests "--gtest_filter=$op_filter"
  try '^  [^ ]' "${own[@]}" "$bin/device_test" --gtest_list_tests
  try '^  [^ ]' "${own[@]}" "$bin/model_test" --gtest_list_tests
  try '^  [^ ]' "${own[@]}" "$bin/group_test" --gtest_list_tests "--gtest_filter=$group_filter"
  try '"samples_per_s"' "${own[@]}" "$bin/model_benchmark" --device cpu --batch 4 --rows 1000 --steps 1 deepfm
  if command -v "$python" >/dev/null; then
    try '' "$python" -m py_compile test/benchmark/torch_models.py
    if [ -x "$bin/cistern" ]; then
      printf '#!/bin/sh\nLD_LIBRARY_PATH="%s" exec "%s" "$@"\n' "$bin/lib" "$bin/cistern" >"$work/cistern"
      chmod +x "$work/cistern"
      try '' "$python" test/benchmark/gpu_training.py data --cistern "$work/cistern" --folder "$work/home" --samples 2000
      try "^${#trained[@]} tests" env CISTERN_BIN="$bin" CISTERN_DEVICE_PROGRAM=cistern "$python" -c '
import sys, unittest
sys.path.insert(0, "test/integration")
import device_test
loader = unittest.TestLoader()
found = loader.loadTestsFromNames(sys.argv[1:], device_test)
sys.exit("".join(loader.errors)) if loader.errors else print(found.countTestCases(), "tests")' "${trained[@]}"
    fi
  fi
  # The check itself, which ends where it finds no GPU.
  try '"device": null' bash scripts/gpu_check.sh --bin .gpu --out report/gpu_check.json
  if [ ! -s "$work/tree/report/gpu_check.json" ]; then problem "no report was written"; fi
}
if [ "$dry" = yes ]; then
  dry_run
  if [ "$problems" -gt 0 ]; then
    echo "gpu_check: $problems problems" >&2
    exit 1
  fi
  echo "gpu_check: nothing is missing"
  exit 0
fi

out="${out:-$bin/gpu_check.json}"
mkdir -p "$(dirname "$out")"
if ! { : >"$out.new"; } 2>/dev/null; then
  echo "gpu_check: $out cannot be written: name a file in a writable folder (--out FILE)" >&2
  exit 2
fi
rm -f "$out.new"
out_absolute="$(cd "$(dirname "$out")" && pwd)/$(basename "$out")"
find_programs

# These libraries are only for our own programs: PyTorch has its own versions and must load those.
libraries="$bin/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
own=(env "LD_LIBRARY_PATH=$libraries")

# limited SECONDS COMMAND...: runs a command with a time limit. Returns 124 or 137 if the command was
# killed at the limit, and 125 if it cannot be killed (it waits inside the GPU driver) and is abandoned.
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
  echo "gpu_check: $bin/gpu_benchmark --query failed: it cannot run on this machine, or the GPU hangs" >&2
  exit 1
fi
if grep -q '"device": null' "$out"; then
  cat "$out"
  echo "gpu_check: no usable GPU on this machine (the reason is above); nothing was checked" >&2
  exit 0
fi
device="$(sed -n 's/^  "device": \(.*"\),\{0,1\}$/\1/p' "$out")"
driver="$(limited 20 nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1 || true)"

# Finds the libraries that are loaded at first use: in PyTorch's packages, the toolkit, or anywhere else.
site="$(limited 20 "$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' 2>/dev/null || true)"
found=""
for library in 'libcublasLt.so.1[23]' libnccl.so.2 'libcupti.so.1[23]'; do
  folder=""
  for file in "$site"/nvidia/*/lib/$library /opt/*/.venv/lib/python3*/site-packages/nvidia/*/lib/$library \
    /usr/local/lib/python3*/*-packages/nvidia/*/lib/$library \
    /usr/lib/python3*/*-packages/nvidia/*/lib/$library \
    /usr/local/cuda*/lib64/$library /usr/local/cuda*/lib/$library /usr/local/cuda*/extras/CUPTI/lib64/$library; do
    if [ -e "$file" ]; then folder="${file%/*}"; break; fi
  done
  if [ -z "$folder" ]; then
    folder="$(timeout 30 find / -xdev -name "$library" -printf '%h' -quit 2>/dev/null || true)"
  fi
  found="$found${folder:+${found:+:}$folder}"
done
own=(env "LD_LIBRARY_PATH=$libraries${found:+:$found}")

# Prints the seconds until the last step must have ended.
left() { echo "$((whole - SECONDS - 12))"; }

failed=0
steps=()
parts=(models profile training torch benchmark)
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

# Escapes standard input for a JSON string.
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

# Runs COMMAND within LIMIT_S and the time left for the whole check; sets `code`, `result` and `took`.
# If OUTPUT is json, standard output goes to $work/NAME.json and standard error to $work/NAME.log; if it
# is log, both go to $work/NAME.log.
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
# Runs a test program and reports its result.
step() {  # NAME LIMIT_S COMMAND...
  run "$1" "$2" log "${own[@]}" "${@:3}"
  if [ "$code" -gt 1 ]; then  # it was killed, or crashed
    result="$result, in $(grep -a '^\[ RUN ' "$work/$1.log" | tail -n 1 | quoted | cut -c13-)"
  fi
  if [ "$code" -ne 0 ]; then
    failed=1
    tail -n 40 "$work/$1.log"
  fi
  note "$1" "$result" "$took" "$work/$1.log"
  if [ "$code" -ne 0 ]; then alone "$1" "${@:3}"; fi
}
# Repeats failed tests, each in its own process, for up to twenty seconds, and reports which fail again.
# Some CUDA errors are sticky: every later test in the same process fails, too.
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
# Runs a benchmark and puts its JSON into the report, or its output so far if it did not finish.
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
# Runs the short cases of op_test under a tool of compute-sanitizer. If the tool is missing, does not
# support the GPU (as in some virtual machines) or is too slow, that is not a failure.
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
    result="not available: compute-sanitizer does not support this GPU"
  elif [ "$code" -eq 9 ] || grep -qa '^\[  FAILED  \]' "$work/$1.log" 2>/dev/null; then
    failed=1
  elif [ "$code" -ne 0 ]; then
    result="not available: ${result#failed, }"
  fi
  note "$1" "$result" "$took" "$work/$1.log"
}

export CISTERN_REQUIRE_GPU=1
# The limits of all steps except the sanitizer's fit into the whole limit together, so a step that hangs
# takes no time from the others.
step device_test 25 "$bin/device_test"

# Whole trainings read from memory. Their data is written beside the benchmark of the ops, which does
# not need the host.
data="$work/data"
if [ "$(df --output=avail /dev/shm 2>/dev/null | tail -n 1 || echo 0)" -gt $((24 << 20)) ]; then
  data="$(mktemp -d -p /dev/shm)"
  trap 'rm -rf "$work" "$data"' EXIT
fi
has_python=0 writer=""
if command -v "$python" >/dev/null; then has_python=1; fi
if [ -x "$bin/cistern" ]; then
  # A wrapper sets the library path for cistern only, because Python must load its own libraries.
  mkdir "$work/whole"
  printf '#!/bin/sh\nLD_LIBRARY_PATH="%s" exec "%s" "$@"\n' "$libraries${found:+:$found}" "$bin/cistern" \
    >"$work/whole/cistern"
  chmod +x "$work/whole/cistern"
fi
training=(timeout -k 4 120 "$python" "$root/test/benchmark/gpu_training.py" --cistern "$work/whole/cistern" --folder "$data")
if [ -x "$bin/cistern" ] && [ "$has_python" = 1 ] && [ -n "$trainings" ]; then
  "${training[@]}" data >"$work/data.log" 2>&1 &
  writer=$!
fi
measure benchmark 60 "${own[@]}" "$bin/gpu_benchmark"
if [ -n "$writer" ] && ! wait "$writer"; then
  failed=1
  note training_data "failed" 0 "$work/data.log"
  writer=""
fi
# The roofs for the models: the copy and matrix-product rates that the benchmark has just measured.
roofs=""
for roof in copy_gb_s product_fp32_tflop_s product_tf32_tflop_s product_bf16_tflop_s; do
  rate="$(sed -n "s/^ *\"$roof\": \([0-9.]*\),\{0,1\}$/\1/p" "$work/benchmark.json" 2>/dev/null | head -n 1)"
  roofs="$roofs${roofs:+,}${rate:-0}"
done
read -ra names <<<"$models"
measure models 90 "${own[@]}" "$bin/model_benchmark" --device cuda --roofs "$roofs" \
  --batches "$work/batches" "${names[@]}"

# Joins profiles of single models into one JSON object.
profile_models() {
  local model comma="" code=0
  echo "{"
  for model in dlrm128 dlrm16 deepfm dcn2; do
    "${own[@]}" env CUDA_INJECTION64_PATH="$bin/libkernel_times.so" CISTERN_KERNEL_TIMES="$work/kernels_$model.json" \
      "$bin/model_benchmark" --device cuda --way bf16 --steps 20 "$model" >/dev/null || code=1
    if [ ! -s "$work/kernels_$model.json" ]; then
      code=1
      continue
    fi
    printf '%s"%s": ' "$comma" "$model"
    cat "$work/kernels_$model.json"
    comma=","
  done
  echo "}"
  return "$code"
}
if [ -e "$bin/libkernel_times.so" ]; then
  export -f profile_models
  export bin work
  OWN="${own[*]}" measure profile 45 bash -c 'read -ra own <<<"$OWN"; profile_models'
fi
if [ -n "$writer" ]; then
  observer=()
  if [ -e "$bin/libkernel_times.so" ]; then observer=(--observer "$bin/libkernel_times.so"); fi
  read -ra names <<<"$trainings"
  measure training 110 "${training[@]}" train "${names[@]}" "${observer[@]}" --seconds 10
  read -ra names <<<"$models"
fi
if [ "$(left)" -lt 20 ]; then
  note torch "left out: no time left of $whole s" 0 ""
elif limited 40 "$python" -c 'import torch' >/dev/null 2>&1; then
  seconds="$(($(left) / 2))"
  if [ "$seconds" -gt 120 ]; then seconds=120; fi
  batches=(--batches "$work/batches")  # written by model_benchmark above
  if [ ! -s "$work/batches" ]; then batches=(); fi
  measure torch "$seconds" "$python" "$root/test/benchmark/torch_models.py" --device cuda \
    --seconds "$((seconds > 25 ? seconds - 12 : seconds / 2))" "${batches[@]}" "${names[@]}"
else
  echo "{\"error\": \"$python has no torch\"}" >"$work/torch.json"
fi
step group_test 25 "$bin/group_test" "--gtest_filter=$group_filter"
step op_test_on_gpu 60 "$bin/op_test" "--gtest_filter=$op_filter"
step model_test_on_gpu 60 env CISTERN_TEST_DEVICE=cuda CISTERN_SOURCE_DIR="$root" "$bin/model_test"
if [ -x "$bin/cistern" ] && [ "$has_python" = 0 ]; then
  note training_on_gpu "not available: $python is not installed" 0 ""
elif [ -x "$bin/cistern" ]; then
  run training_on_gpu 60 log env CISTERN_BIN="$work/whole" CISTERN_DEVICE_PROGRAM=cistern \
    "$python" "$root/test/integration/device_test.py" "${trained[@]}"
  if [ "$code" -ne 0 ]; then
    failed=1
    tail -n 40 "$work/training_on_gpu.log"
  fi
  note training_on_gpu "$result" "$took" "$work/training_on_gpu.log"
fi
sanitize memcheck
sanitize racecheck
report
echo "gpu_check: the report is $out"
exit "$failed"
