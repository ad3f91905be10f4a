#!/usr/bin/env bash
# Compiles the reader for Java, `target/java/petal.jar`, and with --test runs its tests:
#     java/build.sh [--test]
# The JDK is the one on the PATH, or Debian's; JUnit is Debian's. The tests of docs/guides/java.md need the program,
# whose path is PETAL, and Spark, in SPARK_HOME or target/python/spark; otherwise they are left out.
set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
HERE=$ROOT/java OUT=$ROOT/target/java
PEERS=${PETAL_PEERS:-$OUT}
. "$ROOT/peers/lib.sh"
. "$ROOT/peers/java.sh"
cd "$ROOT"
find_jdk
rm -rf "$OUT"/{classes,tests}
"$JDK/javac" --release 11 -Xlint:all -Xdoclint:all,-missing -Werror -d "$OUT/classes" java/src/petal/*.java
{ cat java/manifest.mf; sed -n 's/^version = "\(.*\)"$/Implementation-Version: \1/p' Cargo.toml; } > "$OUT/manifest.mf"
"$JDK/jar" --create --file "$OUT/petal.jar" --date 1980-01-01T00:00:02Z --manifest "$OUT/manifest.mf" -C "$OUT/classes" .
[ "${1:-}" = --test ] || exit 0

debian junit junit4 libhamcrest-java
jars=$OUT/petal.jar:$PEERS/debian/junit/usr/share/java/junit4.jar:$PEERS/debian/junit/usr/share/java/hamcrest.jar
"$JDK/javac" --release 11 -Xlint:all -Werror -cp "$jars" -d "$OUT/tests" java/test/petal/*.java
spark=$(echo "$ROOT"/target/python/spark/lib/python3*/site-packages/pyspark)
[ -d "$spark" ] && export SPARK_HOME=${SPARK_HOME:-$spark} JAVA_HOME=${JDK%/bin}
"$JDK/java" -ea -Xmx1g -cp "$jars:$OUT/tests" org.junit.runner.JUnitCore petal.{Conformance,PetalFilter,Guide}Test
