#!/usr/bin/env bash
# Builds the Debian package of the server module: packaging/redis/deb.sh MODULE VERSION ARCHITECTURE FOLDER writes
# FOLDER/petal-redis_VERSION_ARCHITECTURE.deb.
set -euo pipefail
[ $# -eq 4 ] || { echo "usage: packaging/redis/deb.sh MODULE VERSION ARCHITECTURE FOLDER" >&2; exit 2; }
module=$1 version=$2 architecture=$3 folder=$4
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../debian.sh"

# The server loads only modules with the permission to execute them.
put petal-redis 755 "$module" /usr/lib/redis/modules/libpetal_redis.so
for service in redis-server valkey-server; do
    put petal-redis 644 "$here/archive/systemd/petal.conf" "/usr/lib/systemd/system/$service.service.d/petal.conf"
done
put petal-redis 644 "$here/archive/petal.conf" /usr/share/petal-redis/petal.conf
for file in "$here"/archive/monitoring/*; do
    put petal-redis 644 "$file" "/usr/share/petal-redis/monitoring/${file##*/}"
done
put petal-redis 644 "$here/debian/README.Debian" /usr/share/doc/petal-redis/README.Debian
pack petal-redis "$version" "$architecture" "$folder" <<CONTROL
Depends: libc6 (>= 2.17), libgcc-s1
Recommends: redis-server (>= 5:7.0) | valkey-server (>= 8)
Section: database
Priority: optional
Description: Bloom filters and related filters for Redis and Valkey
 A module for Redis 7.0 or later and Valkey 8 or later: Bloom filters that grow,
 forget and delete, with the commands of RedisBloom (BF.* and CF.*) and of petal
 (PETAL.*). README.Debian describes how to load it.
CONTROL
