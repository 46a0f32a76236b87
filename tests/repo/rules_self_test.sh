#!/usr/bin/env bash
# Each check of this folder must refuse a tree with a planted violation, naming the file, and accept it without.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root"/{app,lib/core,tests,bench,cmake,configs,docs,slurm,.ci}
touch "$root/bootstrap"

failures=0
# plant CHECK TEXT FILE: CHECK accepts the tree, refuses it once FILE holds TEXT, and accepts it again without.
plant() {
  local check=$1 text=$2 file=$3 output
  if ! output=$("$here/$check" "$root" 2>&1); then
    printf '%s: refused a clean tree:\n%s\n' "$check" "$output"
    failures=$((failures + 1))
  fi
  printf '%b' "$text" > "$root/$file"
  if output=$("$here/$check" "$root" 2>&1) || [[ $output != *"$file"* ]]; then
    printf '%s: did not name %s:\n%s\n' "$check" "$file" "$output"
    failures=$((failures + 1))
  fi
  rm "$root/$file"
}

printf '#pragma once\nint answer();\n' > "$root/lib/core/answer.h"
plant file_size.sh "$(printf '// line\\n%.0s' {1..501})" lib/core/long.cpp
plant conditionals.sh '#if A\n#endif\n#ifdef B\n#endif\n' lib/core/many.cpp
plant text_rules.sh '// TO''DO: later\n' lib/core/later.cpp
plant text_rules.sh '// see /wo''rk/notes\n' lib/core/path.cpp
plant text_rules.sh 'int x;  \n' lib/core/blank.cpp
if "$here/format.sh" "$root" > /dev/null; then
  plant format.sh 'int   x ;\n' lib/core/style.cpp
fi
# shellcheck disable=SC2016  # the planted scripts are meant as they stand
if command -v shellcheck > /dev/null; then
  printf '#!/usr/bin/env bash\nset -euo pipefail\necho "$1"\n' > "$root/bootstrap"
  plant shell_scripts.sh '#!/usr/bin/env bash\nset -euo pipefail\nrm $1\n' .ci/unquoted
fi

(( failures == 0 )) && echo "every planted violation was found"
exit $(( failures > 0 ))
