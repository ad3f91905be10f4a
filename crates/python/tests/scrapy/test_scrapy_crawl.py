"""A real spider on a site whose links form cycles: it ends, and visits every page once."""

import pytest
from conftest import CLASS

# Seconds of work, but minutes where the machine is busy.
pytestmark = pytest.mark.timeout(400)


def once(site):
    """Every page once; the first one twice at most, for start requests are not filtered."""
    return {page: 1 for page in range(1, site.pages)}


def visited(site):
    return {page: number for page, number in site.forget().items() if page != 0}


def test_every_page_is_visited_once_as_with_scrapys_own_filter(site, crawl):
    stock = crawl().stats()
    assert visited(site) == once(site)
    ours = crawl(**CLASS).stats()
    assert visited(site) == once(site)
    assert ours["dupefilter/filtered"] == stock["dupefilter/filtered"]
    assert ours["petal/dupefilter/inserted"] == site.pages
    assert ours["finish_reason"] == "finished"


def test_a_crawl_that_was_killed_goes_on_and_visits_every_page(site, crawl, tmp_path):
    jobdir = {"JOBDIR": str(tmp_path / "job")} | CLASS
    first = crawl(**jobdir)
    site.wait_for(100)
    first.kill()
    before = site.forget()
    stats = crawl(**jobdir).stats()
    after = site.forget()
    assert set(before) | set(after) == set(range(site.pages))
    assert max(before[page] for page in range(1, site.pages)) == 1
    # What was under way when it was killed is fetched again, and no more: what Scrapy has in its
    # downloader, in callbacks, or was just done with.
    again = {page for page in range(1, site.pages) if before[page] + after[page] > 1}
    assert len(again) <= 2 * 16 + 1
    assert stats["petal/dupefilter/given_back"] > 0
    assert stats["petal/dupefilter/replayed"] > 0
    # It ended as it should: a third run finds nothing to do.
    stats = crawl(**jobdir).stats()
    assert visited(site) == {}
    assert stats["petal/dupefilter/inserted"] == site.pages


def test_a_start_that_fails_after_a_kill_loses_no_page(site, crawl, tmp_path):
    jobdir = {"JOBDIR": str(tmp_path / "job")} | CLASS
    first = crawl(**jobdir)
    site.wait_for(100)
    first.kill()
    before = site.forget()
    crawl(**jobdir, ITEM_PIPELINES={"crawl.Down": 1}).stats()
    assert not site.forget()
    crawl(**jobdir).stats()
    assert set(before) | set(site.forget()) == set(range(site.pages))


def test_a_begin_that_cannot_be_marked_closes_the_spider_and_loses_no_page(site, crawl, tmp_path):
    jobdir = {"JOBDIR": str(tmp_path / "job")} | CLASS
    crawl(**jobdir, CLOSESPIDER_PAGECOUNT=50).stats()
    before = site.forget()
    one = crawl(**jobdir, ITEM_PIPELINES={"crawl.Full": 1})
    assert one.stats()["finish_reason"] == "petal_dupefilter_not_begun"
    assert not site.forget()
    log = one.log.read_text()
    assert log.count("cannot mark in JOBDIR that this run has begun") == 1
    assert "Traceback" not in log
    stats = crawl(**jobdir).stats()
    assert stats["finish_reason"] == "finished"
    assert set(before) | set(site.forget()) == set(range(site.pages))


def test_a_crawl_that_was_stopped_goes_on_with_scrapys_queue(site, crawl, tmp_path):
    jobdir = {"JOBDIR": str(tmp_path / "job")} | CLASS
    first = crawl(**jobdir, CLOSESPIDER_PAGECOUNT=50).stats()
    assert first["finish_reason"] == "closespider_pagecount"
    before = visited(site)
    second = crawl(**jobdir)
    site.wait_for(100)
    between = visited(site)
    assert not before.keys() & between.keys()
    # What the queue of an earlier run has survives a kill too.
    second.kill()
    stats = crawl(**jobdir).stats()
    assert stats["petal/dupefilter/given_back"] > 0
    assert before.keys() | between.keys() | visited(site).keys() == once(site).keys()
