#!/usr/bin/env bash
# Trains a model on a fleet on this machine, once per seed, and scores it on test data.
#
#   examples/train_and_score.sh MODEL.json --data DIR --out DIR [--seeds N] [--servers N]
#                               [--beside "NAME AUC LOGLOSS"] [--bar "AUC LOGLOSS"] [-- WORKER-FLAGS]
#
#   --data DIR       data sets from `cistern data convert`: train/, test/, and valid/ if the model
#                    is evaluated during training
#   --out DIR        output, one folder per seed: metrics.jsonl, predictions.tsv, logs
#   --seeds N        trains with seeds 1 .. N                                       default 1
#   --servers N      number of servers                                              default 2
#   --beside ..      reference results, printed above the mean
#   --bar ..         exits with 1 unless mean AUC >= AUC and mean log loss <= LOGLOSS
#
# Finally prints the mean over the seeds. CISTERN_BIN is the folder of the programs.
set -euo pipefail
root="$(cd "$(dirname "$0")/.." && pwd)"
usage() { echo "train_and_score: $*; see --help" >&2; exit 2; }

model="" data="" out="" seeds=1 servers=2 beside="" bar="" worker_flags=()
while [ $# -gt 0 ]; do
  case "$1" in
    -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
    --) shift; worker_flags=("$@"); break ;;
    --data | --out | --seeds | --servers | --beside | --bar)
      [ $# -ge 2 ] || usage "$1 needs a value" ;;&
    --data) data="$2" ;;
    --out) out="$2" ;;
    --seeds) seeds="$2" ;;
    --servers) servers="$2" ;;
    --beside) beside="$2" ;;
    --bar) bar="$2" ;;
    -*) usage "unknown argument '$1'" ;;
    *) model="$1"; shift; continue ;;
  esac
  shift 2
done
if [ -z "$model" ] || [ -z "$data" ] || [ -z "$out" ]; then
  usage "MODEL.json, --data and --out are required"
fi
[[ "$seeds" =~ ^[1-9][0-9]*$ ]] || usage "--seeds needs a number"

export CISTERN_BIN="${CISTERN_BIN:-$root/build/release/bin}"
cistern="$CISTERN_BIN/cistern"
mkdir -p "$out"
out="$(cd "$out" && pwd)" data="$(cd "$data" && pwd)"
rm -f "$out/scores.tsv"

trap '"$root/scripts/stop.sh" --dir "$out/fleet" >/dev/null 2>&1 || true' EXIT

evaluation=()
if [ -d "$data/valid" ]; then
  evaluation=(--set "layers.data.eval_source=$data/valid/file_list.txt")
fi

for ((seed = 1; seed <= seeds; ++seed)); do
  echo "== seed $seed of $seeds: $(basename "$model")"
  run="$out/seed-$seed"
  rm -rf "$run"
  mkdir -p "$run"
  settings=(--set "solver.seed=$seed" --set "layers.data.source=$data/train/file_list.txt"
            "${evaluation[@]}" "${worker_flags[@]}")

  rm -rf "$out/fleet"  # includes the commits of the previous seed's servers
  "$root/scripts/launch_servers.sh" --servers "$servers" --base-port 0 --dir "$out/fleet"
  "$root/scripts/run_workers.sh" "$model" --out "$run" --dir "$out/fleet" -- "${settings[@]}"
  # The servers of the training also serve the evaluation, so it measures their committed state.
  "$cistern" predict "$model" --servers "$(cat "$out/fleet/servers.txt")" \
    --data "$data/test/file_list.txt" --output "$run/predictions.tsv" --json "${settings[@]}" \
    >"$run/test.json"
  "$root/scripts/stop.sh" --dir "$out/fleet"
  cp "$out"/fleet/*.log "$run/"

  python3 - "$seed" "$run/test.json" >>"$out/scores.tsv" <<'PYTHON'
import json, sys
test = json.load(open(sys.argv[2]))
print(sys.argv[1], test["auc"], test["logloss"], sep="\t")
PYTHON
  tail -n 1 "$out/scores.tsv" | awk '{printf "seed %d: test AUC %.6f, log loss %.6f\n", $1, $2, $3}'
done

python3 - "$out/scores.tsv" "$beside" "$bar" <<'PYTHON'
import statistics, sys
rows = [line.split() for line in open(sys.argv[1])]
aucs, losses = [float(r[1]) for r in rows], [float(r[2]) for r in rows]
auc, loss = statistics.mean(aucs), statistics.mean(losses)

def line(name, auc_value, loss_value):
    print(f"{name:>10}   {auc_value:.6f}   {loss_value:.6f}")

print("\n      seed   test AUC   log loss")
for seed, a, l in rows:
    line(seed, float(a), float(l))
if len(rows) > 1:
    line("deviation", statistics.stdev(aucs), statistics.stdev(losses))
if sys.argv[2]:
    name, a, l = sys.argv[2].split()
    line(name, float(a), float(l))
line("mean", auc, loss)
if sys.argv[3]:
    a, l = map(float, sys.argv[3].split())
    met = auc >= a and loss <= l
    print(f"       bar   AUC >= {a}, log loss <= {l}: {'met' if met else 'NOT met'}")
    sys.exit(0 if met else 1)
PYTHON
