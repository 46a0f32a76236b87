#!/usr/bin/env bash
# cpack's .deb: named, described, with its dependencies, and what it holds runs from where it was unpacked.
# usage: debian_package.sh ROOT BUILD WORK_FOLDER
set -euo pipefail
build=$2 work=$3/deb
for tool in dpkg-deb dpkg-shlibdeps; do
  command -v $tool > /dev/null || { echo "SKIPPED: $tool is not installed (package dpkg-dev)"; exit 77; }
done
rm -rf "$work"
mkdir -p "$work"
(cd "$work" && cpack --config "$build/CPackConfig.cmake" -B "$work/package" > cpack.log 2>&1) || { cat "$work/cpack.log"; exit 1; }
deb=$(echo "$work"/package/*.deb)
dpkg-deb --info "$deb" > "$work/info"
for expected in 'Package: lockstep' 'Section: science' openmpi-bin libyaml-cpp libdnnl libopenmpi; do
  grep -q "$expected" "$work/info" || { echo "expected '$expected' in:"; cat "$work/info"; exit 1; }
done
dpkg-deb --extract "$deb" "$work/root"
"$work/root/usr/bin/lockstep" --version
"$work/root/usr/bin/lockstep" plan "$work/root/usr/share/lockstep/configs/articles/000_toy.yaml" --world-size 2 > "$work/plan"
grep -q 'world_size 2' "$work/plan" || { cat "$work/plan"; exit 1; }
[[ -s $work/root/usr/share/man/man1/lockstep.1.gz || -s $work/root/usr/share/man/man1/lockstep.1 ]] ||
  { dpkg-deb --contents "$deb"; exit 1; }
