#!/usr/bin/env bash
# Installs into an empty prefix, builds examples/own_model against it, and trains it: the same on one rank and on two.
# usage: own_model.sh ROOT BUILD WORK_FOLDER
set -euo pipefail
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
root=$1 build=$2 work=$3/own_model
rm -rf "$work"
mkdir -p "$work"
cmake --install "$build" --prefix "$work/prefix" > "$work/install.log"
cmake -S "$work/prefix/share/lockstep/examples/own_model" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/prefix" \
  -DCMAKE_BUILD_TYPE=Release > "$work/configure.log" 2>&1 || { cat "$work/configure.log"; exit 1; }
cmake --build "$work/build" > "$work/build.log" || { tail -n 40 "$work/build.log"; exit 1; }
! grep -qF "$root/lib" "$work/build.log" || { echo "the example was built with headers of the source tree"; exit 1; }

cd "$work"
for ranks in 1 2; do
  timeout 200 mpirun --oversubscribe --bind-to none -np $ranks build/own_model "run$ranks" > "run$ranks.log" 2>&1 ||
    { cat "run$ranks.log"; exit 1; }
  accuracy=$(grep '"event":"eval"' "run$ranks/metrics.jsonl" | tail -n 1 | grep -oE '"accuracy":[0-9.e-]+' | cut -d: -f2)
  echo "$ranks rank(s): accuracy $accuracy"
  awk -v a="$accuracy" 'BEGIN { exit !(a > 0.95) }' || { echo "expected more than 0.95"; exit 1; }
done
