#!/usr/bin/env bash
# Inside the cluster: everything on one of two nodes is killed in the midst of a run. The ranks of the other are gone within
# the time limit and ten seconds, with the cause, and a new launch on what is left ends with the weights of an unbroken run.
# usage: node_failure.sh LOCKSTEP WORK_FOLDER
set -euo pipefail
# shellcheck source=tests/slurm/common.sh
source "${BASH_SOURCE[0]%/*}/common.sh"
lockstep=$1 work=$2
readonly timeout=4

work_in "$work"
cat > net.yaml <<YAML
run: {dir: runs/net}
model: {layers: [{linear: 64}, relu, {dropout: 0.2}, {linear: 2}]}
data: {train: {kind: synthetic, name: teacher, samples: 640, shape: [16], classes: 2}}
train: {epochs: 2, batch_size: 4}
optimizer: {kind: adamw, lr: 0.01}
log: {every: 10}
checkpoint: {every: 10}
distributed: {timeout: $timeout}
YAML

ranks() { pgrep -f "$lockstep train net.yaml --set run.dir=$work/broken" | wc -l; }

mpirun --oversubscribe --bind-to none -np 2 "$lockstep" train net.yaml --set run.dir="$work/unbroken" > unbroken.log 2>&1 ||
  { cat unbroken.log; exit 1; }

# Rank 1, on the second node, waits a little before step 40, in which its node goes.
LOCKSTEP_FAULT=1,step:40,sleep:3 srun -N2 -n2 --mpi=pmix --kill-on-bad-exit=1 "$lockstep" train net.yaml \
  --set run.dir="$work/broken" > broken.log 2>&1 &
step=$!
tries=300
until grep -q 'step     30' broken.log 2> /dev/null; do (( --tries )) || { cat broken.log; exit 1; }; sleep 0.1; done
sleep 0.5
daemon=$(pgrep -f 'slurmd -D -N n2')
network=$(readlink "/proc/$daemon/ns/net")
killed=()
for process in /proc/[0-9]*; do
  if [[ $(readlink "$process/ns/net" 2> /dev/null) == "$network" ]]; then killed+=("${process#/proc/}"); fi
done
kill -9 "${killed[@]}"
SECONDS=0
until (( $(ranks) == 0 )); do
  (( SECONDS <= timeout + 10 )) || { fail "ranks still run after $SECONDS s: $(cat broken.log)"; break; }
  sleep 0.2
done
echo "the last rank was gone $SECONDS s after its peer's node"
for (( tries = 600; tries; --tries )); do kill -0 $step 2> /dev/null || break; sleep 0.1; done
if wait $step; then fail "srun ended with 0: $(cat broken.log)"; fi
grep -q -i -E 'rank 0: |node fail|n2' broken.log || fail "no cause is named: $(cat broken.log)"

srun -N1 -w n1 -n2 --mpi=pmix "$lockstep" train net.yaml --set run.dir="$work/broken" --resume auto > resumed.log 2>&1 ||
  fail "the run on the node that is left: $(cat resumed.log)"
grep -q 'resuming .* after [34]0 steps' resumed.log || fail "did not resume: $(cat resumed.log)"
[[ $(digest broken) == "$(digest unbroken)" ]] || fail "other weights: $(digest broken) and $(digest unbroken)"
cat broken.log
finish
