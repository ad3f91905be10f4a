# RedisBloom: no package registry has it. PETAL_REDISBLOOM names its module (redisbloom.so) when the command runs, and
# redis-server and Python are those of the machine. Without it, tests leave this peer out.
command_named redisbloom <<< "PYTHONPATH=$ROOT/peers PYTHONDONTWRITEBYTECODE=1 exec python3 $HERE/peer.py \"\$@\""
