#!/usr/bin/env bash
# Tries an upgrade between two builds: which of the promises of docs/upgrading.md hold for them.
#
#   scripts/rolling_upgrade.sh OLD_BIN NEW_BIN [--keep]      folders with cistern, cistern-server and cistern-worker
#
# The old worker keeps training while three servers are restarted with the new program, one after the other; then the
# worker is restarted too. In the end, the tables must have the same digests as after a training with the old programs
# alone. Then the way back, clients of the other version, a saved model and a state that the other version reads, and
# two workers of different versions. Prints one line for each: "holds", or what was said instead. Exits with 1 if a promise
# does not hold. Takes about two minutes.
set -euo pipefail
self="$(readlink -f "$0")"
here="$(dirname "$self")"
# shellcheck source=scripts/fleet.sh
source "$here/fleet.sh"

fail() { echo "rolling_upgrade: FAILED: $*" >&2; exit 1; }
usage() { echo "rolling_upgrade: $*; see --help" >&2; exit 2; }

bins=() keep=no
for word in "$@"; do
  case "$word" in
    -h | --help) usage_of "$0"; exit 0 ;;
    --keep) keep=yes ;;
    -*) usage "unknown argument '$word'" ;;
    *) bins+=("$word") ;;
  esac
done
[ ${#bins[@]} = 2 ] || usage "needs the folders OLD_BIN and NEW_BIN"
for bin in "${bins[@]}"; do
  for program in cistern cistern-server cistern-worker; do
    [ -x "$bin/$program" ] || fail "there is no $bin/$program"
  done
done
old="$(cd "${bins[0]}" && pwd)" new="$(cd "${bins[1]}" && pwd)"

readonly server_num=3
dir="$(mktemp -d)"
declare -A server_pid=()
worker_pid=""
finish() {
  local pid
  for pid in "${server_pid[@]}" $worker_pid; do kill -KILL "$pid" 2>/dev/null || true; done
  wait 2>/dev/null || true
  if [ $keep = yes ]; then echo "rolling_upgrade: logs are in $dir"; else rm -rf "$dir"; fi
}
trap finish EXIT
cd "$dir"

first_port=$((20000 + RANDOM % 12000))
servers=""
for ((rank = 0; rank < server_num; ++rank)); do servers="$servers${servers:+,}127.0.0.1:$((first_port + rank))"; done

# A promise that is kept or broken; a possibility that is not promised.
broken=0
holds() { printf '  %-68s holds\n' "$1"; }
breaks() { printf '  %-68s BROKEN: %s\n' "$1" "$2"; broken=1; }
note() { printf '  %-68s %s\n' "$1" "$2"; }
last_line() { grep -v '^fix:' "$1" | tail -n 1 | cut -c1-300; }

start_server() {  # RANK BIN: returns 1 if it ends before it is ready
  local rank="$1" log="$dir/server-$1.log" end=$((SECONDS + 60))
  "$2/cistern-server" --rank="$rank" --server_num=$server_num --port=$((first_port + rank)) --data_dir="$dir/data" \
    --shard_num=64 >"$log" 2>&1 &
  server_pid[$rank]=$!
  until grep -qs ready "$log"; do
    kill -0 "${server_pid[$rank]}" 2>/dev/null || return 1
    [ $SECONDS -lt $end ] || fail "server $rank was not ready: $(last_line "$log")"
    sleep 0.1
  done
}
stop_server() {  # RANK
  kill -TERM "${server_pid[$1]}" 2>/dev/null || true
  wait "${server_pid[$1]}" || true
  unset "server_pid[$1]"
}
start_all() { for ((rank = 0; rank < server_num; ++rank)); do start_server $rank "$1" || fail "$(last_line "server-$rank.log")"; done; }
stop_all_servers() { for rank in "${!server_pid[@]}"; do stop_server "$rank"; done; }

start_worker() {  # BIN FLAG...: in the background, on all servers
  local bin="$1"
  shift
  "$bin/cistern-worker" model.json --servers "$servers" --out out --threads 1 --no-save-model --connect-timeout 5 "$@" \
    >>worker.log 2>&1 &
  worker_pid=$!
}
end_of_worker() {  # waits for it; its exit code is in `code`
  code=0
  wait "$worker_pid" || code=$?
  worker_pid=""
}
passes() { { grep -s '"event":"pass"' out/metrics.jsonl || true; } | wc -l; }
progress() {  # until ten more passes are committed; returns 1 if the worker ends instead
  local wanted=$(($(passes) + 10)) end=$((SECONDS + 120))
  until [ "$(passes)" -ge $wanted ]; do
    kill -0 "$worker_pid" 2>/dev/null || return 1
    [ $SECONDS -lt $end ] || fail "the training makes no progress: $(last_line worker.log)"
    sleep 0.1
  done
}
digests() {  # BIN
  "$1/cistern" status --servers "$servers" --digest --json 2>&1 |
    python3 -c 'import json, sys; print([(t["name"], t["rows"], t["digest"]) for t in json.load(sys.stdin)["tables"]])'
}
clean() { rm -rf data out worker.log; }
train_alone() {  # BIN: the digests are in `alone`
  clean
  start_all "$1"
  start_worker "$1"
  end_of_worker
  [ $code = 0 ] || fail "a training with $1 alone: $(last_line worker.log)"
  alone="$(digests "$1")"
  stop_all_servers
}

version_of() { "$1/cistern" version --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["version"])' 2>/dev/null || echo unknown; }
echo "old: $(version_of "$old"), $old"
echo "new: $(version_of "$new"), $new"

"$old/cistern" demo --dir demo --samples 4000 >demo.log 2>&1 || fail "cistern demo: $(tail -n 3 demo.log)"
sed 's/"num_epochs": [0-9]*/"num_epochs": 200/' demo/deepfm.json >model.json
train_alone "$old"
expected="$alone"
train_alone "$new"
of_new="$alone"
if [ "$of_new" = "$expected" ]; then
  note "a training with either version alone" "has the same bits"
else
  note "a training with either version alone" "has other bits: a run continues, but not to the bits of the old version"
fi

end_all() {
  stop_all_servers
  if [ -n "$worker_pid" ]; then kill -KILL "$worker_pid" 2>/dev/null || true; wait "$worker_pid" 2>/dev/null || true; fi
  worker_pid=""
  clean
}
for order in "0 1 2" "2 1 0"; do
  end_all
  start_all "$old"
  start_worker "$old"
  what="servers $order restarted in this order, under the old worker"
  progress || fail "the training with the old programs: $(last_line worker.log)"
  for rank in $order; do
    stop_server "$rank"
    if ! start_server "$rank" "$new"; then breaks "$what" "$(last_line "server-$rank.log")"; continue 2; fi
    if ! progress; then breaks "$what" "$(last_line worker.log)"; continue 2; fi
  done
  end_of_worker
  if [ "$code" != 0 ]; then breaks "$what" "$(last_line worker.log)"; continue; fi
  found="$(digests "$new")"
  if [ "$found" != "$expected" ]; then breaks "$what" "other bits: $found instead of $expected"
  else holds "$what: the same bits"; fi
done

# Then the worker. It stops with its state saved, and the new one continues.
end_all
start_all "$old"
start_worker "$old"
progress || fail "the training with the old programs: $(last_line worker.log)"
for rank in 2 1 0; do stop_server $rank; start_server $rank "$new" || fail "$(last_line "server-$rank.log")"; done
progress || fail "the training: $(last_line worker.log)"
kill -TERM "$worker_pid"
end_of_worker
[ $code = 130 ] || fail "the old worker did not stop: $(last_line worker.log)"
what="the new worker resumes the run of the old one"
start_worker "$new" --resume
end_of_worker
if [ "$code" != 0 ]; then breaks "$what" "$(last_line worker.log)"
elif [ "$of_new" != "$expected" ]; then holds "$what"
elif [ "$(digests "$new")" != "$expected" ]; then breaks "$what" "other bits"
else holds "$what: the same bits"; fi

# Clients and saved models.
for pair in "old new" "new old"; do
  read -r client fleet <<<"$pair"
  end_all
  start_all "${!fleet}"
  start_worker "${!fleet}"
  end_of_worker
  [ $code = 0 ] || fail "a training with the $fleet programs: $(last_line worker.log)"
  what="status of the $client version asks $fleet servers"
  before="$(digests "${!fleet}")"
  if [ "$(digests "${!client}")" = "$before" ]; then holds "$what"; else breaks "$what" "another answer"; fi
  "${!fleet}/cistern" save --servers "$servers" --name saved >save.log 2>&1 || fail "cistern save: $(last_line save.log)"
  stop_all_servers
  mkdir other && mv data/saved other/
  "${!client}/cistern" verify data >verify.log 2>&1 && verified=yes || verified=no
  what="the $client version reads the state of the $fleet one"
  if start_server 0 "${!client}" && start_server 1 "${!client}" && start_server 2 "${!client}" &&
    [ "$(digests "${!client}")" = "$before" ] && [ $verified = yes ]; then
    if [ "$client" = new ]; then holds "$what"; else note "$what (not promised)" "it does"; fi
  elif [ "$client" = new ]; then breaks "$what" "$(last_line server-0.log)"
  else note "$what (not promised)" "refused: $(last_line server-0.log)"; fi
  stop_all_servers
  clean
  mkdir data && mv other/saved data/ && rmdir other
  start_all "${!client}"
  what="the $client version loads a model that the $fleet one saved"
  "${!client}/cistern" load --servers "$servers" --name saved >load.log 2>&1 && loaded=yes || loaded=no
  if [ $loaded = yes ] && [ "$(digests "${!client}")" = "$before" ]; then
    if [ "$client" = new ]; then holds "$what"; else note "$what (not promised)" "it does"; fi
  elif [ "$client" = new ]; then breaks "$what" "$(last_line load.log)"
  else note "$what (not promised)" "refused: $(last_line load.log)"; fi
done

# The way back, under way.
end_all
start_all "$new"
start_worker "$old"
progress || fail "the old worker with new servers: $(last_line worker.log)"
what="back: servers restarted with the old program under the old worker"
back=yes
for rank in 0 1 2; do
  stop_server $rank
  if ! start_server $rank "$old"; then back="refused: $(last_line "server-$rank.log")"; break; fi
  if ! progress; then back="the worker ended: $(last_line worker.log)"; break; fi
done
if [ "$back" = yes ]; then
  end_of_worker
  if [ $code = 0 ] && [ "$(digests "$old")" = "$expected" ]; then holds "$what: the same bits"
  else breaks "$what" "$(last_line worker.log)"; fi
else
  breaks "$what" "$back"
fi

# Two workers of one run.
end_all
start_all "$new"
peers="127.0.0.1:$((first_port + server_num))"
start_worker "$new" --rank 0 --world-size 2 --peers "$peers" --recovery-limit 20
"$old/cistern-worker" model.json --servers "$servers" --out out --threads 1 --no-save-model --rank 1 --world-size 2 \
  --peers "$peers" --recovery-limit 20 >other.log 2>&1 && other=0 || other=$?
end_of_worker
what="an old and a new worker in one run"
if [ "$(version_of "$old")" = "$(version_of "$new")" ]; then
  note "$what (the same version number)" "exit codes $code and $other"
elif [ "$code" = 2 ] && [ $other = 2 ]; then
  holds "$what are refused"
else
  breaks "$what are refused" "exit codes $code and $other"
fi
stop_all_servers
exit $broken
