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
#   --local_state      each server keeps its commits on its own host's disk: no shared folder; on one
#                      machine in DATA_DIR/server-R
#   --copy_to PLACE    beside each server, copies its commits to a folder or s3://... (cistern ckpt push --follow)
#   --bin DIR          folder of cistern-server, the same path on every host       default build/release/bin
#   --timeout SECONDS  how long a server may take to become ready                  default 60
#   -- FLAGS           passed to every server
#
# Then: cistern ... --servers "$(cat run/servers.txt)". To stop the servers: scripts/stop.sh.
# With --hosts, DIR and the programs must have the same path on every host; logs stay on their hosts.
# Servers listen on loopback by default. A fleet on several machines also needs -- --bind=0.0.0.0 and certificates
# (--tls_ca, --tls_cert, --tls_key: one certificate may name all hosts; docs/security.md), or --insecure-remote on a
# network where everyone may read and change the tables.
# Restarted on the same data_dir, the fleet continues from its newest commit. Several machines share that
# folder (over NFS, for example), or use --local_state. With -- --commit_waits_for=copy no commit is lost with a disk.
set -euo pipefail
here="$(dirname "$(readlink -f "$0")")"
# shellcheck source=scripts/fleet.sh
source "$here/fleet.sh"

fail() { echo "launch_servers: $*" >&2; exit 1; }
usage() { echo "launch_servers: $*; see --help" >&2; exit 2; }

servers="" base_port=7700 dir=run data_dir="" hosts_file="" timeout=60 extra=() local_state="" copy_to=""
bin="$(default_bin)"
while [ $# -gt 0 ]; do
  if [[ "$1" == --?*=* ]]; then set -- "${1%%=*}" "${1#*=}" "${@:2}"; fi
  case "$1" in
    -h | --help) usage_of "$0"; exit 0 ;;
    --) shift; extra=("$@"); break ;;
    --local_state | --local-state) local_state=1; shift; continue ;;
    --servers | --base-port | --dir | --data_dir | --data-dir | --hosts | --bin | --timeout | --copy_to | --copy-to)
      [ $# -ge 2 ] || usage "$1 needs a value" ;;&
    --servers) servers="$2" ;;
    --base-port) base_port="$2" ;;
    --dir) dir="$2" ;;
    --data_dir | --data-dir) data_dir="$2" ;;
    --hosts) hosts_file="$2" ;;
    --bin) bin="$2" ;;
    --timeout) timeout="$2" ;;
    --copy_to | --copy-to) copy_to="$2" ;;
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

for pid_file in "$dir"/server-*.pid "$dir"/copy-*.pid; do
  [ -e "$pid_file" ] || continue
  read -r host pid <"$pid_file"
  if is_running "$host" "$pid"; then
    fail "servers of $dir still run (pid $pid on $host): stop them with scripts/stop.sh --dir $dir"
  fi
  rm -f "$pid_file"
done
rm -f "$dir/servers.txt"

data_dir_of() {  # RANK: prints the server's data_dir
  if [ -n "$local_state" ] && [ -z "$hosts_file" ]; then echo "$data_dir/server-$1"; else echo "$data_dir"; fi
}

launch() {  # NAME HOST WORD...: starts a program, which writes to DIR/NAME.log, and writes its pid file
  local name="$1" host="$2" pid
  # The program runs in its own session, so it outlives this script and its terminal.
  # shellcheck disable=SC2016
  pid="$(on "$host" bash -c 'mkdir -p "$0" "$1" && log="$2" && shift 2 &&
    { setsid nohup "$@" >"$log" 2>&1 </dev/null & echo $!; }' \
    "$dir" "$(data_dir_of "${name##*-}")" "$dir/$name.log" "${@:3}")" &&
    [[ "$pid" =~ ^[0-9]+$ ]] && echo "$host $pid" >"$dir/$name.pid"
}

start_server() {  # RANK
  local rank="$1"
  launch "server-$rank" "${hosts[$rank]}" "$bin/cistern-server" --rank="$rank" --server_num="$servers" \
    --port="$((base_port == 0 ? 0 : base_port + rank))" --data_dir="$(data_dir_of "$rank")" \
    ${local_state:+--local_state} "${extra[@]}"
}

start_copy() {  # RANK
  launch "copy-$1" "${hosts[$1]}" "$bin/cistern" ckpt push "$(data_dir_of "$1")" --to "$copy_to" --follow
}

give_up() {  # RANK REASON
  local rank="$1" host="${hosts[$1]}"
  echo "launch_servers: server $rank on $host $2" >&2
  show_log "$host" "$dir/server-$rank.log"
  stop_all "$dir" '[cs]*-*' 10 >&2
  exit 1
}
trap 'stop_all "$dir" "[cs]*-*" 10 >&2; exit 130' INT TERM

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

# The servers have made their state folders. A shared one is copied by one program.
for ((rank = 0; rank < (${#copy_to} == 0 ? 0 : ${local_state:-0} ? servers : 1); ++rank)); do
  start_copy "$rank" || give_up "$rank" "could not be copied"
done

(IFS=,; echo "${addresses[*]}") >"$dir/servers.txt"
echo "$servers servers ready: $(cat "$dir/servers.txt")"
echo "logs: $dir/server-*.log; to stop the servers: scripts/stop.sh --dir $dir"
