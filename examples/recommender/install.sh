# Redis and RedisBloom's module, the peers of the same names.
HERE=$ROOT/peers/redis
. "$HERE/install.sh"
HERE=$ROOT/peers/redisbloom
. "$HERE/install.sh"
