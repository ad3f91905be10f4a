#!/usr/bin/env bash
# Installs what examples need: examples/install.sh DIR PROFILE [NAME...]. The Python package, built with the profile,
# and the packages of requirements.txt go into the environment DIR; the counterparts of the named examples into
# target/peers. Without names: those of all examples. With the profile `none`, petal is not built: this needs no compiler
# of Rust and can run beside one.
set -euo pipefail
[ $# -ge 2 ] || { echo "usage: examples/install.sh DIR PROFILE [NAME...]" >&2; exit 2; }
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
DIR=$1 PROFILE=$2
shift 2
[ $# -gt 0 ] || set -- $(cd "$ROOT/examples" && for folder in */; do echo "${folder%/}"; done)

needs_python() { for name in "$@"; do [ ! -e "$ROOT/examples/$name/main.py" ] || return 0; done; return 1; }
PYTHON=${PETAL_PYTHON:-python3}
[ -x "$DIR/bin/python" ] || "$PYTHON" -m venv "$DIR"
DIR=$(cd "$DIR" && pwd)
pip() { "$DIR/bin/python" -m pip --quiet --disable-pip-version-check "$@"; }
sum=$(sha256sum < "$ROOT/examples/requirements.txt" | cut -c1-16)
[ -e "$DIR/done-$sum" ] || { pip install -r "$ROOT/examples/requirements.txt" && : > "$DIR/done-$sum"; }
if [ "$PROFILE" != none ] && needs_python "$@"; then
    rm -rf "$DIR/wheels"
    (cd "$ROOT/crates/python" &&
        "$DIR/bin/maturin" build --quiet --profile "$PROFILE" --interpreter "$DIR/bin/python" --out "$DIR/wheels")
    pip install --force-reinstall --no-deps "$DIR"/wheels/petal_filters-*.whl
fi

mkdir -p "$ROOT/target/peers"
PEERS=$(cd "$ROOT/target/peers" && pwd)
for name in "$@"; do
    HERE=$ROOT/examples/$name
    [ ! -e "$HERE/install.sh" ] || ( . "$ROOT/peers/lib.sh"; . "$HERE/install.sh" )
done
