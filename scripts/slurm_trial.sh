#!/usr/bin/env bash
# Tries deploy/slurm on a Slurm cluster of its own: six nodes on this machine, which nobody else sees. A training loses a
# worker, worker 0, a server and a node, is preempted, and exceeds its time limit. In the end its tables must have the
# same digests as those of a training that was left alone.
#
#   scripts/slurm_trial.sh [--bin DIR] [--keep]
#
#   --bin DIR    folder of the programs                     default build/release/bin
#   --keep       keeps the folder with logs, and names it
#
# Takes about five minutes. Needs root, slurmctld, slurmd, slurm-client and munge; exits with 77 without them. All runs in
# namespaces of its own: no process and no mount is left, whatever happens.
set -euo pipefail
self="$(readlink -f "$0")"
here="$(dirname "$self")"
# shellcheck source=scripts/trial.sh
source "$here/trial.sh" "$@"

if [ -z "${CISTERN_TRIAL_INSIDE:-}" ]; then
  for program in slurmctld slurmd sbatch munged unshare; do
    command -v $program >/dev/null || skip "no $program: apt-get install slurm-wlm munge"
  done
  unshare --mount --pid --fork --mount-proc true 2>/dev/null || skip "this machine allows no namespaces"
  dir="$(mktemp -d)"
  code=0
  CISTERN_TRIAL_INSIDE="$dir" unshare --mount --pid --fork --kill-child --mount-proc "$self" --bin "$bin" &
  inside=$!
  trap 'kill -KILL $inside 2>/dev/null' INT TERM  # unshare ignores the others; its child dies with it
  wait $inside || code=$?
  if [ $keep = yes ]; then echo "slurm_trial: logs are in $dir"; else rm -rf "$dir"; fi
  exit $code
fi
dir="$CISTERN_TRIAL_INSIDE"
cd "$dir"

# --- the cluster -----------------------------------------------------------------------------------------------------
host="$(hostname)"
first_port=$((21000 + RANDOM % 8000))
sed "/\b$host\b/d" /etc/hosts >hosts
echo "127.0.0.1 $host node1 node2 node3 node4 node5 node6" >>hosts
mount --bind hosts /etc/hosts
mkdir -p ctld spool/node{1..6}
head -c 128 /dev/urandom >munge.key && chmod 400 munge.key
cat >slurm.conf <<CONF
ClusterName=trial
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$first_port
AuthType=auth/munge
AuthInfo=socket=$dir/munge.socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$dir/ctld
SlurmdSpoolDir=$dir/spool/%n
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd-%n.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmdTimeout=10
KillWait=20
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
NodeName=node[1-6] NodeHostname=$host NodeAddr=127.0.0.1 Port=[$((first_port + 1))-$((first_port + 6))] CPUs=2 RealMemory=1000 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1 GraceTime=60
PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=2 PreemptMode=OFF
CONF
export SLURM_CONF="$dir/slurm.conf" PATH="$bin:$PATH"
started=$SECONDS
say() { printf '%4d s  %s\n' $((SECONDS - started)) "$*"; }

munged -F --force --socket="$dir/munge.socket" --key-file="$dir/munge.key" --pid-file= --log-file="$dir/munged.log" \
  --seed-file= >/dev/null 2>&1 &
slurmctld -D -f slurm.conf >/dev/null 2>&1 &
start_node() { slurmd -D -N "$1" -f slurm.conf >/dev/null 2>&1 & disown; }
for node in node{1..6}; do start_node "$node"; done

# wait_for SECONDS WHAT COMMAND...: until the command succeeds.
wait_for() {
  local limit="$1" what="$2" end
  shift 2
  end=$((SECONDS + limit))
  until "$@"; do
    if [ $SECONDS -ge $end ]; then
      tail -n 20 slurmctld.log ./*.out 2>/dev/null >&2 || true
      fail "$what: not within $limit s"
    fi
    sleep 0.2
  done
}
nodes_are_idle() { [ "$(sinfo --noheader --partition=main --states=idle --format=%D 2>/dev/null)" = 6 ]; }
wait_for 60 "six idle nodes" nodes_are_idle
say "a cluster of six nodes is ready"

state_of() { squeue --noheader --jobs="$1" --format=%T 2>/dev/null || true; }
is_in_state() { [ "$(state_of "$1")" = "$2" ]; }
is_gone() { [ -z "$(state_of "$1")" ]; }
exit_code_of() { scontrol show job "$1" | sed -n 's/.*ExitCode=\([0-9]*\):.*/\1/p'; }

# --- model, data, and a training that is left alone ----------------------------------------------------------------
cistern demo --dir demo --samples 4000 >demo.log 2>&1 || fail "cistern demo: $(tail -n 3 demo.log)"
model=demo/deepfm.json
# Every epoch is one pass, and every pass is committed. A short training tells how long a pass takes here.
train() {  # NAME EPOCHS: trains with two workers, and prints the digests of the tables
  "$here/launch_servers.sh" --servers 2 --base-port 0 --dir "$1" --bin "$bin" >"$1.log"
  "$here/run_workers.sh" "$model" --out "$1/out" --dir "$1" --bin "$bin" --workers 2 -- --no-save-model \
    --set solver.num_epochs="$2" --threads 1 >>"$1.log" 2>&1 || { tail -n 20 "$1.log" >&2; fail "the training of $1"; }
  digests "$(cat "$1/servers.txt")"
  "$here/stop.sh" --dir "$1" >>"$1.log"
}
digests() {
  cistern status --servers "$1" --digest --json |
    python3 -c 'import json, sys; print([(t["name"], t["rows"], t["digest"]) for t in json.load(sys.stdin)["tables"]])'
}
mkdir -p probe alone
train probe 60 >/dev/null
epochs="$(python3 - "$dir/probe/out/metrics.jsonl" <<'PYTHON'
import json
import sys
seconds = [line["seconds"] for line in map(json.loads, open(sys.argv[1])) if line["event"] == "pass"]
print(int(80 * (len(seconds) - 10) / (seconds[-1] - seconds[9])))
PYTHON
)"
say "this machine trains $epochs passes in 80 s"
expected="$(train alone $epochs)"
say "a training that was left alone: $expected"

