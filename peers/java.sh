# Shared by the install scripts of the Java peers: JDK, jars, and commands.
# The jars are from pyspark's source package, which contains most of Spark's dependencies.

PYSPARK=4.1.1

# Succeeds if the JDK works and is new enough.
jdk_runs() {
    "$JDK/java" -version > /dev/null 2>&1 && "$JDK/javac" --release 17 -version > /dev/null 2>&1
}

# Sets JDK to the bin folder of a JDK 17 or newer: the one on the PATH, otherwise Debian's, which is unpacked.
find_jdk() {
    JDK=$(dirname "$(readlink -f "$(command -v javac)")")
    jdk_runs && return
    debian jdk openjdk-17-jre-headless openjdk-17-jdk-headless
    # Its configuration files are absolute symbolic links.
    find "$PEERS/debian/jdk/usr/lib/jvm" -lname '/etc/*' \
        -exec sh -c 'ln -sfn "$0$(readlink "$1")" "$1"' "$PEERS/debian/jdk" {} \;
    JDK=$(echo "$PEERS"/debian/jdk/usr/lib/jvm/java-17-openjdk-*/bin)
    jdk_runs || { say "no JDK 17 or newer, and Debian's does not run on this machine"; exit 1; }
}

# Downloads the jars of all Java peers to $PEERS/jars.
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

# Compiles CLASS.java of the peer's folder and makes its command: java_peer NAME CLASS.
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
    # The optimizing compiler is off because runs are short; SLF4J's warning about a missing logger is off.
    command_named "$name" <<SCRIPT
exec "$JDK/java" -Xshare:auto -XX:TieredStopAtLevel=1 -Dslf4j.internal.verbosity=ERROR \\
    -cp "$PEERS/classes:$PEERS/jars/*" $class "\$@"
SCRIPT
}
