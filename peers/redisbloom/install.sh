# RedisBloom: no package registry has it. PETAL_REDISBLOOM names its module (redisbloom.so) when the command runs; the
# redis-server is the peer `redis`. Without the module, tests leave this peer out.
command_named redisbloom <<< "PATH=$PEERS/bin:\$PATH PYTHONPATH=$ROOT/peers PYTHONDONTWRITEBYTECODE=1 exec python3 $HERE/peer.py \"\$@\""
