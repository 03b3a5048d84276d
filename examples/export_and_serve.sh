#!/usr/bin/env bash
# Exports a trained model in every form, serves it, asks the server for predictions of test data, and
# compares them with those of `cistern predict`.
#
#   examples/export_and_serve.sh MODEL.json --state DIR --data FILE --out DIR [-- --set PATH=VALUE ...]
#
#   --state DIR      the commits of the training: the data_dir of its servers, or its --out folder.
#                    examples/*/run.sh leave them in OUT/MODEL/fleet/data
#   --data FILE      test data, a file list of Norm files
#   --out DIR        output; replaced
#   -- ...           the --set flags of the training
#
# Exits with 1 unless the server's predictions are those of `cistern predict`, bit for bit.
# CISTERN_BIN is the folder of the programs. With tritonclient (pip install 'tritonclient[grpc]') the
# server is asked over gRPC, otherwise over HTTP.
set -euo pipefail
root="$(cd "$(dirname "$0")/.." && pwd)"
usage() { echo "export_and_serve: $*; see --help" >&2; exit 2; }

model="" state="" data="" out="" settings=()
while [ $# -gt 0 ]; do
  case "$1" in
    -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
    --) shift; settings=("$@"); break ;;
    --state | --data | --out) [ $# -ge 2 ] || usage "$1 needs a value" ;;&
    --state) state="$2" ;;
    --data) data="$2" ;;
    --out) out="$2" ;;
    -*) usage "unknown argument '$1'" ;;
    *) model="$1"; shift; continue ;;
  esac
  shift 2
done
if [ -z "$model" ] || [ -z "$state" ] || [ -z "$data" ] || [ -z "$out" ]; then
  usage "MODEL.json, --state, --data and --out are required"
fi
cistern="${CISTERN_BIN:-$root/build/release/bin}/cistern"
rm -rf "$out"
mkdir -p "$out"

of_model=("$model" --state "$state" "${settings[@]}")
echo "== exports"
recipe=()  # with it, rows of text can be predicted too
if [ -r "$(dirname "$data")/recipe.json" ]; then recipe=(--recipe "$(dirname "$data")/recipe.json"); fi
"$cistern" export serving "${of_model[@]}" --out "$out/serving" "${recipe[@]}"
"$cistern" export serving "${of_model[@]}" --out "$out/serving_int8" --precision int8 \
  --check-data "$data" | tail -n 2
"$cistern" export hugectr "${of_model[@]}" --out "$out/hugectr/model" | tail -n 1
"$cistern" export onnx "${of_model[@]}" --out "$out/model.onnx" | tail -n 1
"$cistern" export dnn-plugin "${of_model[@]}" --out "$out/dnn_plugin" | tail -n 1
"$cistern" export xbox "${of_model[@]}" --out "$out/xbox" | tail -n 1
if grep -q '"accessor": *"ctr"' "$model"; then  # the others do not count shows
  "$cistern" export cache "${of_model[@]}" --out "$out/cache" | tail -n 1
fi

echo "== offline"
"$cistern" predict "$out/serving" --data "$data" --output "$out/offline.tsv"

echo "== online"
"$cistern" serve "$out/serving" --port 0 --grpc-port 0 --log-requests "$out/requests.jsonl" \
  --log-share 0.1 >"$out/serve.txt" 2>"$out/serve.log" &
server=$!
trap 'kill $server 2>/dev/null || true' EXIT
for ((i = 0; i < 200; ++i)); do
  grep -q ready "$out/serve.txt" && break
  kill -0 $server 2>/dev/null || { cat "$out/serve.log" >&2; exit 1; }
  sleep 0.1
done
cat "$out/serve.txt"
address() { sed -n "s/.*$1=\([^ ]*\).*/\1/p" "$out/serve.txt"; }
grpc=()
python3 -c 'import tritonclient.grpc' 2>/dev/null && grpc=(--grpc "$(address grpc)")
key_bytes=8
grep -q '"input_key_type": *"I64"' "$model" || key_bytes=4
"$root/examples/query_server.py" --http "$(address http)" --model "$(address model)" "${grpc[@]}" \
  --data "$data" --output "$out/online.tsv" --key-bytes "$key_bytes"
kill $server
wait $server || true
trap - EXIT

cmp "$out/offline.tsv" "$out/online.tsv"
echo "online equals offline, bit for bit"
"$cistern" verify online "$out/requests.jsonl" --state "$state"
