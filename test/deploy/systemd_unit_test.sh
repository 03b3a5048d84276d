#!/usr/bin/env bash
# Checks the unit of deploy/systemd with systemd-analyze: that it knows every line, and that the service has no rights that
# it does not need. scripts/systemd_trial.sh runs it. ctest runs this with CISTERN_BIN set; 77 without systemd-analyze.
set -euo pipefail
root="$(cd "$(dirname "$0")/../.." && pwd)"
fail() { echo "FAILED: $*" >&2; exit 1; }
command -v systemd-analyze >/dev/null || { echo "skipped: no systemd-analyze" >&2; exit 77; }
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

unit="$work/cistern-server@0.service"
sed "s,/opt/cistern/bin,$CISTERN_BIN," "$root/deploy/systemd/cistern-server@.service" >"$unit"
found="$(systemd-analyze verify --man=no "$unit" 2>&1)" || fail "$found"
[ -z "$found" ] || fail "$found"
sed 's/^ProtectHome=/ProtectHomes=/' "$unit" >"$work/cistern-server@1.service"
systemd-analyze verify --man=no "$work/cistern-server@1.service" 2>&1 | grep -q ProtectHomes ||
  fail "a wrong line is not found"

# 0 is no rights, 10 all; below 2 it is OK (systemd 250 and newer can tell without running it).
if systemd-analyze security --help 2>&1 | grep -q -- --offline; then
  systemd-analyze security --offline=true --threshold=20 "$unit" >"$work/rights" 2>&1 || fail "$(grep '✗' "$work/rights")"
fi

# A user that the package creates, the same for every rank.
user="$(sed -n 's/^User=//p' "$unit")"
grep -q "^u $user " "$root/deploy/systemd/cistern.sysusers" || fail "nothing creates the user $user"
grep -q '^DynamicUser=' "$unit" && fail "each rank would have a user of its own, and they share files"
echo "the unit is right"
