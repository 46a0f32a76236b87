#!/usr/bin/env bash
# What no file of the project contains: notes for later, paths of one machine, trailing blanks. usage: text_rules.sh ROOT
set -euo pipefail
export LC_ALL=C.UTF-8
cd "$1"

# Text files as they would be committed; without git (an unpacked archive), what lies in the source folders.
text_files() {
  if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    git ls-files -z --cached --others --exclude-standard
  else
    find app bench cmake configs docs lib slurm tests .ci ./*.md ./*.txt bootstrap -type f -print0
  fi
}

status=0
# forbid WHAT REGEX: prints FILE:LINE:TEXT for every match in the files named on standard input (separated by NUL).
forbid() {
  local matches
  matches=$(xargs -0 -r grep -HnIE -- "$2" || true)
  if [[ -n $matches ]]; then
    printf '%s:\n%s\n' "$1" "$matches"
    status=1
  fi
}

# Brackets keep the patterns from finding themselves.
forbid "notes for later belong into the issue tracker" '\b(TOD[O]|FIXM[E]|XX[X])\b' < <(find app lib -type f -print0)
forbid "a path of one machine" '(^|[^[:alnum:]_.$}/-])/(wor[k]|roo[t]|hom[e])/' < <(text_files)
forbid "trailing blanks" '[[:blank:]]+$' < <(text_files | grep -zvE '^(tests/golden|datasets)/|\.(svg|md)$')
exit "$status"
