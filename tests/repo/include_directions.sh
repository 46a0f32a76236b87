#!/usr/bin/env bash
# The direction of includes between the folders of lib/, and who may see a foreign library at all.
# usage: include_directions.sh ROOT; prints FILE:LINE: REASON for every include that breaks a rule.
set -euo pipefail
export LC_ALL=C.UTF-8
cd "$1"

# sources FOLDER...: the C++ and CUDA files below the folders that exist.
sources() {
  local folder
  for folder in "$@"; do
    [[ ! -d $folder ]] || find "$folder" -type f \( -name '*.cpp' -o -name '*.h' -o -name '*.inl' -o -name '*.cu' -o -name '*.cuh' \)
  done | sort
}

status=0
report() {
  printf '%s: %s\n' "$1" "$2"
  status=1
}

# A folder of lib/ may include itself and the folders named here. Everything below is reachable from train and app.
declare -A allowed=(
  [core]=''
  [backend]='core'
  [comm]='core backend'
  [data]='core'
  [nn]='core backend'
  [optim]='core backend nn'
  [dist]='core backend comm nn optim'
  [train]='core backend comm data nn optim dist'
  [report]='core data train'
  [sweep]='core comm train report'
)

# The foreign headers with an owner: regular expression of the header, regular expression of the files that may see it.
readonly foreign=(
  'yaml-cpp/.*' 'lib/train/(config|yaml)[^/]*(/.*)?'
  'mpi\.h' '(lib/comm|app|tests|bench)/.*'
  '(dnnl|dnnl_.*|oneapi/dnnl/.*)\.(h|hpp)' '(lib/backend/cpu|tests/backend|bench)/.*'
  '(cuda|cublas|cudnn|cuda_.*)(_v[0-9]+)?\.h' '(lib/backend/cuda|lib/comm|tests/gpu|tests/sim|bench)/.*'
  'onnx/.*' '(lib/train/export|tests/train)/.*'
  '(png|turbojpeg)\.h' '(lib/data|tests/support)/.*'
  'nccl\.h' '(lib/comm/nccl|tests/gpu|tests/sim)/.*'
)

check_include() { # FILE LINE HEADER
  local file=$1 line=$2 header=$3 folder='' target i
  if [[ $file == lib/* ]]; then
    folder=${file#lib/}
    folder=${folder%%/*}
    [[ -v allowed[$folder] ]] || report "$file:$line" "folder lib/$folder has no rule in include_directions.sh"
  fi
  target=${header%%/*}
  if [[ -n $folder && -v allowed[$target] && $header == */* && $target != "$folder" ]]; then
    [[ " ${allowed[$folder]:-} " == *" $target "* ]] || report "$file:$line" "lib/$folder must not include $target/ ($header)"
  fi
  if [[ $header == *../* ]]; then
    report "$file:$line" "paths start at lib/, not with ../ ($header)"
  fi
  for (( i = 0; i < ${#foreign[@]}; i += 2 )); do
    if [[ $header =~ ^(${foreign[i]})$ && ! $file =~ ^(${foreign[i + 1]})$ ]]; then
      report "$file:$line" "$header may be included in ${foreign[i + 1]} only"
    fi
  done
}

mapfile -t files < <(sources app lib tests bench)
(( ${#files[@]} )) || { echo "no sources below $1"; exit 2; }
while IFS=: read -r file line text; do
  if [[ $text =~ ^[[:space:]]*\#[[:space:]]*include[[:space:]]*[\<\"]([^\>\"]+)[\>\"] ]]; then
    check_include "$file" "$line" "${BASH_REMATCH[1]}"
  fi
done < <(grep -HnE '^[[:space:]]*#[[:space:]]*include' "${files[@]}" || true)
echo "${#files[@]} files read"
exit "$status"
