"""What is pending in a JOBDIR, with as much of Scrapy's engine as it needs."""

import logging
import shutil
import sqlite3
from collections import deque

import pytest
from conftest import number
from scrapy import Request, signals
from scrapy.utils.request import fingerprint as stock_fingerprint

import petal
from petal.scrapy.journal import Journal
from petal.scrapy.pending import Pending


class Engine:
    """A queue, and what is under way; it is its own slot and scheduler."""

    def __init__(self, asked, queue=()):
        self._asked, self.queue, self.inprogress = asked, deque(queue), set()
        self._slot = self.scheduler = self
        asked.crawler.engine = self
        self._send(signals.spider_opened)

    def _send(self, signal, **words):
        crawler = self._asked.crawler
        crawler.signals.send_catch_log(signal, spider=crawler.spider, **words)

    def crawl(self, request):
        self._send(signals.request_scheduled, request=request)
        if request.dont_filter or not self._asked.filter.request_seen(request):
            self.queue.append(request)

    def has_pending_requests(self):
        return bool(self.queue)

    def next_request(self):
        return self.queue.popleft() if self.queue else None

    def urls(self):
        return [request.url for request in self.queue]


class ByLanguage:
    """For `REQUEST_FINGERPRINTER_CLASS`: the same page in another language is another request."""

    def fingerprint(self, request: Request) -> bytes:
        return stock_fingerprint(request, include_headers=["Accept-Language"])


def errors(caplog):
    # Scrapy's own parts ask for a reactor, and miss it.
    ours = [line for line in caplog.records if line.name == "petal.scrapy"]
    return [line.getMessage() for line in ours if line.levelno == logging.ERROR]


def kept(folder):
    base = sqlite3.connect(folder / "petal.dupefilter" / "pending.sqlite3")
    (rows,) = base.execute("SELECT count(*) FROM pending").fetchone()
    base.close()
    return rows


def test_a_request_is_done_when_the_engine_has_it_no_longer(ask, tmp_path):
    asked = ask(JOBDIR=tmp_path)
    engine = Engine(asked)
    for at in range(3):
        engine.crawl(number(at))
    first = engine.scheduler.next_request()
    engine.inprogress.add(first)
    # The second never reaches a downloader: a cache had it.
    engine.scheduler.next_request()
    # A download of a pipeline, of the same page as the third.
    engine.inprogress.add(number(2))
    assert kept(tmp_path) == 3
    engine.scheduler.next_request()
    assert kept(tmp_path) == 2
    # The first is tried again.
    engine.crawl(first.replace(dont_filter=True))
    engine.inprogress.clear()
    engine.scheduler.next_request()
    assert kept(tmp_path) == 1
    engine.scheduler.next_request()
    assert kept(tmp_path) == 0
    asked.close()


def test_a_request_is_done_though_its_fingerprint_has_changed(ask, tmp_path):
    asked = ask(JOBDIR=tmp_path, REQUEST_FINGERPRINTER_CLASS="test_scrapy_pending.ByLanguage")
    engine = Engine(asked)
    engine.crawl(number(0))
    # As from a disk: another object.
    engine.queue.append(engine.queue.pop().copy())
    first = engine.scheduler.next_request()
    engine.inprogress.add(first)
    # A middleware does, and what it did goes into the retry.
    first.headers["Accept-Language"] = "en"
    engine.crawl(first.replace(dont_filter=True))
    engine.inprogress.clear()
    again = engine.scheduler.next_request()
    assert (kept(tmp_path), again.headers["Accept-Language"]) == (1, b"en")
    engine.scheduler.next_request()
    assert kept(tmp_path) == 0
    asked.close()


def test_what_passes_the_filter_by_leaves_nothing_behind(ask, tmp_path):
    asked = ask(JOBDIR=tmp_path)
    engine = Engine(asked)
    for at in range(10):
        engine.crawl(number(at).replace(dont_filter=True))
    for _ in range(11):
        engine.scheduler.next_request()
    assert not asked.filter._pending._again
    assert not asked.filter._pending._handed_out
    asked.close()


