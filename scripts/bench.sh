#!/usr/bin/env bash
# Measures Cistern against the limits of this machine and, if PyTorch is installed, against PyTorch.
#
# usage: scripts/bench.sh [--rows N] [--data TRAIN.csv] [--python PYTHON] [--out FILE] [--skip-torch]
#   --rows N          rows of the sparse table            (default 20000000; about 1.5 GB)
#   --data TRAIN.csv  training samples, Frappe's csv      (default: synthetic, the same shape)
#   --python PYTHON   a python3 with numpy, and torch     (default python3)
#   --out FILE        writes the results as JSON          (default build/release/bench.json)
#
# Run it on an idle machine: every result includes the number of cores that were busy meanwhile.
set -euo pipefail
self="$(readlink -f "$0")"
cd "$(dirname "$self")/.."

rows=20000000 data="" python=python3 out=build/release/bench.json torch=1
while [ $# -gt 0 ]; do
  case "$1" in
    --rows) rows=$2; shift 2 ;;
    --data) data=$2; shift 2 ;;
    --python) python=$2; shift 2 ;;
    --out) out=$2; shift 2 ;;
    --skip-torch) torch=0; shift ;;
    -h|--help) sed -n '2,11s/^# \{0,1\}//p' "$self"; exit 0 ;;
    *) echo "bench.sh: unknown argument $1; see --help" >&2; exit 2 ;;
  esac
done

bin=build/release/bin
work=$(mktemp -d)
server="" scraper=""
cleanup() {
  for process in $server $scraper; do kill "$process" 2>/dev/null || true; wait "$process" 2>/dev/null || true; done
  rm -rf "$work"
}
trap cleanup EXIT

cmake --preset release >/dev/null
cmake --build --preset release --target cistern cistern-server fleet_benchmark group_benchmark >/dev/null

# Reads a page of figures every second until it is killed.
scrape() {
  exec "$python" - "$1" <<'PY'
import sys, time, urllib.request
while True:
    urllib.request.urlopen(sys.argv[1]).read()
    time.sleep(1)
PY
}

# bench_fleet FILE [FLAG...]: one server with these flags and one worker, with the certificates that the environment names.
# A server that shows its figures is asked for them every second.
bench_fleet() {
  local port place
  "$bin/cistern-server" --rank=0 --server_num=1 --port=0 "${@:2}" >"$work/server.out" 2>"$work/server.err" &
  server=$!
  for _ in $(seq 100); do grep -q ready "$work/server.out" && break; sleep 0.1; done
  port=$(sed -n 's/.*port=\([0-9]*\).*/\1/p' "$work/server.out")
  [ -n "$port" ] || { echo "bench.sh: the server did not start:" >&2; cat "$work/server.err" >&2; exit 1; }
  place=$(sed -n 's/.*metrics=//p' "$work/server.out")
  if [ -n "$place" ]; then scrape "$place" & scraper=$!; fi
  "$bin/fleet_benchmark" --servers "127.0.0.1:$port" --rows "$rows" | tee "$1"
  for process in $scraper $server; do kill "$process"; wait "$process" 2>/dev/null || true; done
  server="" scraper=""
}

echo "== sparse pull and push over gRPC: 1 server, 1 worker, $rows rows of 12 floats"
bench_fleet "$work/fleet.json"
echo "== the same while its figures are read every second"
bench_fleet "$work/fleet_metrics.json" --metrics_port=0
echo "== the same behind TLS"
"$bin/cistern" certs init --certs "$work/certs" >/dev/null
"$bin/cistern" certs issue all --role server,admin --hosts 127.0.0.1 --certs "$work/certs" >/dev/null
CISTERN_TLS_CA="$work/certs/ca.crt" CISTERN_TLS_CERT="$work/certs/all.crt" CISTERN_TLS_KEY="$work/certs/all.key" \
  bench_fleet "$work/fleet_tls.json"
echo "== exchanges between two workers, plain and behind TLS"
"$bin/group_benchmark" | tee "$work/group.json"

echo "== training: DNN and DeepFM of the Frappe table, batch 4096, 2 threads"
"$python" test/benchmark/frappe_shape.py "$work/frappe" ${data:+--csv "$data"}
printf '[' >"$work/train.json"
first=1
# Cistern and PyTorch alternate, so that a change in the machine's speed affects both.
for round in 1 2 3; do
  for model in dnn deepfm; do
    "$bin/cistern" train "examples/frappe/$model.json" --out "$work/out-$model" --overwrite --threads 2 \
      --set "layers.data.source=$work/frappe/train.norm" --set "layers.data.eval_source=" --set layers.data.check=None \
      --set solver.max_iter=200 --set solver.num_epochs=0 --set solver.display=50 \
      --set cistern.eval_every_epoch=false --set cistern.keep_best=false --set cistern.patience=0 \
      --no-save-model >/dev/null 2>"$work/train.err" || { cat "$work/train.err" >&2; exit 1; }
    ours=$("$python" - "$work/out-$model/metrics.jsonl" <<'PY'
import json, statistics, sys
rates = [e["samples_per_second"] for e in map(json.loads, open(sys.argv[1])) if e["event"] == "train"]
print(statistics.median(rates[1:]))
PY
)
    line="{\"round\": $round, \"model\": \"$model\", \"cistern_samples_per_s\": $ours"
    if [ "$torch" = 1 ]; then
      theirs=$("$python" test/benchmark/torch_train.py "$work/frappe/train.npz" --model "$model" --threads 2 |
        "$python" -c 'import json,sys; print(json.load(sys.stdin)["samples_per_s"])')
      ratio=$("$python" -c "print(round($ours / $theirs, 3))")
      line="$line, \"torch_samples_per_s\": $theirs, \"ratio\": $ratio"
    fi
    line="$line}"
    echo "$line"
    [ "$first" = 1 ] || printf ',' >>"$work/train.json"
    first=0
    printf '%s\n' "$line" >>"$work/train.json"
  done
done
printf ']' >>"$work/train.json"

mkdir -p "$(dirname "$out")"
"$python" - "$work" >"$out" <<'PY'
import json, platform, sys
names = ("fleet", "fleet_metrics", "fleet_tls", "group", "train")
print(json.dumps({"machine": platform.processor() or platform.machine(),
                  **{name: json.load(open(f"{sys.argv[1]}/{name}.json")) for name in names}}, indent=1))
PY
echo "results: $out"
