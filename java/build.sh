#!/usr/bin/env bash
# Compiles the reader for Java, `target/java/petal.jar`, and with --test runs its tests:
#     java/build.sh [--test]
# The JDK is the one on the PATH, or Debian's; JUnit is Debian's. PETAL is the program that makes the files of
# docs/guides/java.md; without it the test of that page is left out.
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
PEERS=$ROOT/target/java HERE=$ROOT/java
. "$ROOT/peers/lib.sh"
. "$ROOT/peers/java.sh"
cd "$ROOT"
find_jdk
rm -rf "$PEERS/classes" "$PEERS/tests"
"$JDK/javac" --release 11 -Xlint:all -Xdoclint:all,-missing -Werror -d "$PEERS/classes" java/src/petal/*.java
"$JDK/jar" --create --file "$PEERS/petal.jar" --manifest java/manifest.mf -C "$PEERS/classes" .
[ "${1:-}" = --test ] || exit 0

debian junit junit4 libhamcrest-java
jars=$PEERS/petal.jar:$(echo "$PEERS"/debian/junit/usr/share/java/{junit4,hamcrest}.jar | tr ' ' :)
"$JDK/javac" --release 11 -Xlint:all -Werror -cp "$jars" -d "$PEERS/tests" java/test/petal/*.java
"$JDK/java" -ea -Xmx1g -cp "$jars:$PEERS/tests" org.junit.runner.JUnitCore \
    petal.ConformanceTest petal.PetalFilterTest petal.GuideTest
