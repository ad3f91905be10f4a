# Redis, as Debian packs it: the server that loads petal's module, its command line, its benchmark. It speaks for itself,
# so the three commands are not those of peers/README.md. redis-py, a client, comes with the other Python packages.
debian redis redis-server redis-tools libatomic1 libhiredis0.14 libjemalloc2 liblua5.1-0 liblzf1 lua-bitop lua-cjson
libraries=$PEERS/debian/redis/usr/lib/$(uname -m)-linux-gnu
for name in redis-server redis-cli redis-benchmark; do
    command_named "$name" <<< "LD_LIBRARY_PATH=$libraries exec $PEERS/debian/redis/usr/bin/$name \"\$@\""
done
python_env
