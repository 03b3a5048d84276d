#!/usr/bin/env bash
# Tests scripts/gpu_check.sh without a GPU: it must report the reason and succeed.
set -euo pipefail
script="$(dirname "$0")/../../scripts/gpu_check.sh"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

query="$("$CISTERN_BIN/gpu_benchmark" --query)"
if ! grep -q '"device": null' <<<"$query"; then
  echo "gpu_check_test: skipped because this machine has a GPU; run scripts/gpu_check.sh"
  exit 77
fi
fail() {
  echo "gpu_check_test: $*" >&2
  exit 1
}
"$script" --bin "$CISTERN_BIN" --out "$work/report.json" >"$work/said" 2>&1 ||
  fail "gpu_check.sh failed without a GPU: $(cat "$work/said")"
grep -q '"device": null' "$work/report.json" || fail "the report names a device"
grep -q '"reason": "..*"' "$work/report.json" || fail "the report has no reason"
if command -v python3 >/dev/null; then python3 -m json.tool "$work/report.json" >/dev/null; fi

# With a GPU, simulated by stub programs: the report is one JSON that combines their parts.
mkdir "$work/bin"
cat >"$work/pretend" <<'END'
#!/bin/sh
cat "$0.says"
END
chmod +x "$work/pretend"
pretend() {  # PROGRAM OUTPUT
  printf '%s\n' "$2" >"$work/bin/$1.says"
  ln -sf "$work/pretend" "$work/bin/$1"
}
for program in op_test device_test model_test group_test; do pretend "$program" "[  PASSED  ] 3 tests."; done
pretend gpu_benchmark '{
  "device": "pretended",
  "figures": []
}'
pretend model_benchmark '{"rows": 3}'
CISTERN_PYTHON=false "$script" --bin "$work/bin" --out "$work/report.json" >"$work/said" 2>&1 ||
  fail "gpu_check.sh failed with stub programs: $(cat "$work/said")"
grep -q '"device": "pretended"' "$work/report.json" || fail "the report does not name the device"
grep -q '"models": {"rows": 3}' "$work/report.json" || fail "the report has no models"
if command -v python3 >/dev/null; then python3 -m json.tool "$work/report.json" >/dev/null; fi


# A failed test is run again alone, because another test may have caused its failure.
cat >"$work/bin/failing" <<'END'
#!/bin/sh
case "$*" in
  *gtest_filter=Second.Test*) exit 0 ;;
  *gtest_filter=First.Test*) exit 1 ;;
esac
echo '[  FAILED  ] First.Test (1 ms)'
echo '[  FAILED  ] Second.Test, where GetParam() = 3 (1 ms)'
echo '[  FAILED  ] 2 tests, listed below:'
exit 1
END
chmod +x "$work/bin/failing"
ln -sf failing "$work/bin/op_test"
if CISTERN_PYTHON=false "$script" --bin "$work/bin" --out "$work/report.json" >"$work/said" 2>&1; then
  fail "gpu_check.sh succeeded although tests failed"
fi
grep -q '"op_test_on_gpu, failed tests alone", "result": "of 2 failing: First.Test"' "$work/report.json" ||
  fail "the report does not name the test that fails alone: $(cat "$work/report.json")"
ln -sf "$work/pretend" "$work/bin/op_test"

# A program that hangs uses up only its own limit. Its output so far is in the report; later steps
# are skipped.
cat >"$work/hanging" <<'END'
#!/bin/sh
echo 'half a "figure"' >&2
sleep 600
END
chmod +x "$work/hanging"
ln -sf "$work/hanging" "$work/bin/model_benchmark"
code=0
CISTERN_PYTHON=false "$script" --bin "$work/bin" --out "$work/report.json" --limit 20 \
  >"$work/said" 2>&1 || code=$?
[ "$code" = 1 ] || fail "gpu_check.sh exited with $code on a program that hangs: $(cat "$work/said")"
grep -q '"models", "result": "failed, not ended within' "$work/report.json" ||
  fail "the report does not name the program that hangs"
grep -q 'half a \\"figure\\"' "$work/report.json" || fail "the output of the program that hangs is lost"
if command -v python3 >/dev/null; then python3 -m json.tool "$work/report.json" >/dev/null; fi
# Through a file: grep -q exits at the first match, and tar would fail with a broken pipe.
tar -tzf "$work/report.logs.tgz" >"$work/names"
grep -q models.log "$work/names" || fail "the archive has no models.log"

# The real programs on the emulated GPU, with small sizes.
if [ -x "$CISTERN_BIN/gpu_benchmark_emulated" ] && [ -x "$CISTERN_BIN/model_benchmark_emulated" ]; then
  emulate() {  # PROGRAM EMULATED FLAGS
    rm -f "$work/bin/$1"
    printf '#!/bin/sh\nexec "%s" "$@" %s\n' "$CISTERN_BIN/$2" "$3" >"$work/bin/$1"
    chmod +x "$work/bin/$1"
  }
  printf '#!/bin/sh\n[ "$1" = --query ] || set -- --small\nexec "%s" "$@"\n' \
    "$CISTERN_BIN/gpu_benchmark_emulated" >"$work/small"
  chmod +x "$work/small"
  ln -sf "$work/small" "$work/bin/gpu_benchmark"
  emulate device_test op_emulated_test --gtest_filter=QueryGpus.*:TestGpu.*
  emulate op_test op_emulated_test --gtest_filter=Gpu.*:*MemoryTest*cuda*:*ActivationTest*cuda_33*
  emulate model_test model_emulated_test --gtest_filter=Model.*:MixedPrecisionModel.*
  emulate group_test group_test ""
  if [ -x "$CISTERN_BIN/cistern-emulated" ]; then emulate cistern cistern-emulated ""; fi
  emulate model_benchmark model_benchmark_emulated "--batch 4 --rows 1000 --steps 1 deepfm"
  # A training of Criteo's shape would take an hour here.
  "$script" --bin "$work/bin" --trainings "" --out "$work/report.json" >"$work/said" 2>&1 ||
    fail "gpu_check.sh failed on the emulated GPU: $(cat "$work/said")"
  for part in '"device": "emulated GPU"' '"model": "deepfm", "way": "bf16, no graph"' \
    '"share_of_roof": 0.0' '"way": "pass cycle"' '"way": "determinism", "runs": 2, "same_bits": true' \
    '"name": "DotInteraction, 26 slots, D=128"' '"name": "model_test_on_gpu", "result": "passed"'; do
    grep -qF "$part" "$work/report.json" || fail "the report lacks $part"
  done
  if [ -x "$CISTERN_BIN/cistern-emulated" ]; then
    grep -q '"training_on_gpu", "result": "passed"' "$work/report.json" || fail "no training passed on the GPU"
  fi
  python3 -m json.tool "$work/report.json" >/dev/null
fi

code=0
"$script" --bin "$CISTERN_BIN" --out /proc/report.json >"$work/said" 2>&1 || code=$?
[ "$code" = 2 ] || fail "gpu_check.sh exited with $code on an unwritable report"
grep -q "/proc/report.json cannot be written" "$work/said" || fail "the error does not name the report"

code=0
"$script" --bin "$work" >"$work/said" 2>&1 || code=$?
[ "$code" = 2 ] || fail "gpu_check.sh exited with $code on missing programs"
grep -q "op_test is missing" "$work/said" || fail "the error does not name the missing program"
echo "gpu_check_test: passed"
