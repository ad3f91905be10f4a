# ceph-s3 DIR MONITOR_PORT PORT TLS_PORT: a Ceph cluster of one monitor, one OSD in memory and an Object Gateway, in the
# empty folder DIR. Prints "ready" when it serves http://127.0.0.1:PORT and https://127.0.0.1:TLS_PORT, which has the
# certificate DIR/cert.pem, signed by itself. Its user has the access key PETALKEY and the secret key PETALSECRET. Ends, and
# removes DIR, when standard input ends.
set -euo pipefail
dir=$1 monitor=v1:127.0.0.1:$2
libraries=$ROOT/usr/lib/$(uname -m)-linux-gnu
export LD_LIBRARY_PATH=$libraries:$libraries/ceph:$ROOT/lib/$(uname -m)-linux-gnu CEPH_CONF=$dir/ceph.conf
export PYTHONPATH=$ROOT/usr/lib/python3/dist-packages PATH=$ROOT/usr/bin:$PATH
trap 'kill $(jobs -p) 2>/dev/null; wait; rm -rf "$dir"' EXIT
exec 3>&1 > "$dir/output" 2>&1

env -u LD_LIBRARY_PATH openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 \
    -addext subjectAltName=IP:127.0.0.1 -addext basicConstraints=critical,CA:FALSE \
    -keyout "$dir/key.pem" -out "$dir/cert.pem"
tls="ssl_endpoint=127.0.0.1:$4 ssl_certificate=$dir/cert.pem ssl_private_key=$dir/key.pem"
cat > "$CEPH_CONF" << CONF
[global]
fsid = 7f000001-0000-4000-8000-000000000001
mon_host = $monitor
public_addr = 127.0.0.1
cluster_addr = 127.0.0.1
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
run_dir = $dir
admin_socket =
log_file = $dir/\$name.log
mon_cluster_log_file = $dir/cluster.log
mon_data = $dir/mon
mon_data_avail_warn = 0
mon_data_avail_crit = 0
osd_data = $dir/osd
osd_objectstore = memstore
memstore_device_bytes = 4294967296
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_pool_default_pg_num = 4
osd_pool_default_pgp_num = 4
osd_pool_default_pg_autoscale_mode = off
osd_crush_chooseleaf_type = 0
mon_allow_pool_size_one = true
osd_class_dir = $libraries/rados-classes
plugin_dir = $libraries/ceph
erasure_code_dir = $libraries/ceph/erasure-code
rgw_frontends = beast endpoint=127.0.0.1:$3 $tls
rgw_data = $dir
CONF
mkdir "$dir/mon" "$dir/osd"
monmaptool --create --fsid 7f000001-0000-4000-8000-000000000001 --addv a "[$monitor]" "$dir/monmap"
ceph-mon --mkfs -i a --monmap "$dir/monmap"
ceph-mon -f -i a &
ceph-osd -i 0 --mkfs
ceph() { python3 "$ROOT/usr/bin/ceph" -c "$CEPH_CONF" "$@"; }
ceph osd new "$(cat "$dir/osd/fsid")"
ceph-osd -f -i 0 &
osd=$!
# The user's pools change the map of the OSDs: made before the OSD is in it, they can keep it out for ever.
until ceph osd stat | grep -q ' 1 up'; do
    # It ends if the monitor refuses its commands, as it may do shortly after its start.
    kill -0 "$osd" 2> /dev/null || { ceph-osd -f -i 0 & osd=$!; }
    sleep 0.1
done
radosgw-admin user create --uid petal --display-name petal --access-key PETALKEY --secret-key PETALSECRET
radosgw -f -n client.petal &
until env -u LD_LIBRARY_PATH curl -s -o /dev/null "http://127.0.0.1:$3/"; do sleep 0.1; done
echo ready >&3
cat > /dev/null
