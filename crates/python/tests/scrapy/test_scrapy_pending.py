"""Pending requests in a JOBDIR, with a simulated engine."""

import logging
import shutil
import sqlite3
from collections import deque

import pytest
from conftest import numbered_request
from scrapy import Request, signals
from scrapy.utils.request import fingerprint as scrapys_fingerprint

import petal
from petal.scrapy.pending import PendingRequests
from petal.scrapy.snapshot_log import SnapshotLog


class Engine:
    """A simulated engine, which is also its slot and its scheduler.

    `queue` has the waiting requests, `inprogress` those in progress.
    """

    def __init__(self, dupefilter, queue=()):
        self._dupefilter, self.queue, self.inprogress = dupefilter, deque(queue), set()
        self._slot = self.scheduler = self
        dupefilter.crawler.engine = self
        self._send(signals.spider_opened)

    def _send(self, signal, **args):
        crawler = self._dupefilter.crawler
        crawler.signals.send_catch_log(signal, spider=crawler.spider, **args)

    def crawl(self, request):
        self._send(signals.request_scheduled, request=request)
        if request.dont_filter or not self._dupefilter.filter.request_seen(request):
            self.queue.append(request)

    def has_pending_requests(self):
        return bool(self.queue)

    def next_request(self):
        return self.queue.popleft() if self.queue else None

    def urls(self):
        return [request.url for request in self.queue]


class LanguageFingerprinter:
    """A `REQUEST_FINGERPRINTER_CLASS` that includes the language."""

    def fingerprint(self, request: Request) -> bytes:
        return scrapys_fingerprint(request, include_headers=["Accept-Language"])


def errors(caplog):
    # Other parts of Scrapy log errors because there is no reactor.
    ours = [line for line in caplog.records if line.name == "petal.scrapy"]
    return [line.getMessage() for line in ours if line.levelno == logging.ERROR]


def count_pending(folder):
    database = sqlite3.connect(folder / "petal.dupefilter" / "pending.sqlite3")
    (rows,) = database.execute("SELECT count(*) FROM pending").fetchone()
    database.close()
    return rows


def test_request_is_removed_when_no_longer_in_progress(open_filter, tmp_path):
    dupefilter = open_filter(JOBDIR=tmp_path)
    engine = Engine(dupefilter)
    for at in range(3):
        engine.crawl(numbered_request(at))
    first = engine.scheduler.next_request()
    engine.inprogress.add(first)
    # The second is answered by a cache and never in progress.
    engine.scheduler.next_request()
    # A pipeline downloads the page of the third.
    engine.inprogress.add(numbered_request(2))
    assert count_pending(tmp_path) == 3
    engine.scheduler.next_request()
    assert count_pending(tmp_path) == 2
    # The first is retried.
    engine.crawl(first.replace(dont_filter=True))
    engine.inprogress.clear()
    engine.scheduler.next_request()
    assert count_pending(tmp_path) == 1
    engine.scheduler.next_request()
    assert count_pending(tmp_path) == 0
    dupefilter.close()


def test_request_with_a_changed_fingerprint_is_removed(open_filter, tmp_path):
    dupefilter = open_filter(
        JOBDIR=tmp_path, REQUEST_FINGERPRINTER_CLASS="test_scrapy_pending.LanguageFingerprinter"
    )
    engine = Engine(dupefilter)
    engine.crawl(numbered_request(0))
    # A copy, as if read from the disk.
    engine.queue.append(engine.queue.pop().copy())
    first = engine.scheduler.next_request()
    engine.inprogress.add(first)
    # A middleware changes a header, and the retry inherits it.
    first.headers["Accept-Language"] = "en"
    engine.crawl(first.replace(dont_filter=True))
    engine.inprogress.clear()
    again = engine.scheduler.next_request()
    assert (count_pending(tmp_path), again.headers["Accept-Language"]) == (1, b"en")
    engine.scheduler.next_request()
    assert count_pending(tmp_path) == 0
    dupefilter.close()


