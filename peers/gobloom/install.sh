# The Go library bits-and-blooms/bloom from Debian's package, compiled with Debian's Go.
debian gobloom golang-1.19-go golang-1.19-src golang-github-willf-bloom-dev golang-github-bits-and-blooms-bitset-dev
root=$PEERS/debian/gobloom
version=$(zcat "$root/usr/share/doc/golang-github-willf-bloom-dev/changelog.Debian.gz" | sed -n '1s/.*(\(.*\)).*/\1/p')
GO111MODULE=off GOPATH=$root/usr/share/gocode GOROOT=$root/usr/lib/go-1.19 GOCACHE=$root/cache CGO_ENABLED=0 \
    nice -n 5 "$root/usr/lib/go-1.19/bin/go" build -o "$root/gobloom" "$HERE/main.go"
command_named gobloom <<SCRIPT
[ "\${1:-}" = version ] && { echo "bits-and-blooms/bloom $version"; exit; }
exec $root/gobloom "\$@"
SCRIPT
