# Azurite, Microsoft's emulator of Azure Blob Storage: the server of the tests of az:// (crates/cli/tests/objects). The
# command `azurite-blob PORT` is not one of those of peers/README.md. AZURITE_ACCOUNTS has its account: NAME:KEY.
VERSION=3.37.0
home=$PEERS/azurite
. "$ROOT/peers/object-server.sh"
. "$ROOT/peers/node.sh"
find_node
once_done "azurite-$VERSION" || {
    say "fetching azurite $VERSION"
    rm -rf "$home" && mkdir -p "$home"
    npm install --prefix "$home" --silent --no-audit --no-fund --no-save --ignore-scripts --omit=optional "azurite@$VERSION"
    # Two thirds of the space are not for running.
    find "$home" -type f \( -name '*.map' -o -name '*.d.ts' \) -delete
    once_mark "azurite-$VERSION"
}
object_server azurite-blob 'http://127.0.0.1:$PORT/' \
    "$(command -v node)" "$home/node_modules/azurite/dist/src/blob/main.js" --blobHost 127.0.0.1 --blobPort '$PORT' \
    --inMemoryPersistence --silent --disableTelemetry --skipApiVersionCheck
