#!/usr/bin/env bash
# Makes a.txt and b.txt again from the Debian package named in MANIFEST.md.
# Usage: testdata/make.sh PACKAGE.deb      (apt-get download webext-ublock-origin-firefox)
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: $0 webext-ublock-origin-firefox_VERSION_all.deb" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
dpkg-deb -x "$1" "$work"

# The hosts of all blocking rules `||host^` and `||host/path`, in the list's own order, repeats kept.
# Left out: the sections for adult sites, and hosts longer than 12 bytes (to keep the files small).
hosts() {
    find "$work" -name "$1" -path '*easylist*' -exec cat {} + |
        awk '/^! \*\*\* / { adult = /_adult/ } !adult' |
        LC_ALL=C grep -oP '^\|\|\K[a-z0-9-]+(\.[a-z0-9-]+)+(?=[\^/$:])' |
        awk 'length($0) <= 12'
}
hosts easylist.txt > "$here/a.txt"
hosts easyprivacy.txt > "$here/b.txt"
(cd "$here" && sha256sum a.txt b.txt)
