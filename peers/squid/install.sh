# The proxy Squid, Debian's package. Its peer needs no Python package.
debian squid squid squid-common squid-langpack libecap3 libltdl7 libnetfilter-conntrack3 libnfnetlink0
root=$PEERS/debian/squid
version=$(zcat "$root/usr/share/doc/squid/changelog.Debian.gz" | sed -n '1s/.*(\(.*\)).*/\1/p')
command_named squid <<< "SQUID=$root SQUID_VERSION=$version PYTHONPATH=$ROOT/peers PYTHONDONTWRITEBYTECODE=1 exec python3 $HERE/peer.py \"\$@\""
