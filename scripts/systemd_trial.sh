#!/usr/bin/env bash
# Tries deploy/systemd under a real systemd: one that is booted in a container whose files are this machine's, and whose
# changes are kept in memory. Two servers start and share their folder, a training loses one of them to kill -9 and ends with
# the digests of a training that was left alone, wrong flags and corrupt files are not tried again, and a stop is clean.
#
#   scripts/systemd_trial.sh [--bin DIR] [--keep]
#
#   --bin DIR    folder of the programs                     default build/release/bin
#   --keep       keeps the folder with logs, and names it
#
# Takes about a minute. Needs root and systemd-nspawn (apt-get install systemd-container); exits with 77 without them.
set -euo pipefail
self="$(readlink -f "$0")"
here="$(dirname "$self")"
# shellcheck source=scripts/trial.sh
source "$here/trial.sh" "$@"
command -v systemd-nspawn >/dev/null || skip "no systemd-nspawn: apt-get install systemd-container"
[ -x /lib/systemd/systemd ] || skip "no systemd"

dir="$(mktemp -d)"
mkdir "$dir/root" "$dir/trial"
finish() {
  umount "$dir/root" 2>/dev/null || true
  if [ $keep = yes ]; then echo "systemd_trial: logs are in $dir/trial"; else rm -rf "$dir"; fi
}
trap finish EXIT
mount --bind / "$dir/root"
mount --make-private "$dir/root"
cp "$here/../deploy/systemd/"* "$dir/trial/"
cp "$here/fleet.sh" "$dir/trial/"

# What a person does on a host, as root, once systemd runs.
cat >"$dir/trial/trial.sh" <<'INSIDE'
set -euo pipefail
cd /trial
fail() { echo "FAILED: $*"; systemctl --no-pager --full status 'cistern-server@*' || true; journalctl --no-pager -n 40; exit 1; }
until_true() {  # SECONDS COMMAND...
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do [ $SECONDS -lt $end ] || fail "not in time: $*"; sleep 0.2; done
}
passes() { { grep -s '"event":"pass"' out/metrics.jsonl || true; } | wc -l; }
has_passes() { [ "$(passes)" -ge "$1" ]; }
digests() {
  cistern status --servers 127.0.0.1:7700,127.0.0.1:7701 --digest --json |
    python3 -c 'import json, sys; print([(t["name"], t["rows"], t["digest"]) for t in json.load(sys.stdin)["tables"]])'
}
train() { cistern-worker deepfm.json --servers 127.0.0.1:7700,127.0.0.1:7701 --out out --no-save-model "$@"; }
restarts() { systemctl show -p NRestarts --value "cistern-server@$1"; }
start() { systemctl start cistern-server@0 cistern-server@1; until_true 30 digests; }

export PATH="/opt/cistern/bin:$PATH"
systemd-sysusers /trial/cistern.sysusers
mkdir -p /etc/cistern
printf 'SERVER_NUM=2\nPORT=7700\nSERVER_FLAGS=--shard_num=64\n' >/etc/cistern/server.env
echo PORT=7701 >/etc/cistern/server-1.env
systemctl daemon-reload

start
[ "$(stat -c %U /var/lib/cistern/state/manifest)" = cistern ] || fail "the state belongs to $(stat -c %U /var/lib/cistern/state/manifest)"
echo "two servers share their folder"
train >alone.log 2>&1 || fail "the training: $(tail -n 5 alone.log)"
expected="$(digests)"
echo "a training that was left alone: $expected"
systemctl stop cistern-server@0 cistern-server@1
[ "$(systemctl show -p Result --value cistern-server@0)" = success ] || fail "a stop was not clean"
rm -rf /var/lib/cistern/state out

start
train --resume >train.log 2>&1 &
worker=$!
until_true 60 has_passes 20
systemctl kill --signal=KILL cistern-server@1
until_true 30 has_passes $(($(passes) + 20))
systemctl restart cistern-server@0
until_true 30 has_passes $(($(passes) + 20))
wait $worker || fail "the training: $(tail -n 5 train.log)"
[ "$(restarts 1)" = 1 ] || fail "server 1 was restarted $(restarts 1) times"
found="$(digests)"
[ "$found" = "$expected" ] || fail "other bits: $found"
echo "a server was killed, another restarted: the same bits"

echo 'SERVER_FLAGS=--no-such-flag' >>/etc/cistern/server.env
systemctl stop cistern-server@0
systemctl start cistern-server@0 || true
until_true 10 systemctl is-failed cistern-server@0
sleep 3
[ "$(systemctl show -p ExecMainStatus --value cistern-server@0)" = 2 ] || fail "a wrong flag ended with another code"
[ "$(restarts 0)" = 0 ] || fail "a server with a wrong flag was restarted"
echo "a wrong flag is not tried again"
sed -i '$d' /etc/cistern/server.env
systemctl reset-failed
systemctl stop cistern-server@1
for file in /var/lib/cistern/state/manifest/*; do echo x >"$file"; done
systemctl start cistern-server@0 || true
until_true 10 systemctl is-failed cistern-server@0
sleep 3
[ "$(systemctl show -p ExecMainStatus --value cistern-server@0)" = 5 ] || fail "corrupt files ended with another code"
[ "$(restarts 0)" = 0 ] || fail "a server with corrupt files was restarted"
echo "corrupt files are not tried again"
echo complete
INSIDE
cat >"$dir/trial/trial.service" <<'UNIT'
[Unit]
Description=The trial of the units
Requires=basic.target
After=basic.target
[Service]
Type=oneshot
ExecStart=/bin/bash -c 'bash /trial/trial.sh >/trial/output 2>&1; systemctl poweroff --no-block'
TimeoutStartSec=300
UNIT
# The demo's model and data, for many short passes.
"$bin/cistern" demo --dir "$dir/demo" --samples 4000 >"$dir/trial/demo.log" 2>&1 || fail "cistern demo: see its log"
mv "$dir/demo/data" "$dir/trial/data"
find "$dir/trial/data" -name file_list.txt -exec sed -i "s,$dir/demo,/trial,g" {} +
sed "s,$dir/demo,/trial,g; s/\"num_epochs\": [0-9]*/\"num_epochs\": 150/" "$dir/demo/deepfm.json" >"$dir/trial/deepfm.json"

code=0
timeout 300 systemd-nspawn --quiet --directory="$dir/root" --volatile=overlay --register=no --keep-unit --private-network \
  --bind="$dir/trial:/trial" --bind-ro="$bin:/opt/cistern/bin" \
  --bind-ro="$dir/trial/cistern-server@.service:/etc/systemd/system/cistern-server@.service" \
  --bind-ro="$dir/trial/trial.service:/etc/systemd/system/trial.service" \
  --boot systemd.unit=trial.service >"$dir/trial/console" 2>&1 </dev/null || code=$?
if [ ! -e "$dir/trial/output" ]; then
  tail -n 5 "$dir/trial/console" >&2
  skip "systemd does not boot in a container here (exit code $code)"
fi
cat "$dir/trial/output"
[ "$(tail -n 1 "$dir/trial/output")" = complete ] || fail "see above"