def test_unfiltered_requests_leave_nothing_behind(open_filter, tmp_path):
    dupefilter = open_filter(JOBDIR=tmp_path)
    engine = Engine(dupefilter)
    for at in range(10):
        engine.crawl(numbered_request(at).replace(dont_filter=True))
    for _ in range(11):
        engine.scheduler.next_request()
    assert not dupefilter.filter._pending._repeats
    assert not dupefilter.filter._pending._in_progress
    dupefilter.close()


def test_request_that_cannot_be_restored_is_logged_and_others_are_scheduled(
    open_filter, tmp_path, monkeypatch, caplog
):
    caplog.set_level(logging.INFO, logger="petal.scrapy")
    monkeypatch.setattr("petal.scrapy.pending.READ_BATCH", 4)
    dupefilter = open_filter(JOBDIR=tmp_path)
    engine = Engine(dupefilter)
    for at in range(10):
        engine.crawl(numbered_request(at))
    dupefilter.kill()
    database = sqlite3.connect(tmp_path / "petal.dupefilter" / "pending.sqlite3")
    database.execute("UPDATE pending SET request = x'00' WHERE id IN (2, 7)")
    database.commit()
    database.close()
    dupefilter = open_filter(JOBDIR=tmp_path)
    engine = Engine(dupefilter)
    assert engine.urls() == [numbered_request(at).url for at in range(10) if at not in (1, 6)]
    assert (dupefilter.stat("rescheduled"), dupefilter.stat("not_restored")) == (8, 2)
    # Logged before, because it may take long.
    messages = [line.getMessage() for line in caplog.records if line.name == "petal.scrapy"]
    assert messages[-2] == "Scheduling 10 unfinished requests of the last run first"
    assert messages[-1].startswith("Duplicate filter cannot restore a pending request")
    assert len(errors(caplog)) == 1
    # The filter filters again after that.
    engine.crawl(numbered_request(3))
    assert len(engine.queue) == 8
    # They stay, for a spider that can restore them.
    assert count_pending(tmp_path) == 10
    dupefilter.close()


class EngineRefusingOne(Engine):
    """An engine that refuses one of the requests."""

    def crawl(self, request):
        if request.url == numbered_request(2).url:
            raise TypeError("'<' not supported")
        super().crawl(request)


def test_request_that_cannot_be_scheduled_is_logged_and_others_are_scheduled(
    open_filter, tmp_path, caplog
):
    urls = killed(open_filter, tmp_path, 5)
    dupefilter = open_filter(JOBDIR=tmp_path)
    engine = EngineRefusingOne(dupefilter)
    del urls[2]
    assert engine.urls() == urls
    assert (dupefilter.stat("rescheduled"), dupefilter.stat("not_restored")) == (4, 1)
    assert "cannot restore a pending request (TypeError: '<' not supported)" in errors(caplog)[0]
    while engine.scheduler.next_request() is not None:
        pass
    dupefilter.close("finished")
    # It stays, and the second run does not count as killed.
    dupefilter = open_filter(JOBDIR=tmp_path)
    assert Engine(dupefilter, [numbered_request(9)]).urls() == [numbered_request(9).url]
    assert count_pending(tmp_path) == 1
    dupefilter.close()


def test_unfiltered_copy_does_not_remove_a_waiting_request(open_filter, tmp_path):
    dupefilter = open_filter(JOBDIR=tmp_path)
    engine = Engine(dupefilter)
    twin = numbered_request(0).replace(dont_filter=True)
    engine.crawl(numbered_request(0))
    engine.crawl(twin)
    dupefilter.close("shutdown")
    # A queue returns copies.
    dupefilter = open_filter(JOBDIR=tmp_path)
    engine = Engine(dupefilter, [twin.copy(), numbered_request(0)])
    engine.scheduler.next_request()
    engine.scheduler.next_request()
    assert count_pending(tmp_path) == 1
    engine.scheduler.next_request()
    assert count_pending(tmp_path) == 0
    dupefilter.close()


