# Prometheus, its promtool, and the Prometheus exporter for Redis, Debian's packages. The commands are their own, not those
# of peers/README.md.
debian prometheus prometheus prometheus-redis-exporter
for name in prometheus promtool prometheus-redis-exporter; do
    command_named "$name" <<< "exec $PEERS/debian/prometheus/usr/bin/$name \"\$@\""
done
