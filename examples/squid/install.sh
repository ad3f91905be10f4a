# The proxy Squid: Debian's package, unpacked into target/peers/debian/squid. Root is not needed.
HERE=$ROOT/peers/squid
. "$HERE/install.sh"
