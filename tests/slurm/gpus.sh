#!/usr/bin/env bash
# Inside a cluster whose nodes have two GPUs each, as far as Slurm and the program on simulated GPUs know: the batch file trains
# with every rank on a GPU of its own, whether each sees all of its node's or its own alone, to the numbers of as many ranks
# on one machine. usage: gpus.sh ROOT LOCKSTEP_ON_SIMULATED_GPUS WORK_FOLDER
set -euo pipefail
# shellcheck source=tests/slurm/common.sh
source "${BASH_SOURCE[0]%/*}/common.sh"
root=$1 lockstep=$2 work=$3
work_in "$work"
project_root "$root" "$lockstep" slurm
cat > net.yaml <<YAML
model: {layers: [{linear: 24}, relu, {linear: 3}]}
data:
  train: {kind: synthetic, name: random, samples: 60, shape: [7], classes: 3, seed: 5}
  val: {kind: synthetic, name: random, samples: 21, shape: [7], classes: 3, seed: 6}
train: {epochs: 2, batch_size: 3}
optimizer: {kind: sgd, lr: 0.1, momentum: 0.9}
log: {every: 1}
YAML

# batch NAME EXPECTED OPTION... -- SBATCH_OPTION...: a job, and what its first lines must say.
batch() {
  local name=$1 expected=$2 options=()
  shift 2
  while [[ $1 != -- ]]; do
    options+=("$1")
    shift
  done
  shift
  sbatch --wait --output="$name.log" "$@" slurm/train_gpu.sbatch net.yaml --set run.dir="$work/$name" "${options[@]}" > /dev/null ||
    { fail "$name: $(cat "$name.log")"; return; }
  grep -q "$expected" "$name.log" || fail "$name: expected '$expected': $(cat "$name.log")"
}
# Simulated GPUs sum across nodes by way of the hosts only: NCCL's meet in shared memory.
batch all_seen "communicator nccl" -- --nodes=1
batch own_seen "communicator nccl" -- --nodes=1 --gpus-per-node=0 --gpus-per-task=1
batch two_nodes "staged" --set distributed.backend=mpi -- --nodes=2

# alone NAME RANKS OPTION...
alone() {
  local name=$1 ranks=$2
  shift 2
  mpirun --oversubscribe --bind-to none -np "$ranks" "$lockstep" train net.yaml --set device.kind=cuda --set run.dir="$work/$name" \
    "$@" > "$name.log" 2>&1 || fail "$name: $(cat "$name.log")"
}
alone alone2 2
alone alone4 4 --set distributed.backend=mpi
for pair in "all_seen alone2" "own_seen alone2" "two_nodes alone4"; do
  read -r one other <<< "$pair"
  [[ -n $(digest "$one") ]] || fail "$one: no digest"
  difference=$(diff <(numbers "$one") <(numbers "$other")) || fail "$one: differs from $other: $difference"
done

# More ranks than GPUs: the GPU that two of them would share is named, and nothing trains.
if sbatch --wait --output=crowded.log --nodes=1 --ntasks-per-node=3 --oversubscribe slurm/train_gpu.sbatch net.yaml > /dev/null; then
  fail "three ranks on two GPUs trained: $(cat crowded.log)"
fi
grep -qi "gpu" crowded.log || fail "three ranks on two GPUs: $(cat crowded.log)"
finish