def test_what_cannot_be_restored_is_told_and_the_rest_goes_on(ask, tmp_path, monkeypatch, caplog):
    caplog.set_level(logging.INFO, logger="petal.scrapy")
    monkeypatch.setattr("petal.scrapy.pending.SLICE", 4)
    asked = ask(JOBDIR=tmp_path)
    engine = Engine(asked)
    for at in range(10):
        engine.crawl(number(at))
    asked.kill()
    base = sqlite3.connect(tmp_path / "petal.dupefilter" / "pending.sqlite3")
    base.execute("UPDATE pending SET request = x'00' WHERE id IN (2, 7)")
    base.commit()
    base.close()
    asked = ask(JOBDIR=tmp_path)
    engine = Engine(asked)
    assert engine.urls() == [number(at).url for at in range(10) if at not in (1, 6)]
    assert (asked.stat("given_back"), asked.stat("not_restored")) == (8, 2)
    # Told before it is done, for it may take long.
    told = [line.getMessage() for line in caplog.records if line.name == "petal.scrapy"]
    assert told[-2].startswith("10 requests that the last run had not done are scheduled anew")
    assert told[-1].startswith("Duplicate filter cannot restore a pending request")
    assert len(errors(caplog)) == 1
    # The filter filters again.
    engine.crawl(number(3))
    assert len(engine.queue) == 8
    # They stay, for a spider that knows them again.
    assert kept(tmp_path) == 10
    asked.close()


class Picky(Engine):
    """Its queue has no place for one of the requests."""

    def crawl(self, request):
        if request.url == number(2).url:
            raise TypeError("'<' not supported")
        super().crawl(request)


def test_what_cannot_be_scheduled_is_told_and_the_rest_goes_on(ask, tmp_path, caplog):
    urls = killed(ask, tmp_path, 5)
    asked = ask(JOBDIR=tmp_path)
    engine = Picky(asked)
    del urls[2]
    assert engine.urls() == urls
    assert (asked.stat("given_back"), asked.stat("not_restored")) == (4, 1)
    assert "cannot restore a pending request (TypeError: '<' not supported)" in errors(caplog)[0]
    while engine.scheduler.next_request() is not None:
        pass
    asked.close("finished")
    # It stays, and no run but the first counts as killed.
    asked = ask(JOBDIR=tmp_path)
    assert Engine(asked, [number(9)]).urls() == [number(9).url]
    assert kept(tmp_path) == 1
    asked.close()


def test_a_twin_past_the_filter_does_not_end_a_request_that_waits(ask, tmp_path):
    asked = ask(JOBDIR=tmp_path)
    engine = Engine(asked)
    twin = number(0).replace(dont_filter=True)
    engine.crawl(number(0))
    engine.crawl(twin)
    asked.close("shutdown")
    # What a queue gives back are other objects.
    asked = ask(JOBDIR=tmp_path)
    engine = Engine(asked, [twin.copy(), number(0)])
    engine.scheduler.next_request()
    engine.scheduler.next_request()
    assert kept(tmp_path) == 1
    engine.scheduler.next_request()
    assert kept(tmp_path) == 0
    asked.close()


def test_a_queue_from_before_is_kept_from_a_kill(ask, tmp_path):
    asked = ask(JOBDIR=tmp_path, PENDING=False)
    queue = [number(at) for at in range(5) if not asked.filter.request_seen(number(at))]
    asked.close("shutdown")
    asked = ask(JOBDIR=tmp_path)
    engine = Engine(asked, [*queue, Request("http://example.com/start", dont_filter=True)])
    assert len(engine.queue) == 6 and kept(tmp_path) == 5
    asked.kill()
    (tmp_path / "requests.queue").mkdir()
    (tmp_path / "requests.queue" / "p0").write_text("torn")
    asked = ask(JOBDIR=tmp_path)
    assert (tmp_path / "requests.queue.killed" / "p0").exists()
    assert Engine(asked).urls() == [request.url for request in queue]
    asked.close()


def test_pending_is_not_turned_off_where_it_was_on(ask, tmp_path, caplog):
    ask(JOBDIR=tmp_path).close()
    with pytest.raises(petal.IncompatibleError, match="PENDING is off: leave it on"):
        ask(JOBDIR=tmp_path, PENDING=False)
    assert "PENDING is off" in caplog.text
    ask(JOBDIR=tmp_path).close()


def test_a_table_that_takes_no_more_is_told_once_and_the_request_is_new(ask, tmp_path, caplog):
    for words in ({}, {"EXACT": True}):
        caplog.clear()
        asked = ask(JOBDIR=tmp_path / str(len(words)), **words)
        asked.filter._pending._base.execute("PRAGMA query_only = 1")
        if words:
            asked.filter._tier._exact._base.execute("PRAGMA query_only = 1")
            asked.filter._tier._exact._full = 10
        assert asked.new(range(100)) == list(range(100))
        assert asked.new(range(100)) == []
        assert asked.stat("pending_errors") == 100
        assert len(errors(caplog)) == 1 + len(words)
        asked.filter._pending._base.execute("PRAGMA query_only = 0")
        asked.close()


