#!/usr/bin/env bash
# Inside the cluster: `lockstep sweep --submit --array` runs trials that ask for the same resources as the tasks of one job,
# no more at once than its limit lets, --report shows them before they end, and --resume submits what is missing only.
# usage: sweep_array.sh LOCKSTEP WORK_FOLDER
set -euo pipefail
# shellcheck source=tests/slurm/common.sh
source "${BASH_SOURCE[0]%/*}/common.sh"
lockstep=$1 work=$2
work_in "$work"
sweep_base
cat > sweep.yaml <<'YAML'
config: configs/base.yaml
dir: runs
list: [{world_size: 1, batch_size: 8}, {world_size: 2, batch_size: 4}, {world_size: 1, batch_size: 4, accumulate: 2},
       {world_size: 1, lr: 1e30}]
sbatch: [--time=5]
YAML

# state TRIAL FILE: of the trial in results.csv.
state() { sed -n "s/^\"\\{0,1\\}$1\"\\{0,1\\},\\([a-z]*\\),.*/\\1/p" runs/results.csv; }
# report_until PATTERN: asks for the table until it says so; report.log has the last one.
report_until() {
  local i
  for (( i = 0; i < 100; ++i )); do
    code=0
    "$lockstep" sweep sweep.yaml --report > report.log 2>&1 || code=$?
    grep -q "$1" report.log && return
    sleep 0.2
  done
  fail "no '$1' in the report: $(cat report.log)"
}

# Three trials of one rank are one job of three tasks, one at a time; the trial of two ranks is another.
code=0
"$lockstep" sweep sweep.yaml --submit --array --jobs 1 > first.log 2>&1 || code=$?
[[ $code == 1 ]] || fail "expected exit code 1, found $code: $(cat first.log)"
grep -q 'array-1: 3 trials submitted as a job array' first.log || fail "arrays: $(cat first.log)"
grep -q 'array-2: 1 trials submitted as a job array' first.log || fail "arrays: $(cat first.log)"
grep -q 'world_size=1,lr=1e30: failed: Slurm job [0-9]*_2 is FAILED: lockstep: ' first.log || fail "the failed trial: $(cat first.log)"
for trial in world_size=2,batch_size=4 world_size=1,batch_size=8 world_size=1,batch_size=4,accumulate=2; do
  grep -q '"event":"end"' "runs/$trial/metrics.jsonl" || fail "$trial: $(cat "runs/$trial/launch.log")"
  [[ $(state "$trial") == 'done' ]] || fail "$trial: $(cat runs/results.csv)"
done
[[ $(state world_size=1,lr=1e30) == failed ]] || fail "$(cat runs/results.csv)"
grep -q 'global batch 8: 3 trials, largest difference' runs/results.md || fail "results: $(cat runs/results.md)"
mpirun --oversubscribe --bind-to none -np 2 "$lockstep" train configs/base.yaml --set run.dir="$work/alone" > alone.log 2>&1
difference=$(diff <(numbers alone) <(numbers runs/world_size=2,batch_size=4)) || fail "two ranks of a task differ: $difference"

# What is missing, alone: task 0 of a new array.
sed -i 's/, {world_size: 2, batch_size: 4}//; s/{world_size: 1, lr: 1e30}/{world_size: 1, batch_size: 2}/' sweep.yaml
kept=$(cat "runs/world_size=1,batch_size=8/sbatch")
rm -r runs/world_size=1,batch_size=4,accumulate=2
"$lockstep" sweep sweep.yaml --submit --array --resume > second.log 2>&1 || fail "resume: $(cat second.log)"
grep -q '3 trials, 2 to run' second.log || fail "resume: $(cat second.log)"
[[ $(cat "runs/world_size=1,batch_size=8/sbatch") == "$kept" ]] || fail "a finished trial was submitted again"
[[ -L runs/array-3/1 && ! -e runs/array-3/2 ]] || fail "the array of what was missing: $(ls -l runs/array-3)"

# Handed over and left alone: one at a time, the first runs and shows its curve, the second waits; neither is submitted again.
sed -i '/^ *{world_size: 1, batch_size: 2}/d; s/^list:.*/list: [{train.epochs: 1000000, log.every: 1000}, {train.epochs: 1000001}, {world_size: 1, batch_size: 8}]/' sweep.yaml
"$lockstep" sweep sweep.yaml --submit --array --no-wait --jobs 1 --resume > left.log 2>&1 || fail "no-wait: $(cat left.log)"
grep -q 'epochs=1000001: Slurm job [0-9]*_1$' left.log || fail "no-wait: $(cat left.log)"
report_until '1 trials done, 1 running, 1 queued'
[[ $code == 0 ]] || fail "report: expected exit code 0, found $code: $(cat report.log)"
report_until '^epochs=1000000,every=1000 .*running.* [0-9.e-]*[0-9]$'  # with its loss
[[ $(state epochs=1000000,every=1000) == running && $(state epochs=1000001) == queued ]] || fail "states: $(cat runs/results.csv)"
grep -q '"label":"epochs=1000000,every=1000"' runs/report.html || fail "no curve of the running trial in the page"
"$lockstep" sweep sweep.yaml --submit --array --resume > again.log 2>&1 || fail "resume beside jobs: $(cat again.log)"
grep -q '3 trials, 0 to run' again.log || fail "resume beside jobs: $(cat again.log)"

# A job that was cancelled is no longer under way.
scancel "$(cat runs/array-4/sbatch)"
report_until '2 of 3 trials are not done'
[[ $code == 1 ]] || fail "report: expected exit code 1, found $code: $(cat report.log)"
grep -q 'epochs=1000001,failed,.*_1 is CANCELLED' runs/results.csv || fail "cancelled: $(cat runs/results.csv)"

# Asked to stop, the sweep cancels its tasks.
sed -i 's/^list:.*/list: [{train.epochs: 2000000, log.every: 1000}, {train.epochs: 2000001, log.every: 1000}]/' sweep.yaml
"$lockstep" sweep sweep.yaml --submit --array > stopped.log 2>&1 &
waiting=$!
for (( i = 0; i < 100; ++i )); do
  [[ -s runs/array-5/sbatch ]] && break
  sleep 0.2
done
kill -TERM $waiting
code=0
wait $waiting || code=$?
[[ $code == 75 ]] || fail "asked to stop: expected exit code 75, found $code: $(cat stopped.log)"
for (( i = 0; i < 100; ++i )); do
  [[ -z $(squeue --noheader --states=running,pending 2> /dev/null) ]] && break
  sleep 0.2
done
[[ -z $(squeue --noheader --states=running,pending) ]] || fail "jobs are left after the sweep was stopped: $(squeue)"
finish
