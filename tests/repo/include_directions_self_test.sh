#!/usr/bin/env bash
# include_directions.sh must find each planted violation, at its line, and accept what is allowed.
set -euo pipefail
script=$(dirname "$(readlink -f "$0")")/include_directions.sh
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

failures=0
# expect RESULT FILE INCLUDE: in a tree whose only file has INCLUDE on line 2, the script accepts or refuses.
expect() {
  local wanted=$1 file=$2 include=$3 found=accepted output
  rm -rf "${root:?}"/*
  mkdir -p "$root/$(dirname "$file")"
  printf '// banner\n#include %s\n' "$include" > "$root/$file"
  output=$("$script" "$root") || found=refused
  if [[ $found == refused && $output != *"$file:2: "* ]]; then
    found="refused without naming $file:2"
  fi
  if [[ $found != "$wanted" ]]; then
    printf '%s including %s: expected %s, found %s\n' "$file" "$include" "$wanted" "$found"
    failures=$((failures + 1))
  fi
}

expect refused lib/core/error.h '"backend/backend.h"'
expect refused lib/nn/graph.cpp '"comm/communicator.h"'
expect refused lib/comm/mpi.cpp '"nn/layer.h"'
expect refused lib/data/loader.cpp '"backend/backend.h"'
expect refused lib/optim/adam.h '"dist/bucket_plan.h"'
expect refused lib/dist/bucket_plan.h '"train/config.h"'
expect refused lib/backend/cpu/conv.cpp '"nn/layer.h"'
expect refused lib/extra/new.h '<vector>'
expect refused lib/core/log.cpp '"../core/log.h"'
expect refused lib/train/trainer.cpp '<yaml-cpp/yaml.h>'
expect refused lib/nn/graph.cpp '<mpi.h>'
expect refused lib/nn/graph.cpp '<oneapi/dnnl/dnnl.hpp>'
expect refused app/main.cpp '"dnnl.h"'
expect refused lib/nn/graph.cpp '<cuda_runtime.h>'
expect accepted lib/train/trainer.cpp '"dist/gradient_synchronizer.h"'
expect accepted lib/train/config/yaml_reader.cpp '<yaml-cpp/yaml.h>'
expect accepted lib/train/config.cpp '<yaml-cpp/yaml.h>'
expect accepted lib/comm/mpi_communicator.cpp '<mpi.h>'
expect accepted lib/backend/cpu/dnnl.cpp '<dnnl.h>'
expect accepted lib/nn/layers/linear.cpp '"nn/layer.h"'
expect accepted lib/core/log.cpp '<core>'
expect accepted app/main.cpp '"train/trainer.h"'

(( failures == 0 )) && echo "all planted includes were judged as expected"
exit $(( failures > 0 ))
