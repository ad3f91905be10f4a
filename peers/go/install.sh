# Debian's Go for the tests of the package in `go`: DIR/go/bin/go and DIR/go/bin/gofmt. It downloads no modules.
. "$ROOT/peers/go.sh"
find_go
mkdir -p "$PEERS/go/bin"
for program in go gofmt; do
    command_named "../go/bin/$program" <<SCRIPT
export GOROOT=$GOROOT GOCACHE=$PEERS/debian/go/cache GOPATH=$PEERS/go/path GOFLAGS= GOPROXY=off
exec $GOROOT/bin/$program "\$@"
SCRIPT
done
