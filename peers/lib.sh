# What the install scripts of all peers share. Sourced with PEERS (where to install to) and HERE (the peer's folder).

set -euo pipefail

# Says what is going on.
say() { printf 'peers: %s\n' "$*" >&2; }

# Whether a step with these words was done before; the words change when the step does.
once_done() { [ -e "$PEERS/done/$1" ]; }
once_mark() { mkdir -p "$PEERS/done" && : > "$PEERS/done/$1"; }

# Debian packages, unpacked into a folder of their own: debian NAME PACKAGE...
# Leaves them in $PEERS/debian/NAME. Needs no root, unless the lists of packages were never fetched.
debian() {
    local name=$1 dir=$PEERS/debian/$1
    shift
    once_done "debian-$name" && return
    say "fetching $*"
    rm -rf "$dir" && mkdir -p "$dir/deb"
    (cd "$dir/deb" && { apt-get download "$@" > log 2>&1 || { apt-get update > log 2>&1 && apt-get download "$@" > log 2>&1; } ||
        { cat log >&2; say "cannot fetch the Debian packages $*"; exit 1; }; })
    for deb in "$dir"/deb/*.deb; do dpkg -x "$deb" "$dir"; done
    rm -rf "$dir/deb"
    once_mark "debian-$name"
}

# Python packages in one environment for all peers: python_env; then $PEERS/python/bin/python.
python_env() {
    local sum
    sum=$(sha256sum < "$ROOT/peers/requirements.txt" | cut -c1-16)
    once_done "python-$sum" && return
    say "making a Python environment"
    rm -rf "$PEERS/python"
    python3 -m venv "$PEERS/python"
    "$PEERS/python/bin/python" -m pip install --quiet --disable-pip-version-check -r "$ROOT/peers/requirements.txt"
    once_mark "python-$sum"
}

# A command in $PEERS/bin: command NAME, with its script on standard input.
command_named() {
    mkdir -p "$PEERS/bin"
    { printf '#!/usr/bin/env bash\nset -euo pipefail\n' && cat; } > "$PEERS/bin/$1"
    chmod +x "$PEERS/bin/$1"
}

# The command of a peer written in Python: python_peer NAME, with the program in $HERE/peer.py.
python_peer() {
    python_env
    command_named "$1" <<< "PYTHONPATH=$ROOT/peers PYTHONDONTWRITEBYTECODE=1 exec $PEERS/python/bin/python $HERE/peer.py \"\$@\""
}
