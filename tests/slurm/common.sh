#!/usr/bin/env bash
# For the scripts beside it, which source it: where they work, and how they compare runs. A script ends with `finish`.
set -euo pipefail
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
status=0

fail() { echo "$*"; status=1; }
finish() { exit "$status"; }  # 1 after a fail

# work_in FOLDER: goes there; it is empty then.
work_in() {
  rm -rf "$1"
  mkdir -p "$1"
  cd "$1"
}

# project_root ROOT LOCKSTEP FOLDER...: makes this folder a project's root, as the batch files expect one, whose build/release
# holds the executable under test.
project_root() {
  local root=$1 lockstep=$2
  shift 2
  mkdir -p build/release/app
  ln -s "$lockstep" build/release/app/lockstep
  ln -s "${@/#/$root/}" .
}

# sweep_base: writes the config that sweeps vary, configs/base.yaml.
sweep_base() {
  mkdir configs
  cat > configs/base.yaml <<'YAML'
model: {layers: [{linear: 8}, relu, {linear: 3}]}
data: {train: {kind: synthetic, name: teacher, samples: 96, shape: [5], classes: 3}}
train: {batch_size: 4}
optimizer: {kind: sgd, lr: 0.05}
log: {every: 1}
YAML
}

# numbers RUN: every number of a run that does not depend on the clock.
numbers() {
  grep -hE '"event":"(step|eval|probe|end)"' "$1/metrics.jsonl" | sed -E 's/"(samples_per_second|seconds)":[^,}]*,?//g'
}

# digest RUN: of the weights at its end.
digest() { tail -n 1 "$1/metrics.jsonl" | grep -o '"model_sha256":"[0-9a-f]*"'; }
