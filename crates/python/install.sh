#!/usr/bin/env bash
# Builds the Python package and installs it with the packages of its tests into an environment:
#     crates/python/install.sh DIR [--profile NAME] [--engines] [--without-petal]
# `DIR/bin/python` then has petal, built with the profile `dist` unless another one is named. Other packages are
# installed again only if their list changes. With --engines, `DIR/spark/bin/python` has `petal-filters[spark,connect]`,
# as in docs/guides/spark.md, and pytest. With --without-petal, only what other projects publish is installed or
# downloaded: this needs no compiler and can run beside one.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[ $# -ge 1 ] || { echo "usage: crates/python/install.sh DIR [--profile NAME] [--engines]" >&2; exit 2; }
DIR=$1 PROFILE=dist ENGINES=no PETAL=yes
shift
while [ $# -gt 0 ]; do
    case $1 in
        --profile) PROFILE=$2; shift 2 ;;
        --engines) ENGINES=yes; shift ;;
        --without-petal) PETAL=no; shift ;;
        *) echo "install.sh: unknown option: $1" >&2; exit 2 ;;
    esac
done

PYTHON=${PETAL_PYTHON:-python3}
"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    { echo "install.sh: $PYTHON is $("$PYTHON" --version), expected 3.11 or newer; set PETAL_PYTHON" >&2; exit 1; }
[ -x "$DIR/bin/python" ] || "$PYTHON" -m venv "$DIR"
DIR=$(cd "$DIR" && pwd)
pip() { "$DIR/bin/python" -m pip --quiet --disable-pip-version-check "$@"; }
sum=$(sha256sum < "$HERE/requirements.txt" | cut -c1-16)
[ -e "$DIR/done-$sum" ] || { pip install -r "$HERE/requirements.txt" && : > "$DIR/done-$sum"; }

if [ "$ENGINES" = yes ]; then
    SPARK=$DIR/spark LIST=$HERE/requirements-engines.txt
    spark_sum=$(cat "$LIST" "$HERE/pyproject.toml" | sha256sum | cut -c1-16)
    [ -e "$SPARK/done-$spark_sum" ] || [ -e "$DIR/downloads/done-$spark_sum" ] || {
        rm -rf "$DIR/downloads"
        pip wheel --constraint "$LIST" --wheel-dir "$DIR/downloads" "pyspark[connect,sql]" pytest pytest-timeout
        : > "$DIR/downloads/done-$spark_sum"
    }
    # Spark needs a JVM, and its tests compile for it.
    PEERS=$DIR/jdk-files
    . "$HERE/../../peers/lib.sh"
    . "$HERE/../../peers/java.sh"
    find_jdk
fi
[ "$PETAL" = yes ] || exit 0

rm -rf "$DIR/wheels"
(cd "$HERE" && "$DIR/bin/maturin" build --quiet --profile "$PROFILE" --interpreter "$DIR/bin/python" --out "$DIR/wheels")
pip install --force-reinstall --no-deps "$DIR"/wheels/petal_filters-*.whl

# A separate environment, so that tests fail if the extra lacks a package.
if [ "$ENGINES" = yes ]; then
    spark_pip() { "$SPARK/bin/python" -m pip --quiet --disable-pip-version-check "$@"; }
    [ -e "$SPARK/done-$spark_sum" ] || {
        "$PYTHON" -m venv --clear "$SPARK"
        spark_pip install --constraint "$LIST" --find-links "$DIR/downloads" "$(echo "$DIR"/wheels/petal_filters-*.whl)[spark,connect]" pytest pytest-timeout
        : > "$SPARK/done-$spark_sum"
        rm -rf "$DIR/downloads"
    }
    spark_pip install --force-reinstall --no-deps "$DIR"/wheels/petal_filters-*.whl
    ln -sfn "$(dirname "$JDK")" "$SPARK/jdk"
fi
