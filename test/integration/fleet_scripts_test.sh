#!/usr/bin/env bash
# Tests the scripts that start and stop a fleet, with real servers on free ports and fake workers. ctest
# runs it with CISTERN_BIN set.
set -euo pipefail
root="$(cd "$(dirname "$0")/../.." && pwd)"
work="$(mktemp -d)"
trap '"$root/scripts/stop.sh" --dir "$work/run" --grace 5 >/dev/null || true; rm -rf "$work"' EXIT

fail() { echo "FAILED: $*" >&2; exit 1; }
expect_code() {  # CODE COMMAND...: runs it, with its output in $work/output
  local want="$1" code=0
  shift
  "$@" >"$work/output" 2>&1 || code=$?
  [ $code = "$want" ] || { cat "$work/output" >&2; fail "exit code $code, not $want: $*"; }
}
expect_output() { grep -q -- "$1" "$work/output" || { cat "$work/output" >&2; fail "no '$1'"; }; }

echo "servers start, and servers.txt lists them"
expect_code 0 "$root/scripts/launch_servers.sh" --servers 2 --base-port 0 --dir "$work/run"
IFS=, read -ra addresses <"$work/run/servers.txt"
[ ${#addresses[@]} = 2 ] || fail "servers.txt: ${addresses[*]}"

echo "a run folder whose servers are running is refused"
expect_code 1 "$root/scripts/launch_servers.sh" --servers 2 --base-port 0 --dir "$work/run"
expect_output "still run"

echo "a server that cannot start is reported with its log, and the others are stopped"
expect_code 1 "$root/scripts/launch_servers.sh" --servers 2 --dir "$work/second" \
  --base-port $((${addresses[1]##*:} - 1))
expect_output "server 1 on 127.0.0.1 ended before it was ready\|server 0 on 127.0.0.1 ended before"
expect_output "taken"
compgen -G "$work/second/*.pid" >/dev/null && fail "pid files are left"

echo "servers with a state each, whose copies are made beside them"
expect_code 0 "$root/scripts/launch_servers.sh" --servers 2 --base-port 0 --dir "$work/local" --local_state \
  --copy_to "$work/copy" -- --commit_waits_for=copy
for rank in 0 1; do
  [ -d "$work/local/data/server-$rank/state/manifest" ] || fail "server $rank has no state of its own"
  [ -e "$work/local/copy-$rank.pid" ] || fail "the state of server $rank is not copied"
done
expect_code 0 "$root/scripts/stop.sh" --dir "$work/local"
for name in server-0 server-1 copy-0 copy-1; do expect_output "$name: stopped"; done

echo "the first failing worker is reported, the others are stopped, and its exit code is returned"
mkdir "$work/bin"
cat >"$work/bin/cistern-worker" <<'WORKER'
#!/usr/bin/env bash
case "$*" in
  *"--rank 1"*) echo "error: no such model"; echo "words: $* LOCAL_RANK=$LOCAL_RANK"; exit 2 ;;
  *) trap 'exit 130' TERM; while :; do sleep 0.1; done ;;
esac
WORKER
chmod +x "$work/bin/cistern-worker"
expect_code 2 "$root/scripts/run_workers.sh" model.json --out out --workers 3 --dir "$work/run" \
  --bin "$work/bin"
expect_output "worker 1 on 127.0.0.1 failed with exit code 2"
expect_output "error: no such model"
expect_output "worker-0: stopped"
expect_output "worker-2: stopped"

echo "workers on one machine use a free port and share its cores"
expect_output "words: .* --peers 127.0.0.1:[0-9]* --threads [0-9]* LOCAL_RANK=1"
expect_code 2 "$root/scripts/run_workers.sh" model.json --out out --workers 3 --dir "$work/run" \
  --bin "$work/bin" --peer-port 7791 -- --threads 5
expect_output "words: .* --peers 127.0.0.1:7791 --threads 5 LOCAL_RANK=1"

echo "an error of worker 0 is printed once"
sed 's/--rank 1/--rank 0/' "$work/bin/cistern-worker" >"$work/bin/other" && chmod +x "$work/bin/other"
mkdir "$work/first" && mv "$work/bin/other" "$work/first/cistern-worker"
expect_code 2 "$root/scripts/run_workers.sh" model.json --out out --workers 1 --dir "$work/run" \
  --bin "$work/first"
[ "$(grep -c 'error: no such model' "$work/output")" = 1 ] || fail "the error is printed twice"

echo "workers on several machines need worker 0's network name and --insecure-remote"
printf 'localhost\nfar\n' >"$work/hosts.txt"
expect_code 1 "$root/scripts/run_workers.sh" model.json --out out --hosts "$work/hosts.txt" \
  --dir "$work/run" --bin "$work/bin" -- --insecure-remote
expect_output "worker 0 is on localhost, where the other hosts do not find it"
printf 'near\nfar\n' >"$work/hosts.txt"
expect_code 2 "$root/scripts/run_workers.sh" model.json --out out --hosts "$work/hosts.txt" \
  --dir "$work/run" --bin "$work/bin"
expect_output "need -- --tls-ca"

echo "stop.sh stops the servers and reports it; the second call has nothing to do"
expect_code 0 "$root/scripts/stop.sh" --dir "$work/run"
expect_output "server-0: stopped"
expect_output "server-1: stopped"
expect_code 0 "$root/scripts/stop.sh" --dir "$work/run"
expect_output "nothing to stop"

echo "a mistake in the flags gives exit code 2"
expect_code 2 "$root/scripts/launch_servers.sh" --serverz 2
expect_code 2 "$root/scripts/run_workers.sh" --out out
expect_code 2 "$root/scripts/stop.sh" --dirr run
echo "passed"
