#!/usr/bin/env bash
# Installs peers into a folder: peers/install.sh DIR [PEER...]. Default: all peers.
set -euo pipefail
[ $# -ge 1 ] || { echo "usage: peers/install.sh DIR [PEER...]" >&2; exit 2; }
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
mkdir -p "$1"
PEERS=$(cd "$1" && pwd)
shift
[ $# -gt 0 ] || set -- $(cd "$ROOT/peers" && for script in */install.sh; do dirname "$script"; done)
for peer in "$@"; do
    HERE=$ROOT/peers/$peer
    ( . "$ROOT/peers/lib.sh"; . "$HERE/install.sh" )
done
