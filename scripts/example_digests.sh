#!/usr/bin/env bash
# Trains DeepFM on the Frappe and Criteo examples for some steps in every form (embedded, a fleet of two
# servers, two workers, an emulated GPU), and prints the digest of every table.
#
#   scripts/example_digests.sh --frappe DIR --criteo DIR [--bin DIR] [--out DIR] [--steps 50]
#
# Two builds that print the same lines train to the same rows, bit for bit. Compare a build before a change
# of structure with one after it:
#
#   scripts/example_digests.sh --frappe F --criteo C --bin old/build/release/bin >before
#   scripts/example_digests.sh --frappe F --criteo C >after
#   diff before after
#
#   --frappe, --criteo   the DATA_DIR of examples/frappe/run.sh and examples/criteo/run.sh; at least one
#   --bin DIR            the programs to run; the scripts and models are always of this checkout
#   --steps N            training steps of each form; the emulated GPU takes 3 steps of 64 samples
#
# A form whose programs are missing in --bin (cistern-emulated) is left out.
set -euo pipefail
root="$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)"
usage() { echo "example_digests: $*; see --help" >&2; exit 2; }

frappe="" criteo="" bin="$root/build/release/bin" out=digests_out steps=50
while [ $# -gt 0 ]; do
  case "$1" in
    -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
    --frappe | --criteo | --bin | --out | --steps) [ $# -ge 2 ] || usage "$1 needs a value" ;;&
    --frappe) frappe="$2" ;;
    --criteo) criteo="$2" ;;
    --bin) bin="$2" ;;
    --out) out="$2" ;;
    --steps) steps="$2" ;;
    *) usage "unknown argument '$1'" ;;
  esac
  shift 2
done
[ -n "$frappe$criteo" ] || usage "--frappe or --criteo is required"
[ -x "$bin/cistern" ] || { echo "example_digests: $bin/cistern is missing: scripts/build.sh" >&2; exit 1; }
[[ "$steps" =~ ^[1-9][0-9]*$ ]] || usage "--steps needs a number"
mkdir -p "$out"
out="$(cd "$out" && pwd)"
CISTERN_BIN="$(cd "$bin" && pwd)"
export CISTERN_BIN
cistern="$CISTERN_BIN/cistern"
trap '"$root/scripts/stop.sh" --dir "$out/fleet" >/dev/null 2>&1 || true' EXIT

# unpacked FILE: the file or FILE.xz, as text.
unpacked() { if [ -r "$1.xz" ]; then xz -dc "$1.xz"; else cat "$1"; fi; }

run() {  # COMMAND...
  "$@" >"$out/log" 2>&1 || { cat "$out/log" >&2; exit 1; }
}

convert() {  # EXAMPLE DATA-SET FLAGS...
  local example="$1" name="$2"
  shift 2
  run "$cistern" data convert --input "$out/$example.csv" --out "$out/$name" --overwrite --label label "$@"
}

# digests EXAMPLE FORM FILE: the lines "TABLE DIGEST" of what `verify` or `status --digest` printed.
digests() {
  awk -v form="$1 $2" '{ for (i = 2; i <= NF; ++i) if (length($i) == 16 && $i ~ /^[0-9a-f]+$/)
    print form, ($1 ~ /^[0-9-]+$/ ? ($2 ~ /^[0-9]+$/ ? $3 : $2) : $1), $i }' "$3" | sort
}

train_all() {  # EXAMPLE
  local example="$1" model="$root/examples/$1/deepfm.json" program workers
  local settings=(--set solver.num_epochs=0 --set "layers.data.source=$out/$example/file_list.txt"
                  --set "layers.data.eval_source=$out/$example-eval/file_list.txt")
  for program in cistern cistern-emulated; do
    [ -x "$CISTERN_BIN/$program" ] || continue
    local form=embedded flags=(--set "solver.max_iter=$steps")
    if [ $program = cistern-emulated ]; then
      form=emulated-gpu flags=(--device cuda --set solver.max_iter=3 --set solver.batchsize=64)
    fi
    rm -rf "$out/run"
    run "$CISTERN_BIN/$program" train "$model" --out "$out/run" "${settings[@]}" "${flags[@]}"
    "$cistern" verify "$out/run/model" >"$out/verified"
    digests "$example" "$form" "$out/verified"
  done
  for workers in 1 2; do
    rm -rf "$out/fleet" "$out/run"
    run "$root/scripts/launch_servers.sh" --servers 2 --base-port 0 --dir "$out/fleet"
    run "$root/scripts/run_workers.sh" "$model" --workers $workers --out "$out/run" --dir "$out/fleet" -- \
      "${settings[@]}" --set "solver.max_iter=$steps"
    "$cistern" status --servers "$(cat "$out/fleet/servers.txt")" --digest >"$out/status"
    run "$root/scripts/stop.sh" --dir "$out/fleet"
    digests "$example" "fleet-$workers-workers" "$out/status"
  done
}

# A few rows are enough for the evaluation, which changes no rows.
if [ -n "$frappe" ]; then
  { unpacked "$frappe/train_recon.csv" 2>/dev/null || unpacked "$frappe/train.csv"; } >"$out/frappe.csv"
  convert frappe frappe --keys raw --key-bits 32
  convert frappe frappe-eval --keys raw --key-bits 32 --max-rows 200
  train_all frappe
fi
if [ -n "$criteo" ]; then
  unpacked "$criteo/criteo_first80k.csv" >"$out/criteo.csv"
  columns=(--sparse "I1..I13,C1..C26" --bucket I1..I13 --ignore id --missing key --keys hash --key-bits 64)
  convert criteo criteo "${columns[@]}" --max-rows 60000 --min-count 5 --vocab-out "$out/vocabulary.txt"
  convert criteo criteo-eval "${columns[@]}" --max-rows 200 --vocab-in "$out/vocabulary.txt"
  train_all criteo
fi
