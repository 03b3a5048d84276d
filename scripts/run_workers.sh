#!/usr/bin/env bash
# Trains a model with workers on this machine or on a host file, against running servers, and waits.
#
#   scripts/run_workers.sh MODEL.json --out DIR --workers 2        so many here
#   scripts/run_workers.sh MODEL.json --out DIR --hosts hosts.txt  one a line of the file, by ssh
#
#   --workers M        how many (with --hosts: the number of lines)           default 1
#   --peer-port P      where worker 0 listens for the others                  default a free one;
#                                                                             with --hosts 7790
#   --dir DIR          the run folder of launch_servers.sh; logs go there     default run
#   --servers LIST     host:port,...                                          default DIR/servers.txt
#   --bin DIR          where cistern-worker is; the same path on every host   default build/release/bin
#   --grace SECONDS    what a worker may take to stop                         default 60
#   -- FLAGS           passed to every worker
#
# They train one model together: each takes its part of every batch, and all must find the model and
# the data under the same paths. Name a host once for each of its GPUs. Workers of one machine share
# its cores, unless --threads is among the FLAGS. Workers of several machines talk to each other
# without a password: on a network of your own, also give -- --insecure-remote.
#
# What worker 0 writes is shown; every worker's output is kept in DIR/worker-R.log. The first worker
# that fails is named, the others are stopped, and its exit code is this script's. Ctrl-C stops all
# (each commits and saves what it has): exit code 130.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
# shellcheck source=scripts/fleet.sh
source "$here/fleet.sh"

fail() { echo "run_workers: $*" >&2; exit 1; }
usage() { echo "run_workers: $*; see --help" >&2; exit 2; }

workers="" peer_port="" dir=run servers="" hosts_file="" model="" out="" grace=60 extra=()
bin="$(default_bin)"
while [ $# -gt 0 ]; do
  if [[ "$1" == --?*=* ]]; then set -- "${1%%=*}" "${1#*=}" "${@:2}"; fi
  case "$1" in
    -h | --help) usage_of "$0"; exit 0 ;;
    --) shift; extra=("$@"); break ;;
    --workers | --peer-port | --dir | --servers | --hosts | --bin | --out | --grace)
      [ $# -ge 2 ] || usage "$1 needs a value" ;;&
    --workers) workers="$2" ;;
    --peer-port) peer_port="$2" ;;
    --dir) dir="$2" ;;
    --servers) servers="$2" ;;
    --hosts) hosts_file="$2" ;;
    --bin) bin="$2" ;;
    --out) out="$2" ;;
    --grace) grace="$2" ;;
    -*) usage "unknown argument '$1'" ;;
    *)
      [ -z "$model" ] || usage "two models: '$model' and '$1'"
      model="$1"
      shift
      continue ;;
  esac
  shift 2
done
[ -n "$model" ] || usage "which model?"
[ -n "$out" ] || usage "--out is required"