def test_imported_queue_survives_a_kill(open_filter, tmp_path):
    dupefilter = open_filter(JOBDIR=tmp_path, PENDING=False)
    queue = [numbered_request(at) for at in range(5)]
    assert not any(map(dupefilter.filter.request_seen, queue))
    dupefilter.close("shutdown")
    dupefilter = open_filter(JOBDIR=tmp_path)
    engine = Engine(dupefilter, [*queue, Request("http://example.com/start", dont_filter=True)])
    assert len(engine.queue) == 6 and count_pending(tmp_path) == 5
    dupefilter.kill()
    (tmp_path / "requests.queue").mkdir()
    (tmp_path / "requests.queue" / "p0").write_text("damaged")
    dupefilter = open_filter(JOBDIR=tmp_path)
    assert (tmp_path / "requests.queue.killed" / "p0").exists()
    assert Engine(dupefilter).urls() == [request.url for request in queue]
    dupefilter.close()


def test_pending_cannot_be_turned_off_later(open_filter, tmp_path, caplog):
    open_filter(JOBDIR=tmp_path).close()
    with pytest.raises(petal.IncompatibleError, match="PENDING is off: turn it on"):
        open_filter(JOBDIR=tmp_path, PENDING=False)
    assert "PENDING is off" in caplog.text
    open_filter(JOBDIR=tmp_path).close()


def test_write_errors_are_logged_once_and_requests_are_new(open_filter, tmp_path, caplog):
    for options in ({}, {"EXACT": True}):
        caplog.clear()
        dupefilter = open_filter(JOBDIR=tmp_path / str(len(options)), **options)
        dupefilter.filter._pending._database.execute("PRAGMA query_only = 1")
        if options:
            dupefilter.filter._backend._exact._database.execute("PRAGMA query_only = 1")
            dupefilter.filter._backend._exact._write_at = 10
        assert dupefilter.new(range(100)) == list(range(100))
        assert dupefilter.new(range(100)) == []
        assert dupefilter.stat("pending_errors") == 100
        assert len(errors(caplog)) == 1 + len(options)
        dupefilter.filter._pending._database.execute("PRAGMA query_only = 0")
        dupefilter.close()


def test_errors_are_logged_once_without_a_stats_collector(open_filter, tmp_path, caplog):
    dupefilter = open_filter(
        JOBDIR=tmp_path, STATS_CLASS="scrapy.statscollectors.DummyStatsCollector"
    )
    dupefilter.filter._pending._database.execute("PRAGMA query_only = 1")
    assert dupefilter.new(range(100)) == list(range(100))
    assert len(errors(caplog)) == 1
    dupefilter.filter._pending._database.execute("PRAGMA query_only = 0")
    dupefilter.close()


def killed(open_filter, tmp_path, requests):
    """Runs and kills a crawl with this number of pending requests, and returns their URLs."""
    dupefilter = open_filter(JOBDIR=tmp_path)
    engine = Engine(dupefilter)
    for at in range(requests):
        engine.crawl(numbered_request(at))
    dupefilter.kill()
    return engine.urls()


def test_run_whose_spider_never_opened_loses_nothing(open_filter, tmp_path):
    urls = killed(open_filter, tmp_path, 10)
    # Closed although its spider was never opened.
    open_filter(JOBDIR=tmp_path).close("shutdown")
    dupefilter = open_filter(JOBDIR=tmp_path)
    assert Engine(dupefilter).urls() == urls
    dupefilter.close()


