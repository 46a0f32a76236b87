#!/usr/bin/env bash
# No file over 500 lines: one idea a file. usage: file_size.sh ROOT [LIMIT]
set -euo pipefail
cd "$1"
limit=${2:-500}
status=0
while IFS= read -r -d '' file; do
  lines=$(wc -l < "$file")
  if (( lines > limit )); then
    echo "$file: expected at most $limit lines, found $lines"
    status=1
  fi
done < <(find app lib tests bench -type f ! -path 'tests/golden/*' \
  \( -name '*.cpp' -o -name '*.h' -o -name '*.inl' -o -name '*.cu' -o -name '*.cuh' -o -name '*.sh' -o -name '*.py' -o -name '*.cmake' \) -print0)
exit "$status"
