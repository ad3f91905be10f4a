#!/usr/bin/env bash
# A Python environment with the package, built anew, and what its tests need:
#     crates/python/install.sh DIR [--profile NAME] [--engines]
# `DIR/bin/python` then has petal. Packages of others stay until the lists of them change.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[ $# -ge 1 ] || { echo "usage: crates/python/install.sh DIR [--profile NAME] [--engines]" >&2; exit 2; }
DIR=$1 PROFILE=release ENGINES=no LISTS=("$HERE/requirements.txt")
shift
while [ $# -gt 0 ]; do
    case $1 in
        --profile) PROFILE=$2; shift 2 ;;
        --engines) ENGINES=yes LISTS+=("$HERE/requirements-engines.txt"); shift ;;
        *) echo "install.sh: no such option: $1" >&2; exit 2 ;;
    esac
done

PYTHON=${PETAL_PYTHON:-python3}
"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    { echo "install.sh: $PYTHON is $("$PYTHON" --version), 3.11 or newer is needed; set PETAL_PYTHON" >&2; exit 1; }
[ -x "$DIR/bin/python" ] || "$PYTHON" -m venv "$DIR"
DIR=$(cd "$DIR" && pwd)
pip() { "$DIR/bin/python" -m pip --quiet --disable-pip-version-check "$@"; }
for list in "${LISTS[@]}"; do
    sum=$(sha256sum < "$list" | cut -c1-16)
    [ -e "$DIR/done-$sum" ] || { pip install -r "$list" && : > "$DIR/done-$sum"; }
done

# Spark runs in a JVM, and its tests compile for it.
if [ "$ENGINES" = yes ]; then
    PEERS=$DIR/jdk-files
    . "$HERE/../../peers/lib.sh"
    . "$HERE/../../peers/java.sh"
    find_jdk
    ln -sfn "$(dirname "$JDK")" "$DIR/jdk"
fi

rm -rf "$DIR/wheels"
(cd "$HERE" && "$DIR/bin/maturin" build --quiet --profile "$PROFILE" --interpreter "$DIR/bin/python" --out "$DIR/wheels")
pip install --force-reinstall --no-deps "$DIR"/wheels/petal-*.whl
