#!/usr/bin/env bash
# Inside the cluster: lockstep doctor sees both nodes and the job, and a launch without PMIx is named once, with its cure.
# usage: doctor.sh LOCKSTEP
set -euo pipefail
lockstep=$1
status=0

fail() { printf '%s\n' "$*"; status=1; }
# has TEXT WHAT: the line is somewhere in the output, once.
has() { [[ $(grep -cF -- "$2" <<< "$1") == 1 ]] || fail "expected once: $2; found: $1"; }

text=$(srun -N2 -n4 --mpi=pmix "$lockstep" doctor) || fail "srun --mpi=pmix: exit code $?"
has "$text" "4 rank(s) on 2 node(s)"
has "$text" "4 task(s) on 2 node(s)"
has "$text" "training would start"
grep -qE '^n1 +' <<< "$text" || fail "n1 is missing: $text"
grep -qE '^n2 +' <<< "$text" || fail "n2 is missing: $text"

if text=$(srun -N2 -n4 --mpi=none "$lockstep" doctor 2> /dev/null); then
  fail "without PMIx: expected a refusal, found exit code 0: $text"
fi
has "$text" "start with srun --mpi=pmix"

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
text=$(salloc -Q -N2 -n2 mpirun --bind-to none "$lockstep" doctor) || fail "mpirun in an allocation: exit code $?"
has "$text" "2 rank(s) on 2 node(s)"
has "$text" "Open MPI's mpirun"
exit "$status"
