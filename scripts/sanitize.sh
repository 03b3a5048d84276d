#!/usr/bin/env bash
# Builds one program of tests with the address and undefined-behaviour sanitizers, and runs it: by default the trainings
# that are interrupted, resumed and killed at every point of a pass and of a commit.
#
#   scripts/sanitize.sh                     what CI runs, about three minutes on two cores
#   scripts/sanitize.sh PROGRAM [FILTER]    another program (train_test), and its tests that match (Resume.*)
#
# By the preset sanitize, which builds in half the time of asan: files are joined, and the checks for alignment, null, vptr
# and object size are left out.
set -euo pipefail
self="$(readlink -f "$0")"
cd "$(dirname "$self")/.."

case "${1:-}" in
  -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$self"; exit 0 ;;
  -*) echo "sanitize: unknown argument '$1'; see --help" >&2; exit 2 ;;
esac
program="${1:-train_resume_test}"
filter="${2:-}"
if [ $# -eq 0 ]; then
  filter='ResumeRules.RepeatedInterrupts*:Resume.WorksFromAnyPoint:PassCommitterTest.*-*ARunResumesFromAnyPoint*'
fi

scripts/build.sh sanitize "$program"
export ASAN_OPTIONS="detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1:check_initialization_order=1"
if ! "build/sanitize/bin/$program" ${filter:+"--gtest_filter=$filter"} >build/sanitize/run.log 2>&1; then
  grep -E 'ERROR:|runtime error|SUMMARY|^\[  FAILED' build/sanitize/run.log >&2 || true
  echo "sanitize: $program failed; build/sanitize/run.log has all of it" >&2
  exit 1
fi
grep -E '^\[  PASSED' build/sanitize/run.log
