# The proxy Squid, as Debian packs it.
debian squid squid squid-common squid-langpack libecap3 libltdl7 libnetfilter-conntrack3 libnfnetlink0
command_named squid <<< "SQUID=$PEERS/debian/squid PYTHONPATH=$ROOT/peers PYTHONDONTWRITEBYTECODE=1 exec python3 $HERE/peer.py \"\$@\""
