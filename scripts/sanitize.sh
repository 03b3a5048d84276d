#!/usr/bin/env bash
# Builds one program of tests with the address and undefined-behaviour sanitizers, and runs it: by default the trainings
# that are interrupted, resumed and killed at every point of a pass and of a commit.
#
#   scripts/sanitize.sh                     what CI runs, about three minutes on two cores
#   scripts/sanitize.sh PROGRAM [FILTER]    another program (train_test), and its tests that match (Resume.*)
#
# In build/sanitize. To halve the time of the build, files are joined, and checks that report much and find little here
# (alignment, null, vptr, object size) are left out; the preset asan has them.
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

mkdir -p build/sanitize
undefined='signed-integer-overflow,shift,bounds,bool,enum,integer-divide-by-zero,return,nonnull-attribute,float-cast-overflow'
if ! cmake --preset asan -B build/sanitize -DCISTERN_JOIN_FILES=ON -DCISTERN_BUILD_BENCHMARKS=OFF \
    "-DCISTERN_SANITIZE=address;$undefined" \
    "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -g1 --param asan-instrumentation-with-call-threshold=0" \
    >build/sanitize/configure.log 2>&1; then
  cat build/sanitize/configure.log >&2
  exit 1
fi
if ! cmake --build build/sanitize --parallel "$(nproc)" --target "$program" >build/sanitize/build.log 2>&1; then
  tail -n 40 build/sanitize/build.log >&2
  exit 1
fi
export ASAN_OPTIONS="detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1:check_initialization_order=1"
if ! "build/sanitize/bin/$program" ${filter:+"--gtest_filter=$filter"} >build/sanitize/run.log 2>&1; then
  grep -E 'ERROR:|runtime error|SUMMARY|^\[  FAILED' build/sanitize/run.log >&2 || true
  echo "sanitize: $program failed; build/sanitize/run.log has all of it" >&2
  exit 1
fi
grep -E '^\[  PASSED' build/sanitize/run.log
