# Redis, Debian's package: the server that loads petal's module, its command line and its benchmark. The three commands
# are Redis' own, not those of peers/README.md. The client redis-py is one of the Python packages.
debian redis redis-server redis-tools libatomic1 libhiredis0.14 libjemalloc2 liblua5.1-0 liblzf1 lua-bitop lua-cjson
libraries=$PEERS/debian/redis/usr/lib/$(uname -m)-linux-gnu
for name in redis-server redis-cli redis-benchmark; do
    command_named "$name" <<< "LD_LIBRARY_PATH=$libraries exec $PEERS/debian/redis/usr/bin/$name \"\$@\""
done
python_env
