#!/usr/bin/env bash
# Measures a whole `cistern train`, from its first sample to its last commit, against its own steps and PyTorch's.
#
# usage: scripts/bench_passes.sh [--model NAME] [--samples N] [--epochs N] [--rounds N] [--python PYTHON] [--out FILE]
#   --model NAME     of test/benchmark/models: sparse, dlrm or dcn                        (default sparse)
#   --samples N      training samples of 26 slots           (default 2000000; 220 MB of data, 4 GB of memory)
#   --epochs N       how often they are trained; the first epoch creates all rows         (default 1)
#   --rounds N       rounds; programs alternate in each     (default 4)
#   --python PYTHON  a python3 with numpy and torch         (default python3; without torch, Cistern alone)
#   --out FILE       one line of JSON a round               (default build/release/bench_passes.jsonl)
#
# steps: samples/s between passes, without the time in which the device waited. Run it on an idle machine: every
# line has the load before it.
set -euo pipefail
self="$(readlink -f "$0")"
cd "$(dirname "$self")/.."

model=sparse samples=2000000 epochs=1 rounds=4 python=python3 out=build/release/bench_passes.jsonl keys=200000
while [ $# -gt 0 ]; do
  case "$1" in
    --model) model=$2; shift 2 ;;
    --samples) samples=$2; shift 2 ;;
    --epochs) epochs=$2; shift 2 ;;
    --rounds) rounds=$2; shift 2 ;;
    --python) python=$2; shift 2 ;;
    --out) out=$2; shift 2 ;;
    -h|--help) sed -n '2,14s/^# \{0,1\}//p' "$self"; exit 0 ;;
    *) echo "bench_passes.sh: unknown argument $1; see --help" >&2; exit 2 ;;
  esac
done

bin=build/release/bin config=test/benchmark/models/$model.json
[ -f "$config" ] || { echo "bench_passes.sh: there is no model '$model'; see --help" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sizes=$(printf "$keys,%.0s" {1..26})  # so that each slot has rows of its own
sizes="[${sizes%,}]"
"$bin/cistern" data generate --model "$config" --keys-per-slot $keys --alpha 1.05 \
  --set "layers.data.slot_size_array=$sizes" --samples "$samples" --test-samples 1000 --out "$work/data" --overwrite >/dev/null
data=$(find "$work/data/train" -name '*.bin' | head -1)

run() {  # NAME ARGUMENT...: prints a JSON object of the run
  local name=$1; shift
  "$bin/cistern" train "$config" --out "$work/run" --overwrite --no-save-model --json \
    --set "layers.data.slot_size_array=$sizes" --set "layers.data.source=$data" --set "layers.data.num_samples=$samples" \
    --set "solver.num_epochs=$epochs" "$@" 2>"$work/err" |
    "$python" -c '
import json, sys
run = json.load(sys.stdin)
steps = run["samples"] / ((run["seconds"] - run["first_step_seconds"]) * (1 - run["idle"]["share"]))
print(json.dumps({"name": sys.argv[1], "epochs": int(sys.argv[2]), "samples_per_s": run["samples_per_second"], "steps_samples_per_s": steps,
                  "first_step_s": run["first_step_seconds"], "idle": run["idle"], "passes": run["passes"]}))
' "$name" "$epochs"
}

mkdir -p "$(dirname "$out")"
: >"$out"
peers=""
if "$python" -c 'import torch' 2>/dev/null; then peers=eager; fi
if "$python" -c 'import torch; torch.compile' 2>/dev/null; then peers="eager compiled"; fi
for round in $(seq "$rounds"); do
  if [ $((round % 2)) = 1 ]; then names="durable none $peers"; else names="none durable $peers"; fi
  for name in $names; do
    load=$(cut -d' ' -f1 /proc/loadavg)
    case $name in
      durable) line=$(run durable) ;;
      none) line=$(run none --durability none) ;;
      *)
        flag=()
        if [ $name = compiled ]; then flag=(--compile); fi
        line=$("$python" test/benchmark/torch_passes.py "$data" --model "$model" --samples "$samples" --rows $keys "${flag[@]}" |
          "$python" -c 'import json, sys; print(json.dumps({"name": sys.argv[1], **json.load(sys.stdin)}))' "$name") ;;
    esac
    echo "{\"round\": $round, \"load_before\": $load, \"result\": $line}" | tee -a "$out"
  done
done
