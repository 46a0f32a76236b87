#!/usr/bin/env bash
# Inside a cluster of three nodes: one, two and three nodes with one and two ranks each train to the losses of as many ranks
# on one machine, a sweep is a run per task, and a job that nears its time limit ends by itself, with its own exit code.
# usage: batch_files.sh ROOT LOCKSTEP WORK_FOLDER
set -euo pipefail
# shellcheck source=tests/slurm/common.sh
source "${BASH_SOURCE[0]%/*}/common.sh"
root=$1 lockstep=$2 work=$3
readonly config=configs/articles/003_torchrun.yaml
work_in "$work"
project_root "$root" "$lockstep" configs slurm

declare -A job
for shape in 1x2 2x1 3x1 3x2; do
  sbatch --wait --output=$shape.log --nodes=${shape%x*} --ntasks-per-node=${shape#*x} slurm/train.sbatch $config \
    --set run.dir="$work/$shape" > /dev/null &
  job[$shape]=$!
done
sbatch --wait --array=0-1 --output=sweep-%a.log slurm/sweep.sbatch $config > /dev/null &
job[sweep]=$!
# A job of a minute: the limit counts from the moment at which 50 s are left of it.
cat > long.yaml <<YAML
model: {layers: [{linear: 64}, relu, {linear: 2}]}
data: {train: {kind: synthetic, name: teacher, samples: 6400, shape: [16], classes: 2}}
train: {epochs: 1000000, batch_size: 4}
log: {every: 100000}
checkpoint: {every: 1000000 epochs}
run: {dir: $work/long, time_margin: 50}
YAML
sbatch --wait --output=long.log --time=1 slurm/train_mpirun.sbatch long.yaml > /dev/null &
job[long]=$!

for shape in 1x2 2x1 3x1 3x2; do
  wait "${job[$shape]}" || fail "$shape: $(cat $shape.log)"
  ranks=$(( ${shape%x*} * ${shape#*x} ))
  mpirun --oversubscribe --bind-to none -np $ranks "$lockstep" train $config --set run.dir="$work/alone-$shape" \
    > alone.log 2>&1 || fail "$ranks ranks on one machine: $(cat alone.log)"
  difference=$(diff <(numbers "alone-$shape") <(numbers "$shape")) || fail "$shape: differs from one machine: $difference"
done
wait "${job[sweep]}" || fail "sweep: $(cat sweep-*.log)"
[[ $(cat runs/sweep-*/lr-*/config.yaml | grep -cE '^  lr: 0.(1|03)\b') == 2 ]] || fail "sweep: $(ls -R runs; cat sweep-*.log)"
code=0
wait "${job[long]}" || code=$?
[[ $code == 75 ]] || fail "time limit: expected exit code 75, found $code: $(cat long.log)"
grep -q "Slurm's time limit: the run ends after [0-9]* steps and is saved" long.log || fail "time limit: $(cat long.log)"
finish
