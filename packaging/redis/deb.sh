#!/usr/bin/env bash
# Builds the Debian package of the server module: packaging/redis/deb.sh MODULE VERSION ARCHITECTURE FOLDER writes
# FOLDER/petal-redis_VERSION_ARCHITECTURE.deb. Needs dpkg-deb. The same files give the same bytes.
set -euo pipefail
[ $# -eq 4 ] || { echo "usage: packaging/redis/deb.sh MODULE VERSION ARCHITECTURE FOLDER" >&2; exit 2; }
module=$1 version=$2 architecture=$3 folder=$4
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$here/../..
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT

# put MODE FILE PATH: copies a file into the package.
put() { install -D -m "$1" "$2" "$stage$3"; }
# The server loads only modules with the permission to execute them.
put 755 "$module" /usr/lib/redis/modules/libpetal_redis.so
for service in redis-server valkey-server; do
    put 644 "$here/archive/systemd/petal.conf" "/usr/lib/systemd/system/$service.service.d/petal.conf"
done
put 644 "$here/archive/petal.conf" /usr/share/petal-redis/petal.conf
for file in "$here"/archive/monitoring/*; do
    put 644 "$file" "/usr/share/petal-redis/monitoring/${file##*/}"
done
put 644 "$here/debian/README.Debian" /usr/share/doc/petal-redis/README.Debian
put 644 "$here/debian/copyright" /usr/share/doc/petal-redis/copyright
put 644 "$top/LICENSE-MIT" /usr/share/doc/petal-redis/LICENSE-MIT
put 644 "$top/LICENSE-APACHE" /usr/share/doc/petal-redis/LICENSE-APACHE
mkdir "$stage/DEBIAN"
size=$(du --summarize --apparent-size --block-size=1024 "$stage" | cut -f1)
cat > "$stage/DEBIAN/control" <<CONTROL
Package: petal-redis
Version: $version
Architecture: $architecture
Maintainer: The petal authors
Installed-Size: $size
Depends: libc6 (>= 2.17), libgcc-s1
Recommends: redis-server (>= 5:7.0) | valkey-server (>= 8)
Section: database
Priority: optional
Description: Bloom filters and related filters for Redis and Valkey
 A module for Redis 7.0 or later and Valkey 8 or later: Bloom filters that grow,
 forget and delete, with the commands of RedisBloom (BF.* and CF.*) and of petal
 (PETAL.*). README.Debian describes how to load it.
CONTROL
chmod -R u=rwX,go=rX "$stage"
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-315532800}
find "$stage" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
dpkg-deb --root-owner-group -Zxz -z1 --build "$stage" "$folder/petal-redis_${version}_$architecture.deb" > /dev/null
