#!/usr/bin/env bash
# A Python environment with the package, built anew, and what its tests need:
#     crates/python/install.sh DIR [--profile NAME] [--engines]
# `DIR/bin/python` then has petal. Packages of others stay until the lists of them change. With --engines
# `DIR/spark/bin/python` has what docs/spark.md says to install, `petal[spark]`, and pytest to run its tests.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[ $# -ge 1 ] || { echo "usage: crates/python/install.sh DIR [--profile NAME] [--engines]" >&2; exit 2; }
DIR=$1 PROFILE=release ENGINES=no
shift
while [ $# -gt 0 ]; do
    case $1 in
        --profile) PROFILE=$2; shift 2 ;;
        --engines) ENGINES=yes; shift ;;
        *) echo "install.sh: no such option: $1" >&2; exit 2 ;;
    esac
done

PYTHON=${PETAL_PYTHON:-python3}
"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    { echo "install.sh: $PYTHON is $("$PYTHON" --version), 3.11 or newer is needed; set PETAL_PYTHON" >&2; exit 1; }
[ -x "$DIR/bin/python" ] || "$PYTHON" -m venv "$DIR"
DIR=$(cd "$DIR" && pwd)
pip() { "$DIR/bin/python" -m pip --quiet --disable-pip-version-check "$@"; }
sum=$(sha256sum < "$HERE/requirements.txt" | cut -c1-16)
[ -e "$DIR/done-$sum" ] || { pip install -r "$HERE/requirements.txt" && : > "$DIR/done-$sum"; }

rm -rf "$DIR/wheels"
(cd "$HERE" && "$DIR/bin/maturin" build --quiet --profile "$PROFILE" --interpreter "$DIR/bin/python" --out "$DIR/wheels")
pip install --force-reinstall --no-deps "$DIR"/wheels/petal-*.whl

# An environment of its own, so that a package which the extra lacks is missing in the tests, too.
if [ "$ENGINES" = yes ]; then
    SPARK=$DIR/spark LIST=$HERE/requirements-engines.txt
    sum=$(cat "$LIST" "$HERE/pyproject.toml" | sha256sum | cut -c1-16)
    spark_pip() { "$SPARK/bin/python" -m pip --quiet --disable-pip-version-check "$@"; }
    [ -e "$SPARK/done-$sum" ] || {
        "$PYTHON" -m venv --clear "$SPARK"
        spark_pip install --constraint "$LIST" "$(echo "$DIR"/wheels/petal-*.whl)[spark]" pytest pytest-timeout
        : > "$SPARK/done-$sum"
    }
    spark_pip install --force-reinstall --no-deps "$DIR"/wheels/petal-*.whl
    # Spark runs in a JVM, and its tests compile for it.
    PEERS=$DIR/jdk-files
    . "$HERE/../../peers/lib.sh"
    . "$HERE/../../peers/java.sh"
    find_jdk
    ln -sfn "$(dirname "$JDK")" "$SPARK/jdk"
fi
