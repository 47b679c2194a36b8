#!/usr/bin/env bash
# Builds the C core with AddressSanitizer and UBSan and runs tests with it.
#   tools/sanitize.sh PYTHON [pytest arguments…]
set -euo pipefail
cd "$(dirname "$0")/.."
python=$1
shift
[[ $python == */* ]] && python=$(cd "$(dirname "$python")" && pwd)/$(basename "$python")
tag=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
build=build/sanitize-$tag
bin=$(dirname "$python")

echo "== C core for CPython $tag with sanitizers"
"$bin/cmake" -S . -B "$build" -G Ninja -DCMAKE_MAKE_PROGRAM="$bin/ninja" -DPython_EXECUTABLE="$python" -DPython_FIND_VIRTUALENV=ONLY \
    -DTIERUP_WERROR=ON -DTIERUP_SANITIZE=ON >"$build.log" 2>&1 || { cat "$build.log" >&2; exit 1; }
"$bin/cmake" --build "$build"

# A copy of the package with this core; it comes before an installed one.
rm -rf "$build/package"
mkdir -p "$build/package"
cp -r src/tierup "$build/package/"
rm -f "$build"/package/tierup/_core*.so
cp "$build"/_core*.so "$build/package/tierup/"

# The interpreter itself is not instrumented: the library must be there before it. CPython leaks on purpose at exit.
# Its own allocator hides overruns of small objects from the sanitizer, so malloc serves all.
library=$("${CC:-cc}" -print-file-name=libasan.so)
export LD_PRELOAD=$library ASAN_OPTIONS=detect_leaks=0:abort_on_error=1:allocator_may_return_null=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export PYTHONMALLOC=malloc PYTHONPATH=$PWD/$build/package
exec "$python" -m pytest -p no:cacheprovider "$@"
