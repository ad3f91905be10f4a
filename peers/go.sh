# Shared by the install scripts of the peers in Go: Debian's Go 1.19, which is unpacked.

# Fetches Go, and sets GOROOT to its folder.
find_go() {
    debian go golang-1.19-go golang-1.19-src
    GOROOT=$PEERS/debian/go/usr/lib/go-1.19
}

# Makes a command that runs Go with Debian's packages in a folder: go_command NAME FOLDER.
go_command() {
    command_named "$1" <<SCRIPT
export GO111MODULE=off GOFLAGS= CGO_ENABLED=0
export GOPATH=$2/usr/share/gocode GOROOT=$GOROOT GOCACHE=$PEERS/debian/go/cache
exec $GOROOT/bin/go "\$@"
SCRIPT
}