def test_failed_start_keeps_the_moved_queue(open_filter, tmp_path):
    urls = killed(open_filter, tmp_path, 3)
    queue, moved = tmp_path / "requests.queue", tmp_path / "requests.queue.killed"
    (queue / "site").mkdir(parents=True)
    (queue / "site" / "0").write_text("damaged")
    for _ in range(3):
        # Scrapy leaves this queue if a pipeline cannot open.
        dupefilter = open_filter(JOBDIR=tmp_path)
        assert (moved / "site" / "0").exists() and not queue.exists()
        queue.mkdir()
        (queue / "active.json").write_text("{}")
        dupefilter.close("shutdown")
    dupefilter = open_filter(JOBDIR=tmp_path)
    assert Engine(dupefilter).urls() == urls
    dupefilter.kill()
    # A queue with requests replaces it.
    (queue / "other").mkdir(parents=True)
    (queue / "other" / "0").write_text("damaged")
    dupefilter = open_filter(JOBDIR=tmp_path)
    assert [path.name for path in moved.iterdir()] == ["other"]
    dupefilter.close("shutdown")


class EngineWithFullDisk(Engine):
    """An engine whose queue accepts three requests."""

    def crawl(self, request):
        if len(self.queue) == 3:
            raise OSError("the disk is full")
        super().crawl(request)


def test_requests_not_rescheduled_stay_for_the_next_run(open_filter, tmp_path, caplog):
    urls = killed(open_filter, tmp_path, 10)
    dupefilter = open_filter(JOBDIR=tmp_path)
    engine = EngineWithFullDisk(dupefilter)
    assert "OSError: the disk is full): those that are not scheduled stay" in errors(caplog)[0]
    assert (len(errors(caplog)), dupefilter.stat("pending_errors")) == (1, 1)
    while engine.scheduler.next_request() is not None:
        pass
    # Scrapy's queue is empty, so it finishes.
    dupefilter.close("finished")
    dupefilter = open_filter(JOBDIR=tmp_path)
    assert Engine(dupefilter).urls() == urls[3:]
    dupefilter.close()


def test_damaged_queue_is_logged(open_filter, tmp_path, caplog):
    dupefilter = open_filter(JOBDIR=tmp_path)

    class DamagedQueue(Engine):
        def next_request(self):
            if len(self.queue) == 2:
                raise ValueError("damaged")
            return super().next_request()

    DamagedQueue(dupefilter, [numbered_request(at) for at in range(5)])
    assert "ValueError: damaged" in errors(caplog)[0]
    dupefilter.close("finished")
    dupefilter = open_filter(JOBDIR=tmp_path)
    assert Engine(dupefilter).urls() == [numbered_request(at).url for at in range(3)]
    dupefilter.close()


def test_unfinished_request_is_scheduled_by_the_next_run_with_an_empty_queue(open_filter, tmp_path):
    dupefilter = open_filter(JOBDIR=tmp_path)
    engine = Engine(dupefilter)
    engine.crawl(numbered_request(0))
    # Scrapy's queue loses the request.
    lost = engine.queue.pop()
    dupefilter.close("finished")
    dupefilter = open_filter(JOBDIR=tmp_path)
    assert Engine(dupefilter, [numbered_request(1)]).urls() == [numbered_request(1).url]
    dupefilter.close("shutdown")
    dupefilter = open_filter(JOBDIR=tmp_path)
    engine = Engine(dupefilter)
    assert engine.urls() == [lost.url]
    while engine.scheduler.next_request() is not None:
        pass
    dupefilter.close("finished")
    assert count_pending(tmp_path) == 0


def mark_on_disk(folder, copy):
    """Returns the mark in the table's file, without its write-ahead log."""
    shutil.copyfile(folder / "petal.dupefilter" / "pending.sqlite3", copy)
    database = sqlite3.connect(copy)
    (found,) = database.execute("PRAGMA user_version").fetchone()
    database.close()
    return found


def test_marks_are_synced_in_the_order_that_survives_a_power_cut(
    open_filter, tmp_path, monkeypatch
):
    job, copy = tmp_path / "job", tmp_path / "copy"
    dupefilter = open_filter(JOBDIR=job)
    Engine(dupefilter)
    assert mark_on_disk(job, copy) == 1
    (job / "requests.queue" / "0").mkdir(parents=True)
    (job / "requests.queue" / "0" / "q00000").touch()
    synced = []

    def sync(path):
        assert mark_on_disk(job, copy) == 1
        synced.append(path.relative_to(tmp_path))

    monkeypatch.setattr("petal.scrapy.pending.sync", sync)
    dupefilter.close("shutdown")
    assert sorted(map(str, synced)) == [
        "job",
        "job/requests.queue",
        "job/requests.queue/0",
        "job/requests.queue/0/q00000",
    ]
    assert mark_on_disk(job, copy) == 2


