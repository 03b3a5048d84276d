#!/usr/bin/env bash
# Starts a fleet of servers and returns when all are ready.
#
#   scripts/launch_servers.sh --servers 3                  on this machine
#   scripts/launch_servers.sh --hosts hosts.txt            one per line of the file, over ssh
#
#   --servers N        number of servers                                           default: lines of --hosts
#   --base-port P      server r listens on P + r; 0: each picks a free port        default 7700
#   --dir DIR          folder for servers.txt (host:port,...), pid files, logs     default run
#   --data_dir DIR     commits and saved models, shared by all servers             default DIR/data
#   --bin DIR          folder of cistern-server, the same path on every host       default build/release/bin
#   --timeout SECONDS  how long a server may take to become ready                  default 60
#   -- FLAGS           passed to every server
#
# Then: cistern ... --servers "$(cat run/servers.txt)". To stop the servers: scripts/stop.sh.
# With --hosts, DIR and the programs must have the same path on every host; logs stay on their hosts.
# Servers listen on loopback by default. A fleet on several machines also needs -- --bind=0.0.0.0 and certificates
# (--tls_ca, --tls_cert, --tls_key: one certificate may name all hosts; docs/security.md), or --insecure-remote on a
# network where everyone may read and change the tables.
# Restarted on the same data_dir, the fleet continues from its newest commit. Several machines must share
# that folder (over NFS, for example); otherwise add --durability=none to the FLAGS.
set -euo pipefail
here="$(dirname "$(readlink -f "$0")")"
# shellcheck source=scripts/fleet.sh
source "$here/fleet.sh"

fail() { echo "launch_servers: $*" >&2; exit 1; }
usage() { echo "launch_servers: $*; see --help" >&2; exit 2; }

servers="" base_port=7700 dir=run data_dir="" hosts_file="" timeout=60 extra=()
bin="$(default_bin)"
while [ $# -gt 0 ]; do
  if [[ "$1" == --?*=* ]]; then set -- "${1%%=*}" "${1#*=}" "${@:2}"; fi
  case "$1" in
    -h | --help) usage_of "$0"; exit 0 ;;
    --) shift; extra=("$@"); break ;;
    --servers | --base-port | --dir | --data_dir | --data-dir | --hosts | --bin | --timeout)
      [ $# -ge 2 ] || usage "$1 needs a value" ;;&
    --servers) servers="$2" ;;
    --base-port) base_port="$2" ;;
    --dir) dir="$2" ;;
    --data_dir | --data-dir) data_dir="$2" ;;
    --hosts) hosts_file="$2" ;;
    --bin) bin="$2" ;;
    --timeout) timeout="$2" ;;
    *) usage "unknown argument '$1'" ;;
  esac
  shift 2
done

if [ -n "$hosts_file" ]; then
  [ -r "$hosts_file" ] || fail "cannot read the host file $hosts_file"
  mapfile -t hosts < <(read_hosts "$hosts_file")
  servers="${servers:-${#hosts[@]}}"
  [ ${#hosts[@]} -ge "$servers" ] || fail "$hosts_file names only ${#hosts[@]} hosts for $servers servers"
else
  [[ "$servers" =~ ^[1-9][0-9]*$ ]] || usage "--servers needs a number of servers"
  hosts=()
  for ((rank = 0; rank < servers; ++rank)); do hosts+=(127.0.0.1); done
fi
[[ "$base_port" =~ ^[0-9]+$ ]] || usage "--base-port needs a number"

mkdir -p "$dir"
dir="$(cd "$dir" && pwd)"
bin="$(cd "$bin" 2>/dev/null && pwd)" || fail "there is no folder $bin; build first: scripts/build.sh"
data_dir="${data_dir:-$dir/data}"
[[ "$data_dir" = /* ]] || data_dir="$PWD/$data_dir"

for pid_file in "$dir"/server-*.pid; do
  [ -e "$pid_file" ] || continue
  read -r host pid <"$pid_file"
  if is_running "$host" "$pid"; then
    fail "servers of $dir still run (pid $pid on $host): stop them with scripts/stop.sh --dir $dir"
  fi
  rm -f "$pid_file"
done
rm -f "$dir/servers.txt"

start_server() {  # RANK: starts the server and writes its pid file
  local rank="$1" host="${hosts[$1]}" port pid
  port=$((base_port == 0 ? 0 : base_port + rank))
  # The server runs in its own session, so it outlives this script and its terminal.
  # shellcheck disable=SC2016
  pid="$(on "$host" bash -c 'mkdir -p "$0" "$1" && log="$2" && shift 2 &&
    { setsid nohup "$@" >"$log" 2>&1 </dev/null & echo $!; }' \
    "$dir" "$data_dir" "$dir/server-$rank.log" "$bin/cistern-server" --rank="$rank" \
    --server_num="$servers" --port="$port" --data_dir="$data_dir" "${extra[@]}")" &&
    [[ "$pid" =~ ^[0-9]+$ ]] && echo "$host $pid" >"$dir/server-$rank.pid"
}

give_up() {  # RANK REASON
  local rank="$1" host="${hosts[$1]}"
  echo "launch_servers: server $rank on $host $2" >&2
  show_log "$host" "$dir/server-$rank.log"
  stop_all "$dir" 'server-*' 10 >&2
  exit 1
}
trap 'stop_all "$dir" "server-*" 10 >&2; exit 130' INT TERM

for ((rank = 0; rank < servers; ++rank)); do
  start_server "$rank" || give_up "$rank" "could not be started"
done

ready_port() {  # RANK: prints the port from the server's ready line
  on "${hosts[$1]}" sed -n "s/^cistern-server rank=$1 .*\bport=\([0-9]*\)\b.*\bready.*/\1/p" \
    "$dir/server-$1.log" 2>/dev/null | head -n 1
}

addresses=()
deadline=$((SECONDS + timeout))
for ((rank = 0; rank < servers; ++rank)); do
  read -r host pid <"$dir/server-$rank.pid"
  until port="$(ready_port "$rank")" && [ -n "$port" ]; do
    is_running "$host" "$pid" || give_up "$rank" "ended before it was ready"
    [ $SECONDS -lt $deadline ] || give_up "$rank" "was not ready within $timeout s"
    sleep 0.1
  done
  addresses+=("$(address_of "$host" "$port")")
done

(IFS=,; echo "${addresses[*]}") >"$dir/servers.txt"
echo "$servers servers ready: $(cat "$dir/servers.txt")"
echo "logs: $dir/server-*.log; to stop the servers: scripts/stop.sh --dir $dir"
