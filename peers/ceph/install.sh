# Ceph's Object Gateway, Debian's packages: the S3-compatible server of the tests of object storage. `ceph-s3` is not one
# of the commands of peers/README.md: its head tells how it is used.
ceph_packages() {
    apt-get install -s --no-install-recommends ceph-base ceph-common ceph-mon ceph-osd radosgw | awk '/^Inst/{print $2}'
}
once_done debian-ceph || packages=$(ceph_packages) || { apt-get update > /dev/null && packages=$(ceph_packages); }
debian ceph ${packages-}
mkdir -p "$PEERS/bin"
{ printf '#!/usr/bin/env bash\nROOT=%q\n' "$PEERS/debian/ceph" && cat "$HERE/ceph-s3.sh"; } > "$PEERS/bin/ceph-s3"
chmod +x "$PEERS/bin/ceph-s3"
