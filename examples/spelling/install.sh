# Debian's word lists, and Hunspell with its dictionaries.
debian spelling hunspell libhunspell-1.7-0 libreadline8 hunspell-en-us hunspell-en-gb \
    wamerican-small wamerican wamerican-large wbritish-small wbritish wbritish-large
root=$PEERS/debian/spelling
libraries=$root/usr/lib/$(uname -m)-linux-gnu:$root/lib/$(uname -m)-linux-gnu
command_named hunspell <<< "LD_LIBRARY_PATH=$libraries exec $root/usr/bin/hunspell \"\$@\""