def test_trouble_is_told_once_though_the_crawler_keeps_no_stats(ask, tmp_path, caplog):
    asked = ask(JOBDIR=tmp_path, STATS_CLASS="scrapy.statscollectors.DummyStatsCollector")
    asked.filter._pending._base.execute("PRAGMA query_only = 1")
    assert asked.new(range(100)) == list(range(100))
    assert len(errors(caplog)) == 1
    asked.filter._pending._base.execute("PRAGMA query_only = 0")
    asked.close()


def killed(ask, tmp_path, requests):
    """A run that was killed with so many requests pending."""
    asked = ask(JOBDIR=tmp_path)
    engine = Engine(asked)
    for at in range(requests):
        engine.crawl(number(at))
    asked.kill()
    return engine.urls()


def test_a_run_that_never_got_going_loses_nothing(ask, tmp_path):
    urls = killed(ask, tmp_path, 10)
    # Scrapy closes what it opened, but its spider was never opened.
    ask(JOBDIR=tmp_path).close("shutdown")
    asked = ask(JOBDIR=tmp_path)
    assert Engine(asked).urls() == urls
    asked.close()


def test_a_start_that_fails_keeps_the_queue_that_was_moved_aside(ask, tmp_path):
    urls = killed(ask, tmp_path, 3)
    queue, aside = tmp_path / "requests.queue", tmp_path / "requests.queue.killed"
    (queue / "site").mkdir(parents=True)
    (queue / "site" / "0").write_text("torn")
    for _ in range(3):
        # As Scrapy leaves it where a pipeline does not open.
        asked = ask(JOBDIR=tmp_path)
        assert (aside / "site" / "0").exists() and not queue.exists()
        queue.mkdir()
        (queue / "active.json").write_text("{}")
        asked.close("shutdown")
    asked = ask(JOBDIR=tmp_path)
    assert Engine(asked).urls() == urls
    asked.kill()
    # Another one that has something goes in its place.
    (queue / "other").mkdir(parents=True)
    (queue / "other" / "0").write_text("torn")
    asked = ask(JOBDIR=tmp_path)
    assert [path.name for path in aside.iterdir()] == ["other"]
    asked.close("shutdown")


class FullDisk(Engine):
    """Its queue takes three requests."""

    def crawl(self, request):
        if len(self.queue) == 3:
            raise OSError("the disk is full")
        super().crawl(request)


def test_what_cannot_be_given_back_stays_for_the_next_run(ask, tmp_path, caplog):
    urls = killed(ask, tmp_path, 10)
    asked = ask(JOBDIR=tmp_path)
    engine = FullDisk(asked)
    assert "OSError: the disk is full): what is not scheduled now stays" in errors(caplog)[0]
    assert (len(errors(caplog)), asked.stat("pending_errors")) == (1, 1)
    while engine.scheduler.next_request() is not None:
        pass
    # For all that Scrapy knows.
    asked.close("finished")
    asked = ask(JOBDIR=tmp_path)
    assert Engine(asked).urls() == urls[3:]
    asked.close()


def test_a_queue_from_before_that_is_torn_is_told(ask, tmp_path, caplog):
    asked = ask(JOBDIR=tmp_path)

    class Torn(Engine):
        def next_request(self):
            if len(self.queue) == 2:
                raise ValueError("torn")
            return super().next_request()

    Torn(asked, [number(at) for at in range(5)])
    assert "ValueError: torn" in errors(caplog)[0]
    asked.close("finished")
    asked = ask(JOBDIR=tmp_path)
    assert Engine(asked).urls() == [number(at).url for at in range(3)]
    asked.close()


def test_a_request_that_came_to_no_end_is_given_to_the_next_run_that_has_no_other(ask, tmp_path):
    asked = ask(JOBDIR=tmp_path)
    engine = Engine(asked)
    engine.crawl(number(0))
    # Scrapy's queue did not take it.
    lost = engine.queue.pop()
    asked.close("finished")
    asked = ask(JOBDIR=tmp_path)
    assert Engine(asked, [number(1)]).urls() == [number(1).url]
    asked.close("shutdown")
    asked = ask(JOBDIR=tmp_path)
    engine = Engine(asked)
    assert engine.urls() == [lost.url]
    while engine.scheduler.next_request() is not None:
        pass
    asked.close("finished")
    assert kept(tmp_path) == 0


