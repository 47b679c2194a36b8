#!/usr/bin/env bash
# Build the C core for one interpreter into src/tierup (for development: run with PYTHONPATH=src).
#   tools/build_inplace.sh [PYTHON] [extra cmake options…]
# The interpreter needs numpy, cmake and ninja installed beside it.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:-python3}
shift || true
bin=$(dirname "$(command -v "$python")")
tag=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
cmake=$bin/cmake
[ -x "$cmake" ] || cmake=cmake
ninja=$bin/ninja
[ -x "$ninja" ] || ninja=ninja
"$cmake" -S . -B "build/inplace-$tag" -G Ninja -DCMAKE_MAKE_PROGRAM="$ninja" -DPython_EXECUTABLE="$(command -v "$python")" \
    -DPython_FIND_VIRTUALENV=ONLY -DTIERUP_WERROR=ON "$@" >"build-inplace-$tag.log" 2>&1 || { cat "build-inplace-$tag.log" >&2; exit 1; }
"$cmake" --build "build/inplace-$tag"
cp "build/inplace-$tag"/_core*.so src/tierup/
