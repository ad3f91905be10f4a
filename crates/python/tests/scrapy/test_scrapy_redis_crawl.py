"""Crawls with the scheduler of scrapy-redis, whose queue several spiders share."""

import pytest
from test_scrapy_redis import SCHEDULER

KEYS = {b"follow:dupefilter", b"follow:requests"}

# Seconds of work, but minutes on a busy machine.
pytestmark = pytest.mark.timeout(400)


def take_visits(site):
    """Visits of each page but the first, because start requests are not filtered."""
    return {page: number for page, number in site.take_visits().items() if page != 0}


@pytest.mark.foreign
def test_spiders_with_a_shared_queue_visit_every_page_once(site, crawl, server):
    both = [crawl(**SCHEDULER, REDIS_URL=server.url) for _ in range(2)]
    stats = [one.stats() for one in both]
    assert take_visits(site) == {page: 1 for page in range(1, site.pages)}
    assert sum(one["petal/dupefilter/new_requests"] for one in stats) == site.pages
    assert all("overfull" not in one.log.read_text() for one in both)
    assert server.client.execute_command("BF.CARD", "follow:dupefilter") == site.pages


@pytest.mark.foreign
def test_another_process_continues_with_the_shared_queue(site, crawl, server):
    first = crawl(**SCHEDULER, REDIS_URL=server.url, CLOSESPIDER_PAGECOUNT=50)
    assert first.stats()["finish_reason"] == "closespider_pagecount"
    before = take_visits(site)
    assert server.client.zcard("follow:requests") > 0
    second = crawl(**SCHEDULER, REDIS_URL=server.url)
    assert second.stats()["finish_reason"] == "finished"
    after = take_visits(site)
    assert not before.keys() & after.keys()
    assert before | after == {page: 1 for page in range(1, site.pages)}
    assert "there is no JOBDIR" not in second.log.read_text()


@pytest.mark.foreign
@pytest.mark.parametrize("options", [{"SCHEDULER_PERSIST": False}, {"SCHEDULER_FLUSH_ON_START": True}])
def test_scheduler_clears_the_filter(site, crawl, server, options):
    server.client.execute_command("BF.ADD", "follow:requests-of-others", "kept")
    for _ in range(2):
        one = crawl(**(SCHEDULER | options), REDIS_URL=server.url)
        stats = one.stats()
        assert take_visits(site) == {page: 1 for page in range(1, site.pages)}
        assert stats["petal/dupefilter/inserted"] == site.pages
        assert "petal/dupefilter/server_errors" not in stats
        assert "was deleted" not in one.log.read_text()
    left = KEYS & set(server.client.keys())
    assert left == ({b"follow:dupefilter"} if "SCHEDULER_FLUSH_ON_START" in options else set())
