#!/usr/bin/env bash
# bench/gpu_check where there is no GPU: why it is skipped; what it builds, tests and measures, by tools that only write down
# how they were called; its table, of recorded figures and of those of a simulated GPU. usage: gpu_check.sh ROOT BUILD WORK_FOLDER
set -euo pipefail
root=$1 build=$2 work=$3
rm -rf "$work"
mkdir -p "$work/bin"
failures=0
fail() { printf 'FAILED: %s\n' "$*"; failures=$((failures + 1)); }

# tool NAME: a program on PATH whose body is stdin.
tool() {
  { printf '#!/usr/bin/env bash\nset -euo pipefail\n'; cat; } > "$work/bin/$1"
  chmod +x "$work/bin/$1"
}
# says TEXT FILE
says() { grep -qF -- "$1" "$2" || fail "expected '$1' in: $(cat "$2")"; }
# check EXPECTED_EXIT_CODE OPTION...: runs gpu_check with the tools, output in $work/out.
check() {
  local expected=$1 code=0
  shift
  PATH=$work/bin:$PATH "$root/bench/gpu_check" "$@" > "$work/out" 2>&1 || code=$?
  [[ $code == "$expected" ]] || fail "gpu_check $*: exit code $code instead of $expected: $(cat "$work/out")"
}

tool nvidia-smi <<< 'echo "NVIDIA-SMI has failed because it could not communicate with the NVIDIA driver."; exit 9'
check 77
says "SKIPPED: bench/gpu_check: no GPU: nvidia-smi says: NVIDIA-SMI has failed" "$work/out"
tool nvidia-smi <<< 'true'
check 77
says "SKIPPED: bench/gpu_check: no GPU: nvidia-smi lists none" "$work/out"
check 1 --faster
says "unknown option '--faster'" "$work/out"
check 1 --torch
says "--torch: a value is missing" "$work/out"

# Two kinds of GPU; whatever is called is written down.
tool nvidia-smi <<'TOOL'
case "$*" in
  *=compute_cap*) printf '9.0\n8.0\n9.0\n' ;;
  *=name*) echo "NVIDIA H100, 9.0, 580.65" ;;
  *=utilization.gpu*) while true; do echo 87; sleep 0.02; done ;;
esac
TOOL
for name in cmake ctest python3; do tool "$name" <<< "echo \"$name \$*\" >> '$work/calls'"; done
check 0 --build "$work/build" --torch /opt/python --save "$work/saved.json"
says "cmake --preset release -B $work/build -DLOCKSTEP_CUDA=ON -DLOCKSTEP_CUDA_ARCHITECTURES=80;90" "$work/calls"
says "--target lockstep bench_step bench_gpu unit_gpu" "$work/calls"
says "ctest --test-dir $work/build -L ^gpu\$ --output-on-failure" "$work/calls"
says "python3 bench/gpu_table.py --build $work/build --torch /opt/python --save $work/saved.json" "$work/calls"
says "tests took" "$work/out"
tool ctest <<< 'exit 8'
check 8 --build "$work/build"
says "measurements took" "$work/out" # a failed test keeps nobody from the table
tool cmake <<< 'echo "CMake Error: LOCKSTEP_CUDA is ON, but CUDA was not found"; exit 1'
check 1 --build "$work/build"
says "but CUDA was not found" "$work/out"
rm "$work/bin/"{cmake,ctest,python3}

# Recorded figures become the recorded table, those that are missing too.
python3 "$root/bench/gpu_table.py" --results "$root/tests/sim/gpu_check/results.json" > "$work/table" || fail "exit code $?"
diff "$root/tests/sim/gpu_check/table.txt" "$work/table" || fail "another table"
if python3 "$root/bench/gpu_table.py" --results "$root/tests/sim/gpu_check/failed.json" > "$work/table" 2>&1; then
  fail "figures that are missing are no failure"
fi
diff "$root/tests/sim/gpu_check/failed.txt" "$work/table" || fail "another table"

# The programs on a simulated GPU: all figures are there, and marked.
PATH=$work/bin:$PATH python3 "$root/bench/gpu_table.py" --simulated --tiny --build "$build" --save "$work/simulated.json" \
  > "$work/table" 2>&1 || fail "exit code $?: $(cat "$work/table")"
cat "$work/table"
says "SIMULATED GPU" "$work/table"
says "simulated GPU, CUDA" "$work/table"
says "weight gradient" "$work/table"
says " 87 %" "$work/table"
if grep -q "^note:" "$work/table"; then fail "something could not be measured"; fi
python3 - "$work/simulated.json" <<'PYTHON' || fail "a simulated result"
import json, sys
results = json.load(open(sys.argv[1]))
assert results["simulated"] and len(results["rows"]) == 3
for row in results["rows"]:
    assert row["ours"]["device"] == "cuda" and row["ours"]["samples_per_second"] > 0, row
assert results["rows"][2]["ours"]["arithmetic"] == "bf16"
PYTHON
(( failures == 0 ))
