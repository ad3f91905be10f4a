#!/usr/bin/env bash
# Builds the Debian packages of libpetal: packaging/libpetal/deb.sh LIBRARIES ARCHITECTURE FOLDER writes
# FOLDER/libpetal1_VERSION_ARCHITECTURE.deb and FOLDER/libpetal-dev_VERSION_ARCHITECTURE.deb.
set -euo pipefail
[ $# -eq 3 ] || { echo "usage: packaging/libpetal/deb.sh LIBRARIES ARCHITECTURE FOLDER" >&2; exit 2; }
libraries=$1 architecture=$2 folder=$3
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../debian.sh"
case $architecture in
    amd64) libdir=lib/x86_64-linux-gnu ;;
    arm64) libdir=lib/aarch64-linux-gnu ;;
    *) echo "deb.sh: architecture $architecture: expected amd64 or arm64" >&2; exit 2 ;;
esac
"$here/install.sh" "$libraries" "$STAGE/libpetal-dev/usr" "$libdir"
version=$(sed -n 's/^Version: //p' "$STAGE/libpetal-dev/usr/$libdir/pkgconfig/petal.pc")
put libpetal1 644 "$STAGE/libpetal-dev/usr/$libdir/libpetal.so.1" "/usr/$libdir/libpetal.so.1"
rm "$STAGE/libpetal-dev/usr/$libdir/libpetal.so.1"
put libpetal1 644 "$here/libpetal1.symbols" /DEBIAN/symbols
echo "libpetal 1 libpetal1" > "$STAGE/libpetal1/DEBIAN/shlibs"
echo "activate-noawait ldconfig" > "$STAGE/libpetal1/DEBIAN/triggers"
pack libpetal1 "$version" "$architecture" "$folder" <<CONTROL
Depends: libc6 (>= 2.17), libgcc-s1
Multi-Arch: same
Section: libs
Priority: optional
Description: Bloom filters and their family: shared library
 Approximate set membership for C, C++ and every language that calls C. Builds
 filters, and reads those of petal and of other programs.
CONTROL
pack libpetal-dev "$version" "$architecture" "$folder" <<CONTROL
Depends: libpetal1 (= $version)
Multi-Arch: same
Section: libdevel
Priority: optional
Description: Bloom filters and their family: headers and static library
 Approximate set membership for C, C++ and every language that calls C. This
 package has what programs are compiled with, for pkg-config and CMake.
CONTROL
