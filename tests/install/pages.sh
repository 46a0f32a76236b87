#!/usr/bin/env bash
# The man page is troff without warnings and names every command; the completion knows commands, options and config keys.
# usage: pages.sh ROOT BUILD WORK_FOLDER
set -euo pipefail
build=$2 work=$3/pages
rm -rf "$work"
mkdir -p "$work"
"$build/app/lockstep" describe --man > "$work/lockstep.1"
for command in $("$build/app/lockstep" --help | awk '/^Subcommands:/ {on = 1; next} on {print $1}'); do
  grep -qF ".SS lockstep ${command//-/\\-}" "$work/lockstep.1" || { echo "the man page lacks $command"; exit 1; }
done
if command -v groff > /dev/null; then
  groff -man -ww -z "$work/lockstep.1" 2> "$work/warnings"
  [[ ! -s $work/warnings ]] || { cat "$work/warnings"; exit 1; }
fi

"$build/app/lockstep" describe --completion > "$work/completion"
# shellcheck source=/dev/null
source "$work/completion"
# check EXPECTED WORD...: what the last word is completed to.
check() {
  local expected=$1
  shift
  COMP_WORDS=("$@")
  COMP_CWORD=$(( $# - 1 ))
  _lockstep
  [[ ${COMPREPLY[*]} == "$expected" ]] || { echo "$*: expected '$expected', found '${COMPREPLY[*]}'"; exit 1; }
}
check train lockstep tra
check --version lockstep --ver
check --allow-batch-change lockstep train c.yaml --allow
check optimizer.weight_decay= lockstep train c.yaml --set optimizer.weight
check '' lockstep train conf
