#!/usr/bin/env bash
# News clicks, day by day: predicts each day with the model of the days before it, then trains on that
# day.
#
#   examples/globo/run.sh CLICKS_DIR [--model deepfm|wdl|dcn|dlrm|ctr|pooled|din|bst|hstu] [--out DIR]
#                                    [--days 16] [--negatives 4] [--set KEY=VALUE]... [-- FLAGS]
#
# samples.py describes CLICKS_DIR. One fleet of two servers holds the model all the time; each day is one
# run of `cistern train`, which continues from the rows on the servers. For comparison, a fresh fleet then
# trains on all days but the last at once, shuffled, and predicts the last day. --out (default globo_out)
# receives days-MODEL.tsv. Samples from an earlier run in --out are reused. --set overrides a key of the model
# file, for example cistern.embeddings.embedding.max_rows=50000. FLAGS go to every `cistern train`.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
root="$(cd "$here/../.." && pwd)"
usage() { echo "globo: $*; see --help" >&2; exit 2; }

clicks="" out=globo_out days=16 negatives=4 name=deepfm sets=() flags=()
while [ $# -gt 0 ]; do
  case "$1" in
    -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
    --) shift; flags=("$@"); break ;;
    --out | --days | --negatives | --model | --set) [ $# -ge 2 ] || usage "$1 needs a value" ;;&
    --out) out="$2" ;;
    --days) days="$2" ;;
    --negatives) negatives="$2" ;;
    --model) name="$2" ;;
    --set) sets+=(--set "$2") ;;
    -*) usage "unknown argument '$1'" ;;
    *) clicks="$1"; shift; continue ;;
  esac
  shift 2
done
[ -n "$clicks" ] || usage "CLICKS_DIR is required"
case "$name" in
  wdl | deepfm | dcn | dlrm | ctr | pooled | din | bst | hstu) ;;
  *) usage "--model must be wdl, deepfm, dcn, dlrm, ctr, pooled, din, bst or hstu" ;;
esac
[[ "$days" =~ ^[1-9][0-9]*$ ]] && [ "$days" -ge 2 ] || usage "--days needs a number, 2 or more"

export CISTERN_BIN="${CISTERN_BIN:-$root/build/release/bin}"
cistern="$CISTERN_BIN/cistern" model="$here/$name.json"
[ -x "$cistern" ] || { echo "globo: $cistern is missing: scripts/build.sh" >&2; exit 1; }
mkdir -p "$out"
out="$(cd "$out" && pwd)"

# These read the visitor's last articles and the one in question as a sequence, whose slots share rows.
history=0 columns=()
case "$name" in pooled | din | bst | hstu) history=7 ;; esac
if [ "$history" -gt 0 ]; then
  fields=user,previous,hour,environment,device,os,country,region,referrer
  columns=(--sparse "$fields,article,read" --multi read --share "article,read")
fi

made="$out/data/made-of"  # the inputs of the samples in --out; written when all samples are complete
wanted="$clicks $days $negatives $history ${columns[*]}"
if [ "$(cat "$made" 2>/dev/null)" != "$wanted" ]; then
  rm -f "$made"
  python3 "$here/samples.py" "$clicks" "$out/csv" --negatives "$negatives" --history "$history"
  left="$days"
  for csv in "$out"/csv/day*.csv; do
    [ "$((left--))" -gt 0 ] || break
    "$cistern" data convert --input "$csv" --out "$out/data/$(basename "$csv" .csv)" --overwrite \
      --label label --samples-per-file 500000 "${columns[@]}" >/dev/null
  done
  echo "$wanted" >"$made"
fi
names=()
for folder in "$out"/data/day*/; do names+=("$(basename "$folder")"); done
names=("${names[@]:0:days}")
days="${#names[@]}"
last="${names[$((days - 1))]}"

trap '"$root/scripts/stop.sh" --dir "$out/fleet" >/dev/null 2>&1 || true' EXIT
start_fleet() {
  "$root/scripts/stop.sh" --dir "$out/fleet" >/dev/null 2>&1 || true
  rm -rf "$out/fleet"
  "$root/scripts/launch_servers.sh" --servers 2 --base-port 0 --dir "$out/fleet" >/dev/null
  servers="$(cat "$out/fleet/servers.txt")"
}
train() {  # OUT SOURCE FLAGS...
  local run="$1" source="$2"
  shift 2
  "$cistern" train "$model" --servers "$servers" --out "$run" --overwrite --no-save-model --continue \
    --set "layers.data.source=$source" "${sets[@]}" "$@" "${flags[@]}" >/dev/null
}
score() {  # DAY: prints "AUC LOGLOSS" of the servers' model
  "$cistern" eval "$model" --servers "$servers" "${sets[@]}" --data "$out/data/$1/file_list.txt" --json |
    python3 -c 'import json, sys; t = json.load(sys.stdin); print(t["auc"], t["logloss"])'
}

table="$out/days-$name.tsv"
printf 'day\tauc\tlogloss\n' >"$table"
start_fleet
for ((day = 0; day < days; ++day)); do
  if [ "$day" -gt 0 ]; then
    read -r auc logloss < <(score "${names[day]}")
    printf '%s\t%s\t%s\n' "${names[day]}" "$auc" "$logloss" >>"$table"
    printf '%s before training on it: AUC %.5f, log loss %.5f\n' "${names[day]}" "$auc" "$logloss"
  fi
  if [ "$day" -lt "$((days - 1))" ]; then
    train "$out/run/${names[day]}" "$out/data/${names[day]}/file_list.txt"
  fi
done

# One list of all files of all days but the last.
python3 - "$out" "${names[@]:0:$((days - 1))}" >"$out/all_but_last.txt" <<'PYTHON'
import os, sys
files = []
for name in sys.argv[2:]:
    folder = os.path.join(sys.argv[1], "data", name)
    lines = open(os.path.join(folder, "file_list.txt")).read().split("\n")[1:]
    files += [line if os.path.isabs(line) else os.path.join(folder, line) for line in lines if line]
print(len(files), *files, sep="\n")
PYTHON
start_fleet
train "$out/run/at_once" "$out/all_but_last.txt" --set cistern.shuffle=true
read -r auc logloss < <(score "$last")
printf 'at_once:%s\t%s\t%s\n' "$last" "$auc" "$logloss" >>"$table"
printf '%s after training on all earlier days at once: AUC %.5f, log loss %.5f\n' "$last" "$auc" "$logloss"
