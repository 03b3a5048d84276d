#!/usr/bin/env bash
# Trains a model against running servers, with workers on this machine or on the hosts of a file, and
# waits for the end.
#
#   scripts/run_workers.sh MODEL.json --out DIR --workers 2        on this machine
#   scripts/run_workers.sh MODEL.json --out DIR --hosts hosts.txt  one per line of the file, over ssh
#
#   --workers M        number of workers                                      default 1; lines of --hosts
#   --peer-port P      port where worker 0 listens for the others             default: a free one;
#                                                                             with --hosts 7790
#   --dir DIR          the run folder of launch_servers.sh; also for logs     default run
#   --servers LIST     host:port,...                                          default DIR/servers.txt
#   --bin DIR          folder of cistern-worker, the same path on every host  default build/release/bin
#   --grace SECONDS    how long a worker may take to stop                     default 60
#   -- FLAGS           passed to every worker
#
# The workers train one model together: each processes its part of every batch. The model and the data
# must have the same paths on every host. List a host once for each of its GPUs. Workers on one machine
# share its cores unless the FLAGS include --threads. Workers on several machines speak TLS, with the files of
# -- --tls-ca, --tls-cert and --tls-key; on a private network that you trust, pass -- --insecure-remote
# instead.
#
# Prints the output of worker 0; the output of every worker is kept in DIR/worker-R.log. If a worker
# fails, this script names it, stops the others and exits with its exit code. Ctrl-C stops all workers,
# each of which commits and saves its progress: exit code 130.
set -euo pipefail
here="$(dirname "$(readlink -f "$0")")"
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
      [ -z "$model" ] || usage "expected one model, not '$model' and '$1'"
      model="$1"
      shift
      continue ;;
  esac
  shift 2
done
[ -n "$model" ] || usage "MODEL.json is required"
[ -n "$out" ] || usage "--out is required"

if [ -n "$hosts_file" ]; then
  [ -r "$hosts_file" ] || fail "cannot read the host file $hosts_file"
  mapfile -t hosts < <(read_hosts "$hosts_file")
  workers="${workers:-${#hosts[@]}}"
  [ ${#hosts[@]} -ge "$workers" ] || fail "$hosts_file names only ${#hosts[@]} hosts for $workers workers"
else
  workers="${workers:-1}"
  [[ "$workers" =~ ^[1-9][0-9]*$ ]] || usage "--workers needs a number of workers"
  hosts=()
  for ((rank = 0; rank < workers; ++rank)); do hosts+=(127.0.0.1); done
fi
if [ -z "$servers" ]; then
  [ -r "$dir/servers.txt" ] ||
    fail "no servers: $dir/servers.txt is missing; run scripts/launch_servers.sh --dir $dir, or give --servers"
  servers="$(cat "$dir/servers.txt")"
fi
mkdir -p "$dir"
dir="$(cd "$dir" && pwd)"
bin="$(cd "$bin" 2>/dev/null && pwd)" || fail "there is no folder $bin; build first: scripts/build.sh"

has_flag() {  # NAME: whether the FLAGS include it
  local flag
  for flag in "${extra[@]}"; do
    if [[ "$flag" == "$1" || "$flag" == "$1="* ]]; then return 0; fi
  done
  return 1
}

# Prints a port where no process listens, below the range that the system assigns.
free_port() {
  local port tries
  for ((tries = 0; tries < 100; ++tries)); do
    port=$((20000 + RANDOM % 12000))
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
  done
  return 1
}

# The address of worker 0, and for each host the local ranks and threads of its workers.
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
    is_local "$host" && fail "worker 0 is on ${hosts[0]}, where the other hosts do not find it: use this host's network name"
    has_flag --tls-ca || has_flag --insecure-remote ||
      usage "workers on several machines need -- --tls-ca, --tls-cert and --tls-key, or -- --insecure-remote on a private network"
    peer_port="${peer_port:-7790}"
  fi
  peer_port="${peer_port:-$(free_port)}" || fail "no free port was found: give --peer-port"
  [[ "$peer_port" =~ ^[1-9][0-9]*$ ]] || usage "--peer-port needs a number"
  team=(--peers "$(address_of "$host" "$peer_port")")
fi
has_flag --threads || for host in "${!on_host[@]}"; do
  [ "${on_host[$host]}" -gt 1 ] || continue
  cores="$(on "$host" nproc)" || fail "cannot count the cores of $host"
  threads_on[$host]=$((cores > on_host[$host] ? cores / on_host[$host] : 1))
done

# Workers run in the folder from which this script was called, so that relative paths stay valid.
# shellcheck disable=SC2016
start_worker() {  # RANK: starts the worker in the background; $! identifies it for `wait`
  local host="${hosts[$1]}" threads
  is_local "$host" && host=127.0.0.1
  threads="${threads_on[$host]:-}"
  on "${hosts[$1]}" bash -c 'cd "$0" && mkdir -p "$1" && echo "$2 $$" >"$1/$3.pid" &&
    log="$1/$3.log" && export LOCAL_RANK="$4" && shift 4 && exec "$@" >"$log" 2>&1' \
    "$PWD" "$dir" "${hosts[$1]}" "worker-$1" "${local_rank[$1]}" "$bin/cistern-worker" "$model" \
    --servers "$servers" --out "$out" --rank "$1" --world_size "$workers" "${team[@]}" \
    ${threads:+--threads "$threads"} "${extra[@]}" &
}

# Copies the pid files of remote workers to this machine.
fetch_pid_files() {
  local rank line
  for ((rank = 0; rank < workers; ++rank)); do
    is_local "${hosts[$rank]}" && continue
    line="$(on "${hosts[$rank]}" cat "$dir/worker-$rank.pid" 2>/dev/null)" &&
      echo "$line" >"$dir/worker-$rank.pid"
  done
}
# Waits until every worker has written its pid file: a worker without one would not be stopped.
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

declare -A rank_of=()  # process id -> rank, for running workers
follower=""
finish() {  # EXIT-CODE
  if [ -n "$follower" ]; then
    sleep 0.2  # lets it print the last lines of the log
    kill "$follower" 2>/dev/null || true
  fi
  rm -f "$dir"/worker-*.pid
  exit "$1"
}
trap 'echo "run_workers: interrupted; stopping the workers" >&2; trap "" INT TERM; stop_workers; finish 130' INT TERM

rm -f "$dir"/worker-*.pid "$dir"/worker-*.log
touch "$dir/worker-0.log"  # lets `tail` follow it from the first line
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
    # The follower has printed the log of worker 0 already.
    [ "$rank" = 0 ] && [ -n "$follower" ] || show_log "${hosts[$rank]}" "$dir/worker-$rank.log"
    stop_workers
    finish $code
  fi
done
finish 0
