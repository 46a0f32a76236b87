#!/usr/bin/env bash
# Inside the cluster: srun and mpirun place ranks on both nodes, which share no memory. usage: placement.sh EXECUTABLE
set -euo pipefail
executable=$1
status=0

# expect WHAT COMMAND...: the command's sorted output is the text on standard input.
expect() {
  local what=$1 wanted found
  shift
  wanted=$(cat)
  found=$("$@" 2>&1 | sort) || true
  if [[ $found != "$wanted" ]]; then
    printf '%s: expected\n%s\nfound\n%s\n' "$what" "$wanted" "$found"
    status=1
  fi
}

expect "one rank per node under srun" srun -N2 -n2 --mpi=pmix "$executable" <<'TEXT'
rank 0 of 2, local rank 0 of 1, on n1, memory own
rank 1 of 2, local rank 0 of 1, on n2, memory own
TEXT
expect "two ranks per node under srun" srun -N2 -n4 --mpi=pmix "$executable" <<'TEXT'
rank 0 of 4, local rank 0 of 2, on n1, memory shared
rank 1 of 4, local rank 1 of 2, on n1, memory shared
rank 2 of 4, local rank 0 of 2, on n2, memory shared
rank 3 of 4, local rank 1 of 2, on n2, memory shared
TEXT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
expect "mpirun inside an allocation" salloc -Q -N2 -n2 mpirun --bind-to none "$executable" <<'TEXT'
rank 0 of 2, local rank 0 of 1, on n1, memory own
rank 1 of 2, local rank 0 of 1, on n2, memory own
TEXT
exit "$status"
