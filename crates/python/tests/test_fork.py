"""A child made by fork waits for no thread that only its parent has."""

import os
import signal
import subprocess
import sys

import pytest

SCRIPT = """
import os, sys, threading, warnings
import numpy as np, petal

warnings.simplefilter("ignore", DeprecationWarning)
REFUSED = "another thread used the filter when this process was forked; make or load the filter in this process"
filters = [petal.QuotientFilter(100_000), petal.BloomFilter(1_000_000), petal.BloomFilter(1_000_000)]
unused = petal.BloomFilter(1_000_000)
keys, stop = np.arange(50_000, dtype="u8"), threading.Event()

def work():
    while not stop.is_set():
        for filter in filters:
            filter.update(keys)
        filters[1] | filters[2]
        filters[1] == filters[2]
        filters[0].clear()
        filters[1].to_bytes()

def use(filter):
    # One call of each kind of lock.
    calls = [
        lambda: filter.add("a"),
        lambda: "a" in filter,
        lambda: filter.update(["b"]),
        lambda: filter.contains_batch(["c"]),
        lambda: filter.inserted,
        lambda: petal.from_bytes(filter.to_bytes()) == filter,
        lambda: filter == unused,
    ]
    refused = 0
    for call in calls:
        try:
            call()
        except petal.PetalError as error:
            assert str(error) == REFUSED, error
            refused += 1
    return refused

def in_child(check):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = check()
        finally:
            os._exit(code)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, 2), status
    return status == 2

def check():
    assert use(unused) == 0
    refused = sum(use(filter) for filter in filters)
    # A filter stays refused in the child's children.
    grandchild = in_child(lambda: 2 if sum(use(filter) for filter in filters) else 0)
    assert use(petal.BloomFilter(1000)) == 0 == use(unused)
    assert grandchild or not refused
    return 2 if refused else 0

threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
for _ in range(5):
    in_child(check)
# The threads are in calls nearly all the time.
while not in_child(check):
    pass
stop.set()
for thread in threads:
    thread.join()
assert not in_child(check)
print("done")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork")
def test_child_is_not_blocked_by_locks_of_other_threads() -> None:
    run = subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        out, err = run.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, signal.SIGKILL)
        run.communicate()
        pytest.fail("a child waits for a lock")
    assert (out, err, run.returncode) == ("done\n", "", 0)