def test_pending_requests_are_synced_before_a_snapshot(open_filter, tmp_path, monkeypatch):
    monkeypatch.setattr("petal.scrapy.snapshot_log.MIN_LOG_SIZE", 2000)
    monkeypatch.setattr("petal.scrapy.local.CHECK_INTERVAL", 20)
    dupefilter = open_filter(JOBDIR=tmp_path, CAPACITY=100)
    calls = []
    pending, snapshot_log = dupefilter.filter._pending, dupefilter.filter._backend._snapshot_log
    for part, name in ((pending, "add"), (pending, "sync"), (snapshot_log, "rotate")):
        monkeypatch.setattr(part, name, recorded(calls, name, getattr(part, name)))
    dupefilter.new(range(400))
    before = [calls[at - 1] for at, name in enumerate(calls) if name == "rotate"]
    assert before and set(before) == {"sync"}
    dupefilter.kill()
    # The next run starts with a snapshot of the replayed log.
    calls.clear()
    for part, name in ((PendingRequests, "sync"), (SnapshotLog, "rotate")):
        monkeypatch.setattr(part, name, recorded(calls, name, getattr(part, name)))
    dupefilter = open_filter(JOBDIR=tmp_path, CAPACITY=100)
    assert calls[:2] == ["sync", "rotate"]
    dupefilter.close()


def test_broken_disk_at_the_start_is_logged(open_filter, tmp_path, monkeypatch, caplog):
    killed(open_filter, tmp_path, 10)
    monkeypatch.setattr("petal.scrapy.pending.PendingRequests.sync", broken)
    dupefilter = open_filter(JOBDIR=tmp_path)
    assert "cannot store pending requests in JOBDIR (no such table: none)" in errors(caplog)[0]
    dupefilter.close()


def broken(pending):
    return pending._execute("DELETE FROM none", ())


def test_kill_after_writing_the_exact_table_loses_nothing(open_filter, tmp_path):
    settings = {"EXACT": True, "FPR": 0.3, "CAPACITY": 100, "GROW": False, "JOBDIR": tmp_path}
    dupefilter = open_filter(**settings)
    engine = Engine(dupefilter)
    for at in range(300):
        engine.crawl(numbered_request(at))
    while engine.scheduler.next_request() is not None:
        pass
    # A false positive of the filter is looked up in the table, also by the next run.
    backend = dupefilter.filter._backend
    at = next(
        at
        for at in range(300, 1000)
        if dupefilter.filter._fingerprint(numbered_request(at)) in backend._filter
    )
    add = backend._exact.add

    def add_and_die(fingerprint):
        add(fingerprint)
        backend._exact.commit()
        raise KeyboardInterrupt

    backend._exact.add = add_and_die
    with pytest.raises(KeyboardInterrupt):
        engine.crawl(numbered_request(at))
    dupefilter.kill()
    dupefilter = open_filter(**settings)
    assert Engine(dupefilter).urls() == [numbered_request(at).url]
    dupefilter.close()


def test_imported_queue_is_synced_before_the_first_fetch(open_filter, tmp_path, monkeypatch):
    dupefilter = open_filter(JOBDIR=tmp_path)
    calls = []
    for part, name in ((dupefilter.filter._pending, "add"), (dupefilter.filter._pending, "sync")):
        monkeypatch.setattr(part, name, recorded(calls, name, getattr(part, name)))
    Engine(dupefilter, [numbered_request(at) for at in range(5)])
    assert "add" in calls and calls[-1] == "sync"
    dupefilter.close()


def recorded(calls, name, function):
    def record(*args):
        calls.append(name)
        return function(*args)

    return record
