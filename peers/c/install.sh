# Debian's tools for the tests of libpetal, as DIR/bin/clang, clang++, cmake and valgrind.
debian c clang-14 libclang-cpp14 libllvm14 libclang-common-14-dev libz3-4 \
    cmake cmake-data libarchive13 libjsoncpp25 librhash0 libuv1 valgrind
usr=$PEERS/debian/c/usr
libraries=$(echo "$usr"/lib/*-linux-gnu):$usr/lib/llvm-14/lib
for program in lib/llvm-14/bin/clang lib/llvm-14/bin/clang++ bin/cmake; do
    command_named "$(basename "$program")" <<< "LD_LIBRARY_PATH=$libraries exec $usr/$program \"\$@\""
done
command_named valgrind <<< "VALGRIND_LIB=$usr/libexec/valgrind exec $usr/bin/valgrind \"\$@\""
