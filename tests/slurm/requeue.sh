#!/usr/bin/env bash
# Inside the cluster: jobs that are told to stop, requeued and preempted go on from where they were and end with the weights
# of an unbroken run. usage: requeue.sh ROOT LOCKSTEP WORK_FOLDER
set -euo pipefail
# shellcheck source=tests/slurm/common.sh
source "${BASH_SOURCE[0]%/*}/common.sh"
root=$1 lockstep=$2 work=$3
work_in "$work"
project_root "$root" "$lockstep" slurm
cat > net.yaml <<YAML
run: {dir: runs/net}
model: {layers: [{linear: 64}, relu, {linear: 2}]}
data: {train: {kind: synthetic, name: teacher, samples: 640, shape: [16], classes: 2}}
train: {epochs: 2, batch_size: 4}
optimizer: {kind: adamw, lr: 0.01}
eval: {every: never}
log: {every: 10}
checkpoint: {every: 1 epoch}
YAML

state() { scontrol show job "$1" | grep -o 'JobState=[A-Z]*'; }
wait_for_state() {  # JOB STATE
  local tries=300
  until [[ $(state "$1") == "JobState=$2" ]]; do
    (( --tries )) || { fail "job $1: expected $2, found $(state "$1"): $(cat "$1.log")"; return; }
    sleep 0.1
  done
}

mpirun --oversubscribe --bind-to none -np 2 "$lockstep" train net.yaml --set run.dir="$work/unbroken" > unbroken.log 2>&1 ||
  { cat unbroken.log; exit 1; }

# Rank 1 takes six seconds before step 40, in which the job is disturbed: then three are left, and KillWait gives five.
export LOCKSTEP_FAULT=1,step:40,sleep:6
submit() {  # RUN [OPTION...]
  sbatch --parsable --output=%j.log "${@:2}" slurm/train_requeue.sbatch net.yaml --set run.dir="$work/$1"
}
wait_for_run() {  # JOB: it has made 31 steps, and so is in step 40 soon
  local tries=600
  until grep -q 'step     30' "$1.log" 2> /dev/null; do (( --tries )) || { cat ./*.log; exit 1; }; sleep 0.1; done
  sleep 2.5
}
told=$(submit told)
wait_for_run "$told"
scancel --signal=USR1 "$told"  # saves and calls scontrol requeue
preempted=$(submit preempted)
wait_for_run "$preempted"
scontrol requeue "$preempted"  # as preemption does: SIGTERM, SIGKILL after KillWait
wait_for_state "$told" PENDING
wait_for_state "$preempted" PENDING
cancelled=$(submit cancelled)
wait_for_run "$cancelled"
scancel "$cancelled"           # must not come back
wait_for_state "$cancelled" CANCELLED
sleep 4
readonly saved='the run ends after [4-9][0-9] steps and is saved'
grep -q "SIGUSR1 on rank [01]: $saved" "$told.log" || fail "told: $(cat "$told.log")"
for job in $preempted $cancelled; do
  grep -q "SIGTERM on rank [01]: $saved" "$job.log" || fail "ended by SIGTERM: $(cat "$job.log")"
done
for job in $told $preempted; do scontrol update JobId="$job" StartTime=now; done
wait_for_state "$told" COMPLETED
wait_for_state "$preempted" COMPLETED
for job in $told $preempted; do
  grep -q 'resuming .* after [4-9][0-9] steps' "$job.log" || fail "did not resume: $(cat "$job.log")"
done
for run in told preempted; do
  [[ $(digest $run) == "$(digest unbroken)" ]] || fail "$run: other weights than the unbroken run: $(cat ./*.log)"
done
[[ $(state "$cancelled") == JobState=CANCELLED ]] || fail "the cancelled job came back: $(cat "$cancelled.log")"
finish
