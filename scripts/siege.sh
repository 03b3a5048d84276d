#!/usr/bin/env bash
# Attacks a fleet during training with false values in every field, malformed frames, raw HTTP/2, floods
# and calls in invalid orders. Prints the attacks and which of them got through; exits with 1 if any did.
#
#   scripts/siege.sh [--short | --long] [--keep] [--only=GROUP]
#
# --short (default) takes a minute or two. --only="by name" runs that group of attacks only.
#
# CISTERN_PRESET (default: release) selects the preset to build and run. test/siege/README.md describes
# the attacks.
set -euo pipefail
self="$(readlink -f "$0")"
cd "$(dirname "$self")/.."

for word in "$@"; do
  case "$word" in
    --short | --long | --keep | --only=*) ;;
    -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$self"; exit 0 ;;
    *) echo "siege: unknown argument '$word'; see --help" >&2; exit 2 ;;
  esac
done
preset="${CISTERN_PRESET:-release}"
scripts/build.sh "$preset" cistern-siege
CISTERN_BIN="$PWD/build/$preset/bin" exec "build/$preset/bin/cistern-siege" "$@"
