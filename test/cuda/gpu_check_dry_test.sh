#!/usr/bin/env bash
# Tests scripts/gpu_check.sh --dry: the programs of this build pass, and each piece that is taken from
# their archive is named.
set -euo pipefail
root="$(cd "$(dirname "$0")/../.." && pwd)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
fail() {
  echo "gpu_check_dry_test: $*" >&2
  exit 1
}
if ! git -C "$root" rev-parse HEAD >/dev/null 2>&1; then
  echo "gpu_check_dry_test: skipped because $root is not a clone: which files travel is what git tracks"
  exit 77
fi

"$root/scripts/gpu_check.sh" --dry --keep "$work/whole" --bin "$CISTERN_BIN" >"$work/said" 2>&1 ||
  fail "the programs of this build fail: $(cat "$work/said")"
grep -q "MB of at most 48" "$work/said" || fail "the size is not reported: $(cat "$work/said")"
mkdir "$work/parts"
tar -xzf "$work/whole/programs.tgz" -C "$work/parts"

# One run names all: a library that is missing, a program that does not start, and the size.
library="$(cd "$work/parts/lib" && ls libabsl_strings.so* libgrpc.so* libgomp.so* 2>/dev/null | head -n 1)"
[ -n "$library" ] || fail "the archive has none of the expected libraries"
rm "$work/parts/lib/$library"
printf '#!/bin/sh\nexit 3\n' >"$work/parts/model_test"
chmod +x "$work/parts/model_test"
head -c 50000000 /dev/urandom >"$work/parts/ballast"
mkdir "$work/changed"
tar -c -C "$work/parts" . | gzip -1 >"$work/changed/programs.tgz"
if "$root/scripts/gpu_check.sh" --dry --bin "$work/changed" >"$work/said" 2>&1; then
  fail "it passes a broken archive: $(cat "$work/said")"
fi
says() {  # PATTERN
  grep -qE "$1" "$work/said" || fail "it does not say '$1': $(cat "$work/said")"
}
says "would load .*/$library of this machine: the archive does not have $library|needs $library, which"
says "exit code 3 of .*model_test --gtest_list_tests"
says "is too large: [0-9]+ bytes of at most 50331648"

rm "$work/parts/model_test"
if "$root/scripts/gpu_check.sh" --dry --bin "$work/parts" >"$work/said" 2>&1; then
  fail "it passes a folder without model_test: $(cat "$work/said")"
fi
says "model_test is missing"
echo "gpu_check_dry_test: passed"
