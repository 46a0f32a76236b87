#!/usr/bin/env bash
# Inside the cluster: two ranks on each of two nodes train to the same losses and checksums as four ranks of one node,
# through every communicator, and the hierarchical one sends over the network what it promises: one gradient per node and
# step, where messages between all ranks send nearly two. usage: hierarchical.sh LOCKSTEP WORK_FOLDER
set -euo pipefail
# shellcheck source=tests/slurm/common.sh
source "${BASH_SOURCE[0]%/*}/common.sh"
lockstep=$1 work=$2
readonly STEPS=12 PARAMETERS=$(( 256 * 1024 + 1024 + 1024 * 1024 + 1024 + 1024 + 1 ))
readonly GRADIENTS=$(( STEPS * PARAMETERS * 4 ))  # bytes

work_in "$work"
cat > net.yaml <<YAML
run: {dir: runs/net, seed: 0}
model: {layers: [{linear: 1024}, relu, {linear: 1024}, relu, {linear: 1}]}
data: {train: {kind: synthetic, name: normal_regression, samples: $(( STEPS * 4 * 4 )), shape: [256], seed: 100}}
train: {epochs: 1, batch_size: 4, loss: mse, replica_check: 4}
optimizer: {kind: sgd, lr: 0.001, momentum: 0.9}
eval: {every: never}
log: {every: 1, watch: ["checksum:0.weight", "checksum:2.weight"]}
distributed: {bucket_mb: 1}
device: {threads: 1}
YAML

# sent NODE: bytes that the node has sent since it came up.
# shellcheck disable=SC2016  # awk expands it
sent() { srun -N1 -n1 -w "$1" awk '/eth0:/ { print $10 }' /proc/net/dev; }

mpirun --oversubscribe --bind-to none -np 4 "$lockstep" train net.yaml --set run.dir="$work/one_node" > one_node.log 2>&1 ||
  { cat one_node.log; exit 1; }
[[ $(numbers one_node | grep -c '"event":"step"') == "$STEPS" ]] || fail "one node: expected $STEPS steps: $(cat one_node.log)"
[[ $(numbers one_node | grep -c checksum) -ge "$STEPS" ]] || fail "one node: no checksums: $(cat one_node.log)"

declare -A gradients
for backend in mpi hierarchical auto; do
  before=$(sent n1)
  if ! srun -N2 -n4 --distribution=block --mpi=pmix "$lockstep" train net.yaml --set distributed.backend=$backend \
    --set run.dir="$work/$backend" > $backend.log 2>&1; then
    fail "$backend: $(cat $backend.log)"
    continue
  fi
  gradients[$backend]=$(( ($(sent n1) - before) * 100 / GRADIENTS ))  # hundredths
  difference=$(diff <(numbers one_node) <(numbers $backend)) || fail "$backend: differs from one node: $difference"
done
echo "hundredths of the gradients sent by a node: mpi ${gradients[mpi]:-}, hierarchical ${gradients[hierarchical]:-}"
grep -q 'communicator hierarchical' hierarchical.log || fail "hierarchical: $(cat hierarchical.log)"
grep -q '4 ranks on 2 nodes; mpi 16 KB .*; hierarchical 16 KB ' auto.log || fail "auto does not say what it measured: $(cat auto.log)"
# The payload, and what TCP, the launcher and the start-up add to it.
(( ${gradients[hierarchical]:-0} >= 100 && ${gradients[hierarchical]:-999} <= 130 )) || fail "hierarchical: expected 100 to 130"
(( ${gradients[mpi]:-0} >= 170 )) || fail "mpi: expected 170 at least, or the comparison says nothing"

# Three ranks: the second node has one.
mpirun --oversubscribe --bind-to none -np 3 "$lockstep" train net.yaml --set run.dir="$work/one_node_3" > one_node_3.log 2>&1 ||
  { cat one_node_3.log; exit 1; }
srun -N2 -n3 --distribution=block --mpi=pmix "$lockstep" train net.yaml --set distributed.backend=hierarchical \
  --set run.dir="$work/three" > three.log 2>&1 || fail "three ranks: $(cat three.log)"
grep -q 'communicator hierarchical' three.log || fail "three ranks: $(cat three.log)"
difference=$(diff <(numbers one_node_3) <(numbers three)) || fail "three ranks: differ from one node: $difference"
finish
