#!/usr/bin/env bash
# At most one preprocessor conditional per thousand lines of lib/ and app/: differences between machines and libraries
# are files (no_cuda.cpp), functions (select_isa) or one adapter. usage: conditionals.sh ROOT
set -euo pipefail
cd "$1"

# Not counted: the adapter whose whole purpose is the difference between oneDNN 2 and 3.
readonly allowed='^lib/backend/cpu/onednn_api\.(h|cpp):'

mapfile -t files < <(find app lib -type f \( -name '*.cpp' -o -name '*.h' -o -name '*.inl' -o -name '*.cu' -o -name '*.cuh' \) | sort)
lines=$(cat "${files[@]}" | wc -l)
found=$(grep -HnE '^[[:space:]]*#[[:space:]]*(if|ifdef|ifndef)\b' "${files[@]}" | grep -vE "$allowed" || true)
count=$(grep -c . <<< "$found" || true)
limit=$(( (lines + 999) / 1000 ))
echo "$count conditionals in $lines lines, at most $limit expected"
if (( count > limit )); then
  echo "$found"
  exit 1
fi
