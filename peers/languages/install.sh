# Filters that `cargo x bench languages` compares with: bloom-filters for Node, and libbloom for C (Debian's packages).
# DIR/languages has node_modules.
. "$ROOT/peers/node.sh"
find_node
debian libbloom libbloom1 libbloom-dev
package=bloom-filters@3.0.4
once_done "languages-$package" || {
    say "fetching $package"
    rm -rf "$PEERS/languages" && mkdir -p "$PEERS/languages"
    npm install --prefix "$PEERS/languages" --silent --no-audit --no-fund --no-save --ignore-scripts "$package"
    once_mark "languages-$package"
}
