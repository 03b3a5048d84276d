#!/usr/bin/env bash
# scripts/gpu_check.sh where there is no GPU: it says so in its report, and succeeds.
set -euo pipefail
script="$(dirname "$0")/../../scripts/gpu_check.sh"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

if ! "$CISTERN_BIN/gpu_benchmark" --query | grep -q '"device": null'; then
  echo "gpu_check_test: skipped, this machine has a GPU: run scripts/gpu_check.sh"
  exit 77
fi
fail() {
  echo "gpu_check_test: $*" >&2
  exit 1
}
"$script" --bin "$CISTERN_BIN" --out "$work/report.json" >"$work/said" 2>&1 ||
  fail "without a GPU it failed: $(cat "$work/said")"
grep -q '"device": null' "$work/report.json" || fail "the report names a device"
grep -q '"reason": "..*"' "$work/report.json" || fail "the report gives no reason"
if command -v python3 >/dev/null; then python3 -m json.tool "$work/report.json" >/dev/null; fi

# With a GPU, as far as programs that pretend can tell: the report is one JSON of their parts.
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
for program in op_test device_test model_test collective_test; do pretend "$program" "[  PASSED  ] 3 tests."; done
pretend gpu_benchmark '{
  "device": "pretended",
  "figures": []
}'
pretend model_benchmark '{"rows": 3}'
CISTERN_PYTHON=false "$script" --bin "$work/bin" --out "$work/report.json" >"$work/said" 2>&1 ||
  fail "with a GPU it failed: $(cat "$work/said")"
grep -q '"device": "pretended"' "$work/report.json" || fail "the report does not name the device"
grep -q '"models": {"rows": 3}' "$work/report.json" || fail "the report lacks the models"
if command -v python3 >/dev/null; then python3 -m json.tool "$work/report.json" >/dev/null; fi

code=0
"$script" --bin "$work" >"$work/said" 2>&1 || code=$?
[ "$code" = 2 ] || fail "without programs it ended with $code"
grep -q "op_test is missing" "$work/said" || fail "it does not name what is missing"
echo "gpu_check_test: passed"