def state(folder, copy):
    """The mark of the table's file as it is on the disk, without its log."""
    shutil.copyfile(folder / "petal.dupefilter" / "pending.sqlite3", copy)
    base = sqlite3.connect(copy)
    (found,) = base.execute("PRAGMA user_version").fetchone()
    base.close()
    return found


def test_marks_are_on_the_disk_in_the_order_that_a_power_cut_needs(ask, tmp_path, monkeypatch):
    job, copy = tmp_path / "job", tmp_path / "copy"
    asked = ask(JOBDIR=job)
    Engine(asked)
    assert state(job, copy) == 1
    (job / "requests.queue" / "0").mkdir(parents=True)
    (job / "requests.queue" / "0" / "q00000").touch()
    synced = []

    def sync(path):
        assert state(job, copy) == 1
        synced.append(path.relative_to(tmp_path))

    monkeypatch.setattr("petal.scrapy.pending.sync", sync)
    asked.close("shutdown")
    assert sorted(map(str, synced)) == [
        "job",
        "job/requests.queue",
        "job/requests.queue/0",
        "job/requests.queue/0/q00000",
    ]
    assert state(job, copy) == 2


def test_what_is_pending_is_on_the_disk_before_a_snapshot_knows_it(ask, tmp_path, monkeypatch):
    monkeypatch.setattr("petal.scrapy.journal.LEAST_LOG", 2000)
    monkeypatch.setattr("petal.scrapy.local.STEP", 20)
    asked = ask(JOBDIR=tmp_path, CAPACITY=100)
    done = []
    pending, journal = asked.filter._pending, asked.filter._tier._journal
    for part, name in ((pending, "add"), (pending, "sync"), (journal, "rotate")):
        monkeypatch.setattr(part, name, noted(done, name, getattr(part, name)))
    asked.new(range(400))
    before = [done[at - 1] for at, name in enumerate(done) if name == "rotate"]
    assert before and set(before) == {"sync"}
    asked.kill()
    # The next run begins with one, of what the log tells.
    done.clear()
    for part, name in ((Pending, "sync"), (Journal, "rotate")):
        monkeypatch.setattr(part, name, noted(done, name, getattr(part, name)))
    asked = ask(JOBDIR=tmp_path, CAPACITY=100)
    assert done[:2] == ["sync", "rotate"]
    asked.close()


def test_a_disk_that_is_broken_at_the_start_is_told(ask, tmp_path, monkeypatch, caplog):
    killed(ask, tmp_path, 10)
    monkeypatch.setattr("petal.scrapy.pending.Pending.sync", broken)
    asked = ask(JOBDIR=tmp_path)
    assert "cannot keep pending requests in JOBDIR (no such table: none)" in errors(caplog)[0]
    asked.close()


def broken(pending):
    return pending._change("DELETE FROM none", ())


def test_a_kill_after_the_exact_table_is_written_loses_nothing(ask, tmp_path):
    words = {"EXACT": True, "RATE": 0.3, "CAPACITY": 100, "GROW": False, "JOBDIR": tmp_path}
    asked = ask(**words)
    engine = Engine(asked)
    for at in range(300):
        engine.crawl(number(at))
    while engine.scheduler.next_request() is not None:
        pass
    # What the filter wrongly knows is looked up in the table, also by the next run.
    tier = asked.filter._tier
    at = next(
        at for at in range(300, 1000) if asked.filter._fingerprint(number(at)) in tier._filter
    )
    add = tier._exact.add

    def add_and_die(fingerprint):
        add(fingerprint)
        tier._exact.commit()
        raise KeyboardInterrupt

    tier._exact.add = add_and_die
    with pytest.raises(KeyboardInterrupt):
        engine.crawl(number(at))
    asked.kill()
    asked = ask(**words)
    assert Engine(asked).urls() == [number(at).url]
    asked.close()


def test_what_is_taken_over_is_on_the_disk_before_anything_is_fetched(ask, tmp_path, monkeypatch):
    asked = ask(JOBDIR=tmp_path)
    done = []
    for part, name in ((asked.filter._pending, "add"), (asked.filter._pending, "sync")):
        monkeypatch.setattr(part, name, noted(done, name, getattr(part, name)))
    Engine(asked, [number(at) for at in range(5)])
    assert "add" in done and done[-1] == "sync"
    asked.close()


def noted(done, name, call):
    def noting(*words):
        done.append(name)
        return call(*words)

    return noting
