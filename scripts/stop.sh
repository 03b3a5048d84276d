#!/usr/bin/env bash
# Stops the servers and workers of a run folder, on every host, and prints what it did.
#
#   scripts/stop.sh [--dir run] [--grace 30]
#
# Stops workers first, each of which commits and saves its progress, then servers, then what copies them. Sends SIGTERM, and
# SIGKILL to processes that still run after --grace seconds.
set -euo pipefail
here="$(dirname "$(readlink -f "$0")")"
# shellcheck source=scripts/fleet.sh
source "$here/fleet.sh"

dir=run grace=30
while [ $# -gt 0 ]; do
  if [[ "$1" == --?*=* ]]; then set -- "${1%%=*}" "${1#*=}" "${@:2}"; fi
  case "$1" in
    -h | --help) usage_of "$0"; exit 0 ;;
    --dir | --grace) [ $# -ge 2 ] || { echo "stop: $1 needs a value; see --help" >&2; exit 2; } ;;&
    --dir) dir="$2" ;;
    --grace) grace="$2" ;;
    *) echo "stop: unknown argument '$1'; see --help" >&2; exit 2 ;;
  esac
  shift 2
done
if ! compgen -G "$dir/*.pid" >/dev/null; then
  echo "nothing to stop: no pid file in $dir"
  exit 0
fi
stop_all "$dir" 'worker-*' "$grace"
stop_all "$dir" 'server-*' "$grace"
stop_all "$dir" 'copy-*' "$grace"
rm -f "$dir/servers.txt"
