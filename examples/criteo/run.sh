#!/usr/bin/env bash
# Criteo: trains a model on 60,000 rows of real click logs with a fleet of 2 servers, and scores it on
# the 20,000 rows that follow.
#
#   examples/criteo/run.sh DATA_DIR [--seeds 3] [--out DIR] [--model wdl|deepfm|dcn|dlrm] [-- WORKER-FLAGS]
#
# DATA_DIR contains criteo_first80k.csv, plain or as .xz (see README.md in this folder). --out (default:
# criteo_out) receives the converted data and one folder per seed. Exits with 1 if the mean test AUC is
# below 0.768, the AUC of a logistic regression, or if the mean log loss is above 0.450.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
root="$(cd "$here/../.." && pwd)"
usage() { echo "criteo: $*; see --help" >&2; exit 2; }

data_dir="" seeds=3 out=criteo_out model=deepfm worker_flags=()
while [ $# -gt 0 ]; do
  case "$1" in
    -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
    --) shift; worker_flags=("$@"); break ;;
    --seeds | --out | --model) [ $# -ge 2 ] || usage "$1 needs a value" ;;&
    --seeds) seeds="$2" ;;
    --out) out="$2" ;;
    --model) model="$2" ;;
    -*) usage "unknown argument '$1'" ;;
    *) data_dir="$1"; shift; continue ;;
  esac
  shift 2
done
[ -n "$data_dir" ] || usage "DATA_DIR is required"
[[ "$model" =~ ^(wdl|deepfm|dcn|dlrm)$ ]] || usage "--model must be wdl, deepfm, dcn or dlrm"

cistern="${CISTERN_BIN:-$root/build/release/bin}/cistern"
[ -x "$cistern" ] || { echo "criteo: $cistern is missing: scripts/build.sh" >&2; exit 1; }
mkdir -p "$out/csv"
csv="$out/csv/criteo_first80k.csv"
if [ -r "$data_dir/criteo_first80k.csv.xz" ]; then
  xz -dc "$data_dir/criteo_first80k.csv.xz" >"$csv"
else
  cp "$data_dir/criteo_first80k.csv" "$csv"
fi

# 39 slots of hashed keys. Numbers become buckets floor(ln(x)^2). Each column has one key for empty
# fields, and one for values that occur fewer than 5 times in the training rows.
convert() {  # DATA-SET FLAGS...
  local name="$1"
  shift
  "$cistern" data convert --input "$csv" --out "$out/data/$name" --overwrite --label label \
    --sparse I1..I13,C1..C26 --bucket I1..I13 --ignore id --missing key --keys hash --key-bits 64 "$@"
}
convert train --max-rows 60000 --min-count 5 --vocab-out "$out/vocabulary.txt"
convert test --skip-rows 60000 --vocab-in "$out/vocabulary.txt"

# There are no published results for this sample. Logistic regression on the same rows and keys reaches
# AUC 0.768 and log loss 0.446.
exec "$root/examples/train_and_score.sh" "$here/$model.json" --data "$out/data" --out "$out/$model" \
  --seeds "$seeds" --beside "LR 0.768 0.446" --bar "0.768 0.450" -- "${worker_flags[@]}"
