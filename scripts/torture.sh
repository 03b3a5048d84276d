#!/usr/bin/env bash
# Runs all fault-injection tests and prints one table of results: the protocol model, the simulation,
# power losses, damaged files, failing disks and memory allocations, and kills of real servers and
# workers.
#
#   scripts/torture.sh [--short | --long]     short (default): minutes; long: hours
#
# CISTERN_PRESET (default: release) selects the preset to build and run. CISTERN_SEED=N repeats one seed
# of the simulation. The output of each part is kept in build/PRESET/torture/.
set -euo pipefail
self="$(readlink -f "$0")"
cd "$(dirname "$self")/.."

length=short
case "${1:-}" in
  "" | --short) ;;
  --long) length=long ;;
  -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$self"; exit 0 ;;
  *) echo "torture: unknown argument '$1'; see --help" >&2; exit 2 ;;
esac
preset="${CISTERN_PRESET:-release}"
build="build/$preset"
kept="$build/torture"
mkdir -p "$kept"

# Each part: name; pattern of the output lines that go into the table; environment of the short run;
# environment of the long run; command. Parts that are not built are left out.
parts=(
  "protocol_model_test;states,;;;bin/protocol_model_test"
  "simulation_test;^seed;CISTERN_SEEDS=300;CISTERN_SEEDS=20000;bin/simulation_test"
  "power_loss_test;states;CISTERN_CRASH_STATES=100000;CISTERN_CRASH_STATES=10000000;bin/power_loss_test"
  "checkpoint_test;each of;;;bin/checkpoint_test"
  "durable_commit_test;places;CISTERN_FAULTS=4;CISTERN_FAULTS=4;bin/durable_commit_test"
  "train_resume_test;;;CISTERN_EVERY_CALL=1;bin/train_resume_test"
  "failing_memory_test;allocations,;;;bin/failing_memory_test"
  "crash_test;kills|cycles|seed;CISTERN_KILLS=60;CISTERN_KILLS=1000;bin/crash_test"
  "ckpt_test;kills;CISTERN_KILLS=20;CISTERN_KILLS=300;test/integration/ckpt_test.py"
  "resume_test;cycles: ;CISTERN_CYCLES=20;CISTERN_CYCLES=300;test/integration/resume_test.py"
  "workers_streams_test;kills;CISTERN_KILLS=5;CISTERN_KILLS=100;test/integration/workers_streams_test.py"
  "same_bits_test;;;;test/integration/same_bits_test.py"
  "serving_kills_test;kills: ;CISTERN_KILLS=40;CISTERN_KILLS=200;test/integration/serving_kills_test.py"
)

targets=()
for part in "${parts[@]}"; do
  IFS=';' read -r name _ _ _ command <<<"$part"
  if [[ "$command" == bin/* ]] && grep -rqs "cistern_test($name" test; then targets+=("$name"); fi
done
scripts/build.sh "$preset" "${targets[@]}" cistern cistern-server cistern-worker

rows=() failed=0
for part in "${parts[@]}"; do
  IFS=';' read -r name pattern short_environment long_environment command <<<"$part"
  if [[ "$command" == bin/* ]]; then command="$build/$command"; fi
  if [ ! -x "$command" ] && [[ "$command" != *.py ]]; then continue; fi
  environment="$short_environment"
  if [ "$length" = long ]; then environment="$long_environment"; fi
  runner=()
  if [[ "$command" == *.py ]]; then runner=(python3); fi
  echo "== $name ${environment:+($environment)}"
  started=$SECONDS
  result=passed
  env CISTERN_BIN="$PWD/$build/bin" ${environment:+"$environment"} "${runner[@]}" "$command" \
    >"$kept/$name.log" 2>&1 </dev/null || { result=FAILED failed=1; }
  rows+=("$(printf '%-22s %-7s %6d s' "$name" "$result" $((SECONDS - started)))")
  if [ -n "$pattern" ]; then
    while IFS= read -r line; do rows+=("    $line"); done \
      < <(grep -E -- "$pattern" "$kept/$name.log" | grep -vE '^\[|^Note|^ *[0-9]+\. ' || true)
  fi
  if [ "$result" = FAILED ]; then grep -E 'again: |Failure|FAILED' "$kept/$name.log" | head -20; fi
done

echo
echo "== torture, $length ($preset)"
printf '%s\n' "${rows[@]}"
exit $failed
