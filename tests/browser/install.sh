#!/usr/bin/env bash
# Installs what the browser tests need: tests/browser/install.sh DIR. Chromium and its driver are Debian's, installed
# as root if they are missing; the Python packages go into the environment DIR.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[ $# -eq 1 ] || { echo "usage: tests/browser/install.sh DIR" >&2; exit 2; }
DIR=$1

installed() { command -v chromium > /dev/null && command -v chromedriver > /dev/null; }
# The tests also look at Chinese pages, whose letters need a font.
fonts() { [ -n "$(fc-list :lang=zh-cn family 2> /dev/null)" ]; }
if ! installed || ! fonts; then
    packages=(chromium chromium-driver fonts-wqy-microhei)
    if [ "$(id -u)" != 0 ] || ! command -v apt-get > /dev/null; then
        installed || { echo "install.sh: no chromium and chromedriver; install them, as root: apt-get install ${packages[*]}" >&2; exit 1; }
    else
        echo "installing ${packages[*]}" >&2
        mkdir -p "$DIR"
        { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${packages[@]}"; } \
            > "$DIR/apt.log" 2>&1 || { tail -n 20 "$DIR/apt.log" >&2; echo "install.sh: apt-get failed" >&2; exit 1; }
    fi
fi

PYTHON=${PETAL_PYTHON:-python3}
[ -x "$DIR/bin/python" ] || "$PYTHON" -m venv "$DIR"
sum=$(sha256sum < "$HERE/requirements.txt" | cut -c1-16)
[ -e "$DIR/done-$sum" ] || {
    "$DIR/bin/python" -m pip --quiet --disable-pip-version-check install -r "$HERE/requirements.txt"
    : > "$DIR/done-$sum"
}
