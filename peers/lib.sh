# Shared by the install scripts of all peers. Sourced with PEERS (the target folder) and HERE (the peer's folder).

set -euo pipefail

# Prints a message.
say() { printf 'peers: %s\n' "$*" >&2; }

# Succeeds if the step with this key was done before; the key changes with the step.
once_done() { [ -e "$PEERS/done/$1" ]; }
once_mark() { mkdir -p "$PEERS/done" && : > "$PEERS/done/$1"; }

# Unpacks Debian packages into $PEERS/debian/NAME: debian NAME PACKAGE...
# Root is needed only if the package lists were never downloaded.
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

# Makes the virtual environment of all peers, $PEERS/python.
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

# Makes a command in $PEERS/bin from a script on standard input: command_named NAME.
command_named() {
    mkdir -p "$PEERS/bin"
    { printf '#!/usr/bin/env bash\nset -euo pipefail\n' && cat; } > "$PEERS/bin/$1"
    chmod +x "$PEERS/bin/$1"
}

# Makes the command of $HERE/peer.py: python_peer NAME.
python_peer() {
    python_env
    command_named "$1" <<< "PYTHONPATH=$ROOT/peers PYTHONDONTWRITEBYTECODE=1 exec $PEERS/python/bin/python $HERE/peer.py \"\$@\""
}
