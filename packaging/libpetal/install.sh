#!/usr/bin/env bash
# Installs libpetal: packaging/libpetal/install.sh LIBRARIES PREFIX [LIBDIR] copies the libraries that cargo wrote into
# the folder LIBRARIES, the headers, and the files for pkg-config and CMake. LIBDIR is `lib` by default.
set -euo pipefail
[ $# -eq 2 ] || [ $# -eq 3 ] || { echo "usage: packaging/libpetal/install.sh LIBRARIES PREFIX [LIBDIR]" >&2; exit 2; }
libraries=$1 prefix=$2 libdir=${3:-lib}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$here/../..
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$top/Cargo.toml")

put() { install -D -m 644 "$1" "$prefix/$2"; }
# Fills a template.
fill() {
    mkdir -p "$(dirname "$prefix/$libdir/$2")"
    sed -e "s|@version@|$version|" -e "s|@libdir@|$libdir|" -e "s|@up@|$(sed -E 's|[^/]+|..|g' <<< "$libdir")|" \
        "$here/$1" > "$prefix/$libdir/$2"
    chmod 644 "$prefix/$libdir/$2"
}
put "$top/crates/capi/include/petal.h" include/petal.h
put "$top/crates/capi/include/petal.hpp" include/petal.hpp
put "$libraries/libpetal_capi.so" "$libdir/libpetal.so.1"
put "$libraries/libpetal_capi.a" "$libdir/libpetal.a"
ln -sf libpetal.so.1 "$prefix/$libdir/libpetal.so"
fill petal.pc.in pkgconfig/petal.pc
fill petalConfig.cmake.in cmake/petal/petalConfig.cmake
fill petalConfigVersion.cmake.in cmake/petal/petalConfigVersion.cmake
