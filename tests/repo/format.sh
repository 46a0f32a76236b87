#!/usr/bin/env bash
# Every C++ file is as clang-format 14 leaves it. usage: format.sh ROOT [--fix]
# Another major version formats a little differently, so without version 14 the check is skipped (exit code 77).
set -euo pipefail
cd "$1"

formatter=''
for name in clang-format-14 clang-format; do
  if command -v "$name" >/dev/null && "$name" --version | grep -q 'version 14\.'; then
    formatter=$name
    break
  fi
done
if [[ -z $formatter ]]; then
  echo "SKIPPED: clang-format 14 is not installed"
  exit 77
fi

mode=(--dry-run -Werror --ferror-limit=1)
[[ ${2:-} != --fix ]] || mode=(-i)
find app lib tests bench examples -type f \( -name '*.cpp' -o -name '*.h' -o -name '*.inl' -o -name '*.cu' -o -name '*.cuh' \) -print0 |
  xargs -0 -r "$formatter" "${mode[@]}" || { echo "mend it with: tests/repo/format.sh . --fix"; exit 1; }
