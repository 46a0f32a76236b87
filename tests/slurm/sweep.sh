#!/usr/bin/env bash
# Inside the cluster: `lockstep sweep --submit` runs each trial as a job, shows one that fails, and --resume submits what is
# missing only. usage: sweep.sh LOCKSTEP WORK_FOLDER
set -euo pipefail
# shellcheck source=tests/slurm/common.sh
source "${BASH_SOURCE[0]%/*}/common.sh"
lockstep=$1 work=$2
work_in "$work"
sweep_base
cat > sweep.yaml <<'YAML'
config: configs/base.yaml
dir: runs
list: [{world_size: 2, batch_size: 4}, {world_size: 1, batch_size: 8}, {world_size: 1, lr: 1e30}]
sbatch: [--time=5]
YAML

code=0
"$lockstep" sweep sweep.yaml --submit > first.log 2>&1 || code=$?
[[ $code == 1 ]] || fail "expected exit code 1, found $code: $(cat first.log)"
grep -q 'world_size=1,lr=1e30: failed: exit code 1: lockstep: ' first.log || fail "the failed trial: $(cat first.log)"
for trial in world_size=2,batch_size=4 world_size=1,batch_size=8; do
  grep -q '"event":"end"' "runs/$trial/metrics.jsonl" || fail "$trial: $(cat "runs/$trial/launch.log")"
done
grep -q 'global batch 8: 2 trials, largest difference' runs/results.md || fail "results: $(cat runs/results.md)"
grep -q 'srun' runs/trial.sbatch || fail "batch file: $(cat runs/trial.sbatch)"

# The same losses as two ranks on one machine.
mpirun --oversubscribe --bind-to none -np 2 "$lockstep" train configs/base.yaml --set run.dir="$work/alone" > alone.log 2>&1
difference=$(diff <(numbers alone) <(numbers runs/world_size=2,batch_size=4)) || fail "two ranks of a job differ: $difference"

sed -i 's/, {world_size: 1, lr: 1e30}//' sweep.yaml
before=$(cat runs/world_size=2,batch_size=4/sbatch)
rm -r runs/world_size=1,batch_size=8
"$lockstep" sweep sweep.yaml --submit --resume > second.log 2>&1 || fail "resume: $(cat second.log)"
grep -q '2 trials, 1 to run' second.log || fail "resume: $(cat second.log)"
[[ $(cat runs/world_size=2,batch_size=4/sbatch) == "$before" ]] || fail "a finished trial was submitted again"

# A job that is still in the queue is left alone.
sed -i 's/^list:.*/list: [{world_size: 1, batch_size: 2}]/; s/--time=5/--begin=now+1hour/' sweep.yaml
"$lockstep" sweep sweep.yaml --submit > queued.log 2>&1 &
waiting=$!
for (( i = 0; i < 100; ++i )); do
  [[ -s runs/world_size=1,batch_size=2/sbatch ]] && break
  sleep 0.2
done
kill -KILL $waiting
wait $waiting 2> /dev/null || true
code=0
"$lockstep" sweep sweep.yaml --submit --resume > left.log 2>&1 || code=$?
[[ $code == 0 ]] || fail "expected exit code 0, found $code: $(cat left.log)"
grep -q '1 trials, 0 to run' left.log || fail "queued job: $(cat left.log)"
grep -q '| queued |.*is PENDING' runs/results.md || fail "queued job: $(cat runs/results.md)"
scancel "$(head -n 1 runs/world_size=1,batch_size=2/sbatch)"

# Asked to stop, the sweep cancels its jobs.
sed -i 's/batch_size: 2/batch_size: 6/' sweep.yaml
"$lockstep" sweep sweep.yaml --submit > stopped.log 2>&1 &
waiting=$!
for (( i = 0; i < 100; ++i )); do
  [[ -s runs/world_size=1,batch_size=6/sbatch ]] && break
  sleep 0.2
done
kill -TERM $waiting
code=0
wait $waiting || code=$?
[[ $code == 75 ]] || fail "asked to stop: expected exit code 75, found $code: $(cat stopped.log)"
job=$(head -n 1 runs/world_size=1,batch_size=6/sbatch)
state=$(squeue --noheader --jobs "$job" --format %T 2> /dev/null || true)
[[ $state == '' || $state == CANCELLED || $state == COMPLETING ]] || fail "job $job is $state after the sweep was stopped"
finish
