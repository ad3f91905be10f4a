"""A spider on a site whose links form cycles visits every page once."""

import pytest
from conftest import CLASS

# Seconds of work, but minutes on a busy machine.
pytestmark = pytest.mark.timeout(400)


def each_page_once(site):
    """One visit of each page but the first, because start requests are not filtered."""
    return {page: 1 for page in range(1, site.pages)}


def take_visits(site):
    return {page: number for page, number in site.take_visits().items() if page != 0}


def test_every_page_is_visited_once_like_with_scrapys_filter(site, crawl):
    scrapys = crawl().stats()
    assert take_visits(site) == each_page_once(site)
    ours = crawl(**CLASS).stats()
    assert take_visits(site) == each_page_once(site)
    assert ours["dupefilter/filtered"] == scrapys["dupefilter/filtered"]
    assert ours["petal/dupefilter/inserted"] == site.pages
    assert ours["finish_reason"] == "finished"


def test_killed_crawl_continues_and_visits_every_page(site, crawl, tmp_path):
    jobdir = {"JOBDIR": str(tmp_path / "job")} | CLASS
    first = crawl(**jobdir)
    site.wait_for(100)
    first.kill()
    before = site.take_visits()
    stats = crawl(**jobdir).stats()
    after = site.take_visits()
    assert set(before) | set(after) == set(range(site.pages))
    assert max(before[page] for page in range(1, site.pages)) == 1
    # Only requests in progress at the kill are fetched again: 16 in Scrapy's downloader, those
    # just finished, and the responses that wait for callbacks, more of them on a busy machine.
    again = {page for page in range(1, site.pages) if before[page] + after[page] > 1}
    assert len(again) <= 4 * 16
    assert stats["petal/dupefilter/rescheduled"] > 0
    assert stats["petal/dupefilter/replayed"] > 0
    # The second run ended normally, so a third one finds nothing to do.
    stats = crawl(**jobdir).stats()
    assert take_visits(site) == {}
    assert stats["petal/dupefilter/inserted"] == site.pages


def test_failed_start_after_kill_loses_no_page(site, crawl, tmp_path):
    jobdir = {"JOBDIR": str(tmp_path / "job")} | CLASS
    first = crawl(**jobdir)
    site.wait_for(100)
    first.kill()
    before = site.take_visits()
    crawl(**jobdir, ITEM_PIPELINES={"spider_process.FailingPipeline": 1}).stats()
    assert not site.take_visits()
    crawl(**jobdir).stats()
    assert set(before) | set(site.take_visits()) == set(range(site.pages))


def test_start_that_cannot_be_marked_closes_the_spider_and_loses_no_page(site, crawl, tmp_path):
    jobdir = {"JOBDIR": str(tmp_path / "job")} | CLASS
    crawl(**jobdir, CLOSESPIDER_PAGECOUNT=50).stats()
    before = site.take_visits()
    one = crawl(**jobdir, ITEM_PIPELINES={"spider_process.FullDisk": 1})
    assert one.stats()["finish_reason"] == "petal_dupefilter_not_started"
    assert not site.take_visits()
    log = one.log.read_text()
    assert log.count("cannot mark the start of this run in JOBDIR") == 1
    assert "Traceback" not in log
    stats = crawl(**jobdir).stats()
    assert stats["finish_reason"] == "finished"
    assert set(before) | set(site.take_visits()) == set(range(site.pages))


def test_stopped_crawl_continues_with_scrapys_queue(site, crawl, tmp_path):
    jobdir = {"JOBDIR": str(tmp_path / "job")} | CLASS
    first = crawl(**jobdir, CLOSESPIDER_PAGECOUNT=50).stats()
    assert first["finish_reason"] == "closespider_pagecount"
    before = take_visits(site)
    second = crawl(**jobdir)
    site.wait_for(100)
    between = take_visits(site)
    assert not before.keys() & between.keys()
    # Requests from the queue of an earlier run survive a kill too.
    second.kill()
    stats = crawl(**jobdir).stats()
    assert stats["petal/dupefilter/rescheduled"] > 0
    assert before.keys() | between.keys() | take_visits(site).keys() == each_page_once(site).keys()
