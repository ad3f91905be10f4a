"""union.py DESTINATION KEY...: stores the union of filters of a cluster under the key DESTINATION.

REDIS_URL has the address of a node. It needs redis-py and the program petal. The filters must have been reserved with
NONSCALING and the same error rate, capacity (that of the union) and SEED; their names need a hash tag, such as seen:{0}.
The result has the same bits as one filter to which all items were added, without those that were added after the copy.
"""

import os
import subprocess
import sys
import tempfile

from redis.cluster import RedisCluster

CHUNK = 256 << 10


def export(cluster, key, path):
    copy = f"{key}:copy"  # writers may go on while the copy is exported
    if not cluster.copy(key, copy, replace=True):
        sys.exit(f"{key}: no such key")
    offset = None
    with open(path, "wb") as file:
        while offset != 0:
            offset, data = cluster.execute_command("PETAL.EXPORT", copy, offset or 0, "COUNT", CHUNK)
            file.write(data)
    cluster.delete(copy)


def load(cluster, key, path):
    with open(path, "rb") as file:
        while data := file.read(CHUNK):
            cluster.execute_command("PETAL.IMPORT", f"{key}:new", file.tell() - len(data), data)
    cluster.rename(f"{key}:new", key)


cluster = RedisCluster.from_url(os.environ["REDIS_URL"])
destination, *keys = sys.argv[1:]
with tempfile.TemporaryDirectory() as folder:
    files = [f"{folder}/{number}.petal" for number in range(len(keys))]
    for key, path in zip(keys, files):
        export(cluster, key, path)
    subprocess.run(["petal", "merge", "--quiet", "--output", f"{folder}/union.petal", *files], check=True)
    load(cluster, destination, f"{folder}/union.petal")
