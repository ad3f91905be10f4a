# Clients of the page docs/guides/redis-migrate.md, beside redis-py of the Python packages: redis and ioredis for Node,
# redigo for Go (Debian's packages). DIR/clients/bin has the commands `python`, `node` and `go` for its programs,
# DIR/clients/node_modules the packages of Node.
NODE_PACKAGES="redis@6.3.1 ioredis@6.0.0"
home=$PEERS/clients

. "$ROOT/peers/node.sh"
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