# --- the same under Slurm ------------------------------------------------------------------------------------------
# One certificate for all that this trial does; in production each has its own (docs/security.md).
cistern certs init --certs certs >certs.log
cistern certs issue all --role server,worker,admin --hosts "127.0.0.1,$host,node1,node2,node3,node4,node5,node6" \
  --certs certs >>certs.log
export CISTERN_TLS_CA="$dir/certs/ca.crt" CISTERN_TLS_CERT="$dir/certs/all.crt" CISTERN_TLS_KEY="$dir/certs/all.key"
fleet="$(PORT=$((first_port + 20)) sbatch --parsable --nodes=2 --nodelist=node[5-6] --cpus-per-task=1 \
  --output=servers.out "$here/../deploy/slurm/servers.sbatch" "$dir/fleet" --shard_num=256)"
wait_for 60 "the servers" grep -qs 'rank=1 .*ready' servers.out
submit() {  # WORD...: queues the training, and prints its number
  SERVERS="$dir/fleet/servers.txt" sbatch --parsable --nodes=2 --exclude='node[5-6]' --cpus-per-task=1 --output=train.out \
    "$@" "$here/../deploy/slurm/train.sbatch" "$model" out --no-save-model --set solver.num_epochs="$epochs" \
    --recovery-limit 120
}
job="$(submit --time=60 --signal=TERM@60)"
passes() {
  local count
  count="$(grep -cs '"event":"pass"' out/metrics.jsonl)" || true
  echo "${count:-0}"
}
has_passes() { [ "$(passes)" -ge "$1" ]; }
# Waits until ten more passes are committed, so that each event meets a training in progress.
progress() {
  wait_for 90 "ten more passes $1" has_passes $(($(passes) + 10))
  say "$1: pass $(passes) is committed"
}
kill_task() {  # PROGRAM RANK: kill -9 of the process that Slurm gave this rank
  local pid
  for pid in $(pgrep -f "^([^ ]*/)?$1 "); do
    if tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -qx "SLURM_PROCID=$2"; then kill -9 "$pid"; return; fi
  done
  fail "there is no $1 of rank $2"
}
run_again() {  # after a requeue, which Slurm delays by two minutes
  wait_for 90 "the job in the queue again" is_in_state "$job" PENDING
  say "$1: the job is queued again, at pass $(passes)"
  sleep 5  # a node takes no job back within the second in which it gave it away
  wait_for 30 "an earlier start" scontrol update JobId="$job" StartTime=now
  wait_for 90 "the job to run again" is_in_state "$job" RUNNING
}

progress "start"
scontrol update JobId="$job" TimeLimit=1
run_again "time limit"
scontrol update JobId="$job" TimeLimit=60
progress "the time limit was exceeded"

kill_task cistern-worker 1
progress "worker 1 was killed"
kill_task cistern-worker 0
progress "worker 0 was killed"
kill_task cistern-server 1
progress "server 1 was killed"

urgent="$(sbatch --parsable --partition=urgent --nodes=2 --nodelist=node[1-2] --exclusive --output=urgent.out --wrap='sleep 2')"
run_again "preemption"
progress "preempted"
is_gone "$urgent" || is_in_state "$urgent" COMPLETED || fail "the urgent job is still $(state_of "$urgent")"

node="$(scontrol show hostnames "$(squeue --noheader --jobs="$job" --format=%N)" | tail -n 1)"
say "node death: $node"
for pid in $(pgrep -f "^slurmd .*-N $node ") $(grep -lz "^SLURMD_NODENAME=$node\$" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3); do
  kill -9 "$pid" 2>/dev/null || true
done
run_again "node death"
progress "a node died"
start_node "$node"

scancel "$job"
wait_for 60 "the end of the job that was cancelled" is_gone "$job"
passes="$(passes)"
say "scancel: the job ended and stays away, at pass $passes"
job="$(submit --time=60)"
wait_for 240 "the end of the training" is_gone "$job"
[ "$(exit_code_of "$job")" = 0 ] || fail "the job ended with $(exit_code_of "$job")"

found="$(digests "$(cat fleet/servers.txt)")"
[ "$found" = "$expected" ] || fail "other bits: $found instead of $expected"
say "the training is complete, with the same bits"

scancel "$fleet"
wait_for 60 "the end of the servers" is_gone "$fleet"
say "the servers stopped"

# A job that cannot succeed fails at once, and is not queued again.
job="$(SERVERS=127.0.0.1:1 sbatch --parsable --nodes=1 --output=bad.out "$here/../deploy/slurm/train.sbatch" absent.json out2)"
wait_for 60 "the end of the job without a model" is_gone "$job"
[ "$(exit_code_of "$job")" = 2 ] || fail "a job without a model ended with $(exit_code_of "$job"), not 2"
say "a job without a model failed with exit code 2"
