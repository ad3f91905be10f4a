# What the install scripts of the Java peers share: a JDK, the jars, and how a peer becomes a command.
# The jars come out of pyspark's source package, which holds nearly all of Spark's world.

PYSPARK=4.1.1

# Whether JDK has what we need.
jdk_runs() {
    "$JDK/java" -version > /dev/null 2>&1 && "$JDK/javac" --release 17 -version > /dev/null 2>&1
}

# Sets JDK to the folder of the programs of a JDK, 17 or newer: the one on the PATH, or else Debian's, unpacked.
find_jdk() {
    JDK=$(dirname "$(readlink -f "$(command -v javac)")")
    jdk_runs && return
    debian jdk openjdk-17-jre-headless openjdk-17-jdk-headless
    # Its configuration is linked to by absolute paths.
    find "$PEERS/debian/jdk/usr/lib/jvm" -lname '/etc/*' \
        -exec sh -c 'ln -sfn "$0$(readlink "$1")" "$1"' "$PEERS/debian/jdk" {} \;
    JDK=$(echo "$PEERS"/debian/jdk/usr/lib/jvm/java-17-openjdk-*/bin)
    jdk_runs || { say "no JDK 17 or newer, and Debian's does not run here"; exit 1; }
}

# The jars of all Java peers, in $PEERS/jars.
fetch_jars() {
    once_done "pyspark-$PYSPARK" && return
    python_env
    say "fetching pyspark $PYSPARK for its jars (455 MB)"
    rm -rf "$PEERS/jars" && mkdir -p "$PEERS/jars/sdist"
    "$PEERS/python/bin/python" -m pip download --quiet --disable-pip-version-check --no-cache-dir --no-deps \
        --dest "$PEERS/jars/sdist" "pyspark==$PYSPARK"
    tar -xzf "$PEERS/jars/sdist/pyspark-$PYSPARK.tar.gz" -C "$PEERS/jars" --strip-components 3 --wildcards \
        "*/deps/jars/"{guava,failureaccess,spark-sketch_2.13,hadoop-client-api,datasketches,slf4j-api}-*.jar \
        "*/deps/jars/parquet-"{column,common,format-structures}-*.jar
    rm -rf "$PEERS/jars/sdist"
    once_mark "pyspark-$PYSPARK"
}

# A peer from its class: java_peer NAME CLASS; the source is CLASS.java in its folder.
java_peer() {
    local name=$1 class=$2 sum
    find_jdk
    fetch_jars
    sum=$(cat "$ROOT/peers/Peer.java" "$HERE/$class.java" | sha256sum | cut -c1-16)
    once_done "java-$name-$sum" || {
        say "compiling $name"
        mkdir -p "$PEERS/classes"
        "$JDK/javac" --release 17 -Xlint:-classfile -d "$PEERS/classes" -cp "$PEERS/jars/*" \
            "$ROOT/peers/Peer.java" "$HERE/$class.java"
        once_mark "java-$name-$sum"
    }
    # Such runs are short: no second compiler. A log has nowhere to go, and need not say so.
    command_named "$name" <<SCRIPT
exec "$JDK/java" -Xshare:auto -XX:TieredStopAtLevel=1 -Dslf4j.internal.verbosity=ERROR \\
    -cp "$PEERS/classes:$PEERS/jars/*" $class "\$@"
SCRIPT
}
