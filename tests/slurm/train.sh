#!/usr/bin/env bash
# Inside the cluster: the batch files of slurm/ train as they are, on two nodes, to the same bits as two ranks of one node,
# and a failure becomes the job's exit code. usage: train.sh ROOT LOCKSTEP WORK_FOLDER
set -euo pipefail
# shellcheck source=tests/slurm/common.sh
source "${BASH_SOURCE[0]%/*}/common.sh"
root=$1 lockstep=$2 work=$3
readonly config=configs/articles/003_torchrun.yaml
work_in "$work"
project_root "$root" "$lockstep" configs slurm

mpirun --oversubscribe --bind-to none -np 2 "$lockstep" train $config --set run.dir="$work/one_node" > one_node.log 2>&1 ||
  { cat one_node.log; exit 1; }
[[ $(numbers one_node | grep -c '"event":"step"') == 3 ]] || fail "one node: expected 3 steps, found: $(cat one_node.log)"

# Submitted together, for `sbatch --wait` looks only every few seconds.
declare -A job
for batch in train train_mpirun; do
  sbatch --wait --output=$batch.log slurm/$batch.sbatch $config --set run.dir="$work/$batch" > /dev/null &
  job[$batch]=$!
  sbatch --wait --output=$batch-wrong.log slurm/$batch.sbatch $config --set optimizer.lr=fast > /dev/null &
  job[$batch-wrong]=$!
done
for batch in train train_mpirun; do
  if ! wait "${job[$batch]}"; then
    fail "slurm/$batch.sbatch: $(cat $batch.log)"
  elif ! difference=$(diff <(numbers one_node) <(numbers $batch)); then
    fail "slurm/$batch.sbatch: one node and two nodes differ: $difference"
  fi
  if wait "${job[$batch-wrong]}"; then
    fail "slurm/$batch.sbatch: a wrong config, but the job's exit code is 0: $(cat $batch-wrong.log)"
  elif ! grep -q 'optimizer\.lr' $batch-wrong.log; then
    fail "slurm/$batch.sbatch: expected a message about optimizer.lr, found: $(cat $batch-wrong.log)"
  fi
done

# Virtual ranks: two and four ranks on two nodes do what one rank does alone, bit for bit.
readonly virtual=$root/tests/slurm/virtual.yaml
mpirun --bind-to none -np 1 "$lockstep" train "$virtual" --set run.dir="$work/alone" > alone.log 2>&1 ||
  fail "virtual ranks on one rank: $(cat alone.log)"
for tasks in 2 4; do
  srun -N2 -n$tasks --mpi=pmix "$lockstep" train "$virtual" --set run.dir="$work/virtual$tasks" > virtual.log 2>&1 ||
    fail "virtual ranks on $tasks ranks of two nodes: $(cat virtual.log)"
  if ! difference=$(diff <(numbers alone) <(numbers "virtual$tasks")); then
    fail "virtual ranks: one rank and $tasks on two nodes differ: $difference"
  fi
  # The config names the folder, and the manifest has its checksum.
  if ! difference=$(diff -r -x config.yaml -x manifest.json "$work/alone/checkpoints" "$work/virtual$tasks/checkpoints"); then
    fail "virtual ranks: checkpoints of one rank and of $tasks on two nodes differ: $difference"
  fi
done
finish
