#!/usr/bin/env bash
# Every shell script is clean under shellcheck and stops at the first error. usage: shell_scripts.sh ROOT
set -euo pipefail
cd "$1"
if ! command -v shellcheck >/dev/null; then
  echo "SKIPPED: shellcheck is not installed"
  exit 77
fi

mapfile -t scripts < <(grep -rlIE --exclude-dir=build --exclude-dir=.git --exclude-dir=runs '^#!.*\bbash\b' . |
  while IFS= read -r file; do
    head -n 1 "$file" | grep -qE '^#!.*\bbash\b' && echo "$file"
  done | sort)
(( ${#scripts[@]} )) || { echo "no scripts found"; exit 1; }
shellcheck --external-sources "${scripts[@]}"
status=0
for script in "${scripts[@]}"; do
  if ! grep -qE '^set -euo pipefail' "$script"; then
    echo "$script: no 'set -euo pipefail'"
    status=1
  fi
done
echo "${#scripts[@]} scripts read"
exit "$status"