if [ -n "$hosts_file" ]; then
  [ -r "$hosts_file" ] || fail "cannot read the host file $hosts_file"
  mapfile -t hosts < <(read_hosts "$hosts_file")
  workers="${workers:-${#hosts[@]}}"
  [ ${#hosts[@]} -ge "$workers" ] || fail "$hosts_file names ${#hosts[@]} hosts for $workers workers"
else
  workers="${workers:-1}"
  [[ "$workers" =~ ^[1-9][0-9]*$ ]] || usage "--workers needs a number of workers"
  hosts=()
  for ((rank = 0; rank < workers; ++rank)); do hosts+=(127.0.0.1); done
fi
if [ -z "$servers" ]; then
  [ -r "$dir/servers.txt" ] ||
    fail "no servers: $dir/servers.txt is missing; scripts/launch_servers.sh --dir $dir, or --servers"
  servers="$(cat "$dir/servers.txt")"
fi
mkdir -p "$dir"
dir="$(cd "$dir" && pwd)"
bin="$(cd "$bin" 2>/dev/null && pwd)" || fail "there is no folder $bin; build first: scripts/build.sh"

has_flag() {  # NAME: whether it is among the FLAGS
  local flag
  for flag in "${extra[@]}"; do
    if [[ "$flag" == "$1" || "$flag" == "$1="* ]]; then return 0; fi
  done
  return 1
}

# A port where nobody listens now; below those that the system hands out.
free_port() {
  local port tries
  for ((tries = 0; tries < 100; ++tries)); do
    port=$((20000 + RANDOM % 12000))
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
  done
  return 1
}

# Where worker 0 is, and what the workers of one host share: words for each of them.
declare -A on_host=() local_rank=() threads_on=()
team=()
remote=no
for ((rank = 0; rank < workers; ++rank)); do
  host="${hosts[$rank]}"
  is_local "$host" && host=127.0.0.1 || remote=yes
  local_rank[$rank]="${on_host[$host]:-0}"
  on_host[$host]=$((local_rank[$rank] + 1))
done
if [ "$workers" -gt 1 ]; then
  host=127.0.0.1
  if [ $remote = yes ]; then
    host="${hosts[0]}"
    is_local "$host" && fail "worker 0 is on ${hosts[0]}, where the other hosts do not find it: name it as they do"
    has_flag --insecure-remote ||
      usage "workers of several machines need -- --insecure-remote, on a network of your own"
    peer_port="${peer_port:-7790}"
  fi
  peer_port="${peer_port:-$(free_port)}" || fail "no free port was found: --peer-port"
  [[ "$peer_port" =~ ^[1-9][0-9]*$ ]] || usage "--peer-port needs a number"
  team=(--peers "$host:$peer_port")
fi
has_flag --threads || for host in "${!on_host[@]}"; do
  [ "${on_host[$host]}" -gt 1 ] || continue
  cores="$(on "$host" nproc)" || fail "cannot tell the cores of $host"
  threads_on[$host]=$((cores > on_host[$host] ? cores / on_host[$host] : 1))
done

# A worker runs in the folder from which this script was called, so relative paths mean the same.
# shellcheck disable=SC2016
start_worker() {  # RANK: in the background; $! is what `wait` knows it by
  local host="${hosts[$1]}" threads
  is_local "$host" && host=127.0.0.1
  threads="${threads_on[$host]:-}"
  on "${hosts[$1]}" bash -c 'cd "$0" && mkdir -p "$1" && echo "$2 $$" >"$1/$3.pid" &&
    log="$1/$3.log" && export LOCAL_RANK="$4" && shift 4 && exec "$@" >"$log" 2>&1' \
    "$PWD" "$dir" "${hosts[$1]}" "worker-$1" "${local_rank[$1]}" "$bin/cistern-worker" "$model" \
    --servers "$servers" --out "$out" --rank "$1" --world_size "$workers" "${team[@]}" \
    ${threads:+--threads "$threads"} "${extra[@]}" &
}

# A worker's pid file lies on its own host until it is fetched here.
fetch_pid_files() {
  local rank line
  for ((rank = 0; rank < workers; ++rank)); do
    is_local "${hosts[$rank]}" && continue
    line="$(on "${hosts[$rank]}" cat "$dir/worker-$rank.pid" 2>/dev/null)" &&
      echo "$line" >"$dir/worker-$rank.pid"
  done
}
# One that has just been started may not have come to its pid file; without it, it would go on alone.
await_pid_files() {
  local pid host file tries
  for pid in "${!rank_of[@]}"; do
    host="${hosts[${rank_of[$pid]}]}" file="$dir/worker-${rank_of[$pid]}.pid"
    for ((tries = 0; tries < 50; ++tries)); do
      if on "$host" test -s "$file" || ! kill -0 "$pid" 2>/dev/null; then break; fi
      sleep 0.1
    done
  done
}
stop_workers() { await_pid_files; fetch_pid_files; stop_all "$dir" 'worker-*' "$grace" >&2; }

declare -A rank_of=()  # of the workers that run, by process
follower=""
finish() {  # EXIT-CODE
  if [ -n "$follower" ]; then
    sleep 0.2  # the last lines of the log
    kill "$follower" 2>/dev/null || true
  fi
  rm -f "$dir"/worker-*.pid
  exit "$1"
}
trap 'echo "run_workers: interrupted; stopping the workers" >&2; trap "" INT TERM; stop_workers; finish 130' INT TERM

rm -f "$dir"/worker-*.pid "$dir"/worker-*.log
touch "$dir/worker-0.log"  # so that it can be followed from its first line
for ((rank = 0; rank < workers; ++rank)); do
  start_worker "$rank"
  rank_of[$!]=$rank
done
if is_local "${hosts[0]}"; then
  tail -q -s 0.2 -n +1 -F "$dir/worker-0.log" 2>/dev/null &
  follower=$!
fi

for ((left = workers; left > 0; --left)); do
  code=0
  wait -n -p ended "${!rank_of[@]}" || code=$?
  rank="${rank_of[$ended]}"
  unset "rank_of[$ended]"
  if [ $code != 0 ]; then
    echo "run_workers: worker $rank on ${hosts[$rank]} failed with exit code $code" >&2
    show_log "${hosts[$rank]}" "$dir/worker-$rank.log"
    stop_workers
    finish $code
  fi
done
finish 0
