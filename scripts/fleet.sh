# shellcheck shell=bash
# Functions that launch_servers.sh, run_workers.sh and stop.sh share, to start and stop processes on
# this machine or over ssh.
#
# A run folder holds two files per process NAME (server-0, worker-0 ...): NAME.pid ("HOST PID") and,
# under the same path on the process's host, NAME.log. CISTERN_SSH replaces the ssh command.

is_local() { [ "$1" = localhost ] || [ "$1" = 127.0.0.1 ]; }

# on HOST WORD...: runs a command, given as words, on HOST.
on() {
  local host="$1"
  shift
  if is_local "$host"; then
    "$@"
  else
    # shellcheck disable=SC2086,SC2029  # CISTERN_SSH is a command with its flags; %q quotes the rest
    ${CISTERN_SSH:-ssh -o BatchMode=yes -o ConnectTimeout=10} "$host" "$(printf '%q ' "$@")" </dev/null
  fi
}

# is_running HOST PID: whether PID is a running Cistern process: not a zombie, and not another program
# that reuses the pid.
is_running() {
  # shellcheck disable=SC2016
  on "$1" bash -c '! grep -q "^State:[[:space:]]*Z" "/proc/$0/status" &&
    tr "\0" " " <"/proc/$0/cmdline" | grep -q "cistern[- ]"' "$2" 2>/dev/null
}

# read_hosts FILE: prints the hosts of the file, which has one per line; '#' starts a comment.
read_hosts() { sed 's/#.*//; s/[[:space:]]//g; /^$/d' "$1"; }

# show_log HOST LOG: prints the last lines of the log, indented.
show_log() {
  echo "  last lines of $2${1:+ on $1}:" >&2
  on "$1" tail -n 15 "$2" 2>/dev/null | sed 's/^/  | /' >&2 || true
}

# stop_process DIR NAME GRACE: sends SIGTERM, then SIGKILL after GRACE seconds; prints what it did.
stop_process() {
  local dir="$1" name="$2" grace="$3" host pid deadline
  read -r host pid <"$dir/$name.pid"
  if ! is_running "$host" "$pid"; then
    echo "$name: was not running (pid $pid on $host)"
  else
    on "$host" kill -TERM "$pid" 2>/dev/null || true
    deadline=$((SECONDS + grace))
    while is_running "$host" "$pid" && [ $SECONDS -lt $deadline ]; do sleep 0.1; done
    if is_running "$host" "$pid"; then
      on "$host" kill -KILL "$pid" 2>/dev/null || true
      echo "$name: killed, it did not stop within $grace s (pid $pid on $host)"
    else
      echo "$name: stopped (pid $pid on $host)"
    fi
  fi
  rm -f "$dir/$name.pid"
}

# stop_all DIR PATTERN GRACE: stops all processes whose names match the glob, in parallel.
stop_all() {
  local file stopping=()
  for file in "$1"/$2.pid; do
    [ -e "$file" ] || continue
    stop_process "$1" "$(basename "$file" .pid)" "$3" &
    stopping+=($!)
  done
  wait "${stopping[@]}"
}

# usage_of SCRIPT: prints the script's head comment.
usage_of() { sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$1"; }

# address_of HOST PORT: prints host:port, with brackets around an IPv6 address.
address_of() { case "$1" in \[*) echo "$1:$2" ;; *:*) echo "[$1]:$2" ;; *) echo "$1:$2" ;; esac; }

# default_bin: prints the folder of the programs.
default_bin() { echo "${CISTERN_BIN:-$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")/build/release/bin}"; }
