"""A fleet of spiders with `petal.scrapy.Scheduler` loses no page if its processes or its server are killed.

`PETAL_KILLS` is the number of kills. With `PETAL_KILLS=50` and `-k killed_processes -s`, 1,700 pages take eight minutes.
"""

import os
import random
import time
from collections import Counter

import pytest
from conftest import CLASS
from redis_server import MODULE, PEERS, Server
from site_server import Site

KILLS = int(os.environ.get("PETAL_KILLS", "10"))
LEASE = 3
FLEET = CLASS | {
    "SCHEDULER": "petal.scrapy.Scheduler",
    "ITEM_PIPELINES": {"spider_process.RecordingPipeline": 1},
    "PETAL_SCHEDULER_LEASE": LEASE,
    # No page is lost by a false positive.
    "PETAL_DUPEFILTER_FPR": 1e-9,
}
# Keeps pages for the next kill.
SLOW = {"DOWNLOAD_DELAY": 0.2}

pytestmark = [pytest.mark.foreign, pytest.mark.timeout(300 + 30 * KILLS)]


@pytest.fixture
def site():
    made = Site(200 + 30 * KILLS)
    yield made
    made.close()


def wait_until_opened(one):
    for _ in range(20_000):
        if "Spider opened" in one.log.read_text() or one.process.poll() is not None:
            return
        time.sleep(0.01)
    raise AssertionError("the spider did not open")


def read_items(path):
    return Counter(map(int, path.read_text().split()))


def test_killed_processes_lose_no_page(site, crawl, server, tmp_path):
    items = tmp_path / "items"
    settings = FLEET | {"REDIS_URL": server.url, "ITEMS": str(items)}
    running = [crawl(**settings, **SLOW) for _ in range(2)]
    kills, rng = 0, random.Random(1)
    # On a slow machine the site may be finished after fewer kills.
    while kills < KILLS and len(site.visits) < site.pages:
        oldest, newest = running
        # The other one works while this one is replaced.
        wait_until_opened(newest)
        time.sleep(rng.uniform(0, 1))
        oldest.kill()
        kills += 1
        running = [newest, crawl(**settings, **SLOW)]
    running[0].kill()
    last = crawl(**settings)
    assert last.stats()["finish_reason"] == "finished"
    running[1].stats()
    found = read_items(items)
    assert found.keys() == set(range(site.pages))
    assert server.client.keys() == [b"follow:dupefilter"]
    print(f"{kills + 1} kills, {site.pages} pages, {site.visits.total()} visits, {found.total()} items")


@pytest.fixture
def folder(tmp_path):
    """Returns folders of servers."""

    def make(name):
        (tmp_path / name).mkdir()
        return tmp_path / name

    return make


def test_server_that_restarts_with_an_earlier_state_loses_no_page(site, crawl, server, tmp_path):
    items = tmp_path / "items"
    settings = FLEET | {"REDIS_URL": server.url, "ITEMS": str(items), "DOWNLOAD_DELAY": 0.05}
    both = [crawl(**settings) for _ in range(2)]
    for one in both:
        wait_until_opened(one)
    site.wait_for(50)
    server.client.save()
    site.wait_for(100)
    server.stop()
    assert site.visits.total() < site.pages / 2
    server.start()
    stats = [one.stats() for one in both]
    assert read_items(items).keys() == set(range(site.pages))
    assert all(one["petal/dupefilter/server_errors"] > 0 for one in stats)
    assert server.client.keys() == [b"follow:dupefilter"]


@pytest.fixture
def cluster(folder):
    """A primary, a replica and the address of a sentinel. The server is Valkey."""
    options = ["--loadmodule", str(MODULE)]
    valkey = "valkey-server-9"
    primary = Server(folder("primary"), *options, program=valkey)
    replica = Server(folder("replica"), *options, "--replicaof", "127.0.0.1", str(primary.port), program=valkey)
    config = folder("sentinel") / "sentinel.conf"
    config.write_text(
        f"sentinel monitor fleet 127.0.0.1 {primary.port} 1\n"
        "sentinel down-after-milliseconds fleet 1000\n"
        "sentinel failover-timeout fleet 5000\n"
    )
    sentinel = Sentinel(config, valkey)
    wait_for(lambda: replica.client.info("replication")["master_link_status"] == "up")
    wait_for(lambda: sentinel.client.execute_command("SENTINEL", "REPLICAS", "fleet"))
    yield primary, replica, f"127.0.0.1:{sentinel.port}"
    for one in (primary, replica, sentinel):
        one.stop()


class Sentinel(Server):
    """A sentinel on a free port."""

    def __init__(self, config, program):
        self._config = config
        super().__init__(config.parent, program=program)

    def start(self):
        self.command = [f"{PEERS}/bin/valkey-server-9", str(self._config), "--sentinel", "--port", str(self.port)]
        super().start()


def wait_for(is_true):
    for _ in range(6_000):
        if is_true():
            return
        time.sleep(0.01)
    raise AssertionError("waited a minute")


def test_crawl_continues_on_the_replica_if_the_primary_is_killed(site, crawl, cluster, tmp_path):
    primary, replica, sentinel = cluster
    items = tmp_path / "items"
    settings = FLEET | {"REDIS_SENTINELS": [sentinel], "REDIS_SENTINEL_SERVICE": "fleet", "ITEMS": str(items)}
    both = [crawl(**settings, DOWNLOAD_DELAY=0.05) for _ in range(2)]
    for one in both:
        wait_until_opened(one)
    site.wait_for(100)
    primary.stop()
    assert site.visits.total() < site.pages / 2
    stats = [one.stats() for one in both]
    assert replica.client.info("replication")["role"] == "master"
    assert read_items(items).keys() == set(range(site.pages))
    assert all(one["petal/dupefilter/server_errors"] > 0 for one in stats)
    assert replica.client.keys() == [b"follow:dupefilter"]
    print(f"{site.pages} pages, {site.visits.total()} visits")
