# Calls every method of redis-py for Bloom and cuckoo filters: redis_py.py PORT PROTOCOL

import sys

import redis

PORT, PROTOCOL = int(sys.argv[1]), int(sys.argv[2])
server = redis.Redis(port=PORT, protocol=PROTOCOL)


def error_of(call):
    """Returns the text of the error that a call must raise."""
    try:
        call()
    except redis.ResponseError as error:
        return str(error)
    raise AssertionError("no error")


NAMES = {
    "Capacity": "capacity",
    "Number of filters": "filterNum",
    "Number of items inserted": "insertedNum",
    "Number of items deleted": "deletedNum",
    "Expansion rate": "expansionRate",
}


def field(info, name):
    """Returns a field of INFO: a dictionary in one protocol, an object in the other."""
    if isinstance(info, dict):
        return {key.decode() if isinstance(key, bytes) else key: value for key, value in info.items()}[name]
    return getattr(info, NAMES[name])


bloom = server.bf()
assert bloom.create("b", 0.01, 1000)
assert bloom.create("b4", 0.01, 1000, expansion=4)
assert bloom.create("fixed", 0.01, 2, noScale=True)
assert "item exists" in error_of(lambda: bloom.create("b", 0.01, 1000))
assert bloom.add("b", "a") == 1
assert bloom.add("b", "a") == 0
assert bloom.madd("b", "a", "b", "c") == [0, 1, 1]
assert bloom.insert("made", ["x", "y"], capacity=500, error=0.001, expansion=2) == [1, 1]
assert "not found" in error_of(lambda: bloom.insert("none", ["x"], noCreate=True))
assert bloom.insert("b", ["c", "d"], noCreate=True) == [0, 1]
assert bloom.insert("nosc", ["x"], noScale=True) == [1]
assert bloom.exists("b", "a") == 1
assert bloom.exists("b", "nope") == 0
assert bloom.mexists("b", "a", "nope", "d") == [1, 0, 1]
assert bloom.card("b") == 4
info = bloom.info("b")
assert field(info, "Capacity") == 1000
assert field(info, "Number of filters") == 1
assert field(info, "Number of items inserted") == 4
assert field(info, "Expansion rate") == 2
assert field(bloom.info("fixed"), "Expansion rate") is None
error_of(lambda: bloom.info("none"))

# Dump and load, as in redis-py's documentation.
position, chunks = 0, []
while True:
    position, chunk = bloom.scandump("b", position)
    if position == 0:
        break
    chunks.append((position, chunk))
assert chunks
server.delete("b")
for position, chunk in chunks:
    bloom.loadchunk("b", position, chunk)
assert bloom.mexists("b", "a", "b", "c", "d", "nope") == [1, 1, 1, 1, 0]

cuckoo = server.cf()
assert cuckoo.create("c", 1000)
assert cuckoo.create("c2", 1000, expansion=1, bucket_size=4, max_iterations=10)
assert cuckoo.add("c", "a") == 1
assert cuckoo.addnx("c", "a") == 0
assert cuckoo.addnx("c", "b") == 1
assert cuckoo.insert("cmade", ["x", "y"], capacity=500) == [1, 1]
assert cuckoo.insertnx("cmade", ["x", "z"]) == [0, 1]
assert "not found" in error_of(lambda: cuckoo.insert("none", ["x"], nocreate=True))
assert cuckoo.exists("c", "a") == 1
assert cuckoo.exists("c", "nope") == 0
assert cuckoo.mexists("c", "a", "nope") == [1, 0]
assert cuckoo.add("c", "a") == 1
assert cuckoo.count("c", "a") == 2
assert cuckoo.delete("c", "a") == 1
assert cuckoo.count("c", "a") == 1
assert cuckoo.delete("c", "nope") == 0
info = cuckoo.info("c")
assert field(info, "Number of items inserted") == 2
assert field(info, "Number of items deleted") == 1
position, chunks = 0, []
while True:
    position, chunk = cuckoo.scandump("c", position)
    if position == 0:
        break
    chunks.append((position, chunk))
assert chunks
server.delete("c")
for position, chunk in chunks:
    cuckoo.loadchunk("c", position, chunk)
assert cuckoo.mexists("c", "a", "b", "nope") == [1, 1, 0]

# Many commands in a pipelined transaction.
with server.pipeline(transaction=True) as pipe:
    for item in range(1000):
        pipe.execute_command("BF.ADD", "piped", item)
    assert sum(pipe.execute()) >= 990
