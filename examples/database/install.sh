# PostgreSQL's server, Debian's package of version 15, with the libraries that a small system may lack.
debian postgresql postgresql-15 postgresql-client-15 libpq5 libicu72 libxml2 libldap-2.5-0 libsasl2-2 \
    libgssapi-krb5-2 libkrb5-3 libk5crypto3 libkrb5support0 libkeyutils1
