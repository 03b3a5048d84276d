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

code=0
"$script" --bin "$work" >"$work/said" 2>&1 || code=$?
[ "$code" = 2 ] || fail "without programs it ended with $code"
grep -q "op_test is missing" "$work/said" || fail "it does not name what is missing"
echo "gpu_check_test: passed"
