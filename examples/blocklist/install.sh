# Debian's packages, unpacked: the mail server Postfix, the DNS resolver Unbound with its Python module and the Python
# library that it runs, and the lists of uBlock Origin. Nothing is written outside of target/, and no user is made;
# only starting Postfix needs root.
debian blocklist postfix unbound python3-unbound webext-ublock-origin-firefox \
    libdb5.3 libevent-2.1-7 libicu72 libnghttp2-14 libnsl2 libprotobuf-c1 libpython3.11 libpython3.11-minimal \
    libpython3.11-stdlib libsasl2-2
