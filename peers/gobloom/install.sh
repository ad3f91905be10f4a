# The Go library bits-and-blooms/bloom from Debian's package, compiled with Debian's Go.
. "$ROOT/peers/go.sh"
find_go
debian gobloom golang-github-willf-bloom-dev golang-github-bits-and-blooms-bitset-dev
root=$PEERS/debian/gobloom
version=$(zcat "$root/usr/share/doc/golang-github-willf-bloom-dev/changelog.Debian.gz" | sed -n '1s/.*(\(.*\)).*/\1/p')
go_command gobloom-go "$root"
nice -n 5 "$PEERS/bin/gobloom-go" build -o "$root/gobloom" "$HERE/main.go"
command_named gobloom <<SCRIPT
[ "\${1:-}" = version ] && { echo "bits-and-blooms/bloom $version"; exit; }
exec $root/gobloom "\$@"
SCRIPT
