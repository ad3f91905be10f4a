"""A child made by fork can use every filter, whatever other threads did with it."""

import os
import signal
import subprocess
import sys

import pytest

SCRIPT = """
import os, sys, threading, warnings
import numpy as np, petal

warnings.simplefilter("ignore", DeprecationWarning)
filters = [petal.QuotientFilter(100_000), petal.BloomFilter(1_000_000)]
other = petal.BloomFilter(1_000_000)
keys, stop = np.arange(50_000, dtype="u8"), threading.Event()

def work():
    while not stop.is_set():
        for filter in filters:
            filter.update(keys)
        filters[1] | other
        filters[1] == other
        filters[0].clear()
        filters[1].to_bytes()

threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
for number in range(10):
    child = os.fork()
    if child == 0:
        # One call of each kind of lock.
        for filter in [*filters, other]:
            filter.add(f"a{number}")
            assert f"a{number}" in filter
            filter.update([f"b{number}"])
            filter.contains_batch(["c"])
        assert petal.from_bytes(filters[0].to_bytes()) == filters[0]
        grandchild = os.fork()
        if grandchild == 0:
            filters[1].update(["d"])
            os._exit(0)
        assert os.waitpid(grandchild, 0)[1] == 0
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
for thread in threads:
    thread.join()
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
