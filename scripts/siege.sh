#!/usr/bin/env bash
# Attacks a fleet that trains: lies in every field, frames, HTTP/2 by hand, floods, orders of calls
# that make no sense. Prints what was tried and what got through; exit code 1 if anything did.
#
#   scripts/siege.sh [--short | --long] [--keep] [--only=GROUP]
#
# short (default): a minute or two; --only="by name": that group alone
#
# CISTERN_PRESET (default: release) is what it builds and runs. The attacks: test/siege/README.md.
set -euo pipefail
cd "$(dirname "$0")/.."

for word in "$@"; do
  case "$word" in
    --short | --long | --keep | --only=*) ;;
    -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
    *) echo "siege: unknown argument '$word'; see --help" >&2; exit 2 ;;
  esac
done
preset="${CISTERN_PRESET:-release}"
scripts/build.sh "$preset" cistern-siege
CISTERN_BIN="$PWD/build/$preset/bin" exec "build/$preset/bin/cistern-siege" "$@"
