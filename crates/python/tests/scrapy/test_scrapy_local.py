"""The filter in one process: settings, growth, alarm, window, exact table, JOBDIR."""

import json
import logging
import os
import re
import time
from types import SimpleNamespace

import pytest
from conftest import fingerprint, numbered_request
from scrapy import Request

import petal
from petal.scrapy import local


def test_requests_are_seen_once_added(open_filter):
    dupefilter = open_filter()
    assert dupefilter.new(range(2000)) == list(range(2000))
    assert dupefilter.new(range(2000)) == []
    dupefilter.close()
    assert dupefilter.stat("inserted") == 2000
    assert dupefilter.stat("capacity") == 4_000_000


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"CAPACITY": "many"}, "CAPACITY: expected an integer above 0, found 'many'"),
        ({"CAPACITY": 0}, "CAPACITY: expected an integer"),
        ({"FPR": 1.5}, "FPR: expected a number above 0 and below 1"),
        ({"MEMORY_LIMIT": "much"}, "MEMORY_LIMIT: expected bytes"),
        ({"CAPACTIY": 5}, "CAPACTIY: unknown setting; did you mean PETAL_DUPEFILTER_CAPACITY"),
        ({"MEMORY_LIMIT": "1M", "CAPACITY": 5}, "each determines the other"),
        ({"MEMORY_LIMIT": "1M", "GROW": True}, "does not grow"),
        ({"WINDOW": 60, "GROW": True}, "does not grow"),
        ({"WINDOW": 60, "EXACT": True}, "cannot be combined"),
        ({"REDIS_URL": "redis://localhost", "EXACT": True}, "cannot be combined"),
        ({"KEY_TRANSFORM": "url-surt,urls"}, "KEY_TRANSFORM: 'urls': unknown transform"),
        *(({name: "maybe"}, f"{name}: expected True or False, found 'maybe'") for name in ("GROW", "EXACT", "PENDING")),
        ({"FPR": 1e-30, "GROW": False}, "FPR and PETAL_DUPEFILTER_CAPACITY: "),
        ({"CAPACITY": 2**62}, "FPR and PETAL_DUPEFILTER_CAPACITY: "),
        ({"CAPACITY": 2**62, "WINDOW": 60}, "FPR and PETAL_DUPEFILTER_CAPACITY: "),
        ({"FPR": 1e-30, "MEMORY_LIMIT": "1M"}, "FPR and PETAL_DUPEFILTER_MEMORY_LIMIT: "),
        ({"REDIS_URL": "localhost"}, "REDIS_URL: Redis URL must specify"),
    ],
)
def test_invalid_settings_are_refused(open_filter, caplog, settings, message):
    with pytest.raises((ValueError, petal.MemoryLimitError), match=f"^PETAL_DUPEFILTER_.*{re.escape(message)}"):
        open_filter(**settings)
    assert message in caplog.text


def test_filter_beyond_its_capacity_grows(open_filter):
    dupefilter = open_filter(CAPACITY=100, FPR=0.001)
    assert len(dupefilter.new(range(3000))) > 2980
    dupefilter.close()
    assert dupefilter.stat("layers") > 1
    assert dupefilter.stat("overfull") is None


def test_growth_beyond_the_rate_that_is_possible_raises_one_alarm(open_filter, caplog):
    dupefilter = open_filter(CAPACITY=10, FPR=1e-17)
    assert len(dupefilter.new(range(5000))) == 5000
    (alarm,) = [line for line in caplog.records if line.levelno == logging.ERROR]
    assert "cannot keep its false-positive rate of 1e-17" in alarm.getMessage()
    assert dupefilter.stat("overfull") == 1
    dupefilter.close()


def test_full_fixed_filter_raises_one_alarm(open_filter, caplog):
    dupefilter = open_filter(CAPACITY=500, FPR=0.01, GROW=False)
    assert len(dupefilter.new(range(490))) > 450
    assert dupefilter.stat("overfull") is None and not caplog.records
    lost = 5000 - len(dupefilter.new(range(1000, 6000)))
    assert lost > 500
    (alarm,) = [line for line in caplog.records if line.levelno == logging.ERROR]
    assert "Duplicate filter is full: 500 requests" in alarm.getMessage()
    assert dupefilter.stat("overfull") == 1
    dupefilter.close()


def test_memory_limit_is_used_and_not_exceeded(open_filter):
    dupefilter = open_filter(MEMORY_LIMIT="1M", FPR=0.001)
    size, capacity = dupefilter.stat("bytes"), dupefilter.stat("capacity")
    assert 0.9 * (1 << 20) < size <= 1 << 20
    # No Bloom filter with this rate takes less than 14.4 bits per key.
    assert 400_000 < capacity < (8 << 20) / 14.3
    dupefilter.close()


def test_memory_refused_by_the_system_is_an_error(open_filter, monkeypatch):
    original = local._with_capacity

    def limited(config, capacity, secret):
        filter = original(config, capacity, secret)
        if filter.memory_bytes > 1.2 * (1 << 20):
            raise petal.MemoryLimitError("the system refused")
        return filter

    monkeypatch.setattr(local, "_with_capacity", limited)
    dupefilter = open_filter(MEMORY_LIMIT="1M")
    assert 0.9 * (1 << 20) < dupefilter.stat("bytes") <= 1 << 20
    dupefilter.close()
    with pytest.raises(petal.MemoryLimitError, match="the system refused"):
        open_filter(MEMORY_LIMIT="2M")


def test_duplicates_do_not_prolong_the_window(open_filter, monkeypatch):
    now = [1_800_000_000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    dupefilter = open_filter(WINDOW=3600, CAPACITY=1000)
    assert dupefilter.new(range(10)) == list(range(10))
    for _ in range(5):
        # Duplicates must not prolong the window.
        now[0] += 600
        assert dupefilter.new(range(10)) == []
    now[0] += 3600
    assert dupefilter.new(range(10)) == list(range(10))
    dupefilter.close()


def test_overfull_window_raises_the_alarm(
    open_filter, monkeypatch, caplog
):
    now = [1_800_000_000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    monkeypatch.setattr("petal.scrapy.local.CHECK_INTERVAL", 20)
    dupefilter = open_filter(WINDOW=3600, CAPACITY=3000, FPR=0.001)
    for part in range(8):
        dupefilter.new(range(part * 1000, part * 1000 + 990))
        now[0] += 1200
    assert dupefilter.stat("overfull") is None and not caplog.records
    dupefilter.close()
    assert 0.0005 < dupefilter.stat("expected_fpr") <= 0.001
    # The requests of a whole window in one third of it.
    dupefilter = open_filter(WINDOW=3600, CAPACITY=3000, FPR=0.001)
    dupefilter.new(range(2900))
    (alarm,) = [line for line in caplog.records if line.levelno == logging.ERROR]
    assert "is full: this part of the window has more requests than its share" in alarm.getMessage()
    assert dupefilter.stat("overfull") == 1
    dupefilter.close()


def test_overfull_part_of_a_small_window_raises_the_alarm_at_once(open_filter, monkeypatch):
    now = [1_800_000_000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    dupefilter = open_filter(WINDOW=3600, CAPACITY=300)
    dupefilter.new(range(50))
    now[0] += 1200
    dupefilter.new(range(50, 149))
    assert dupefilter.stat("overfull") is None
    dupefilter.new(range(149, 151))
    assert dupefilter.stat("overfull") == 1
    dupefilter.close()


def test_exact_filter_loses_no_request(open_filter, tmp_path):
    for options in ({}, {"JOBDIR": tmp_path}):
        dupefilter = open_filter(EXACT=True, FPR=0.3, CAPACITY=100, GROW=False, **options)
        assert dupefilter.new(range(3000)) == list(range(3000))
        assert dupefilter.new(range(3000)) == []
        assert dupefilter.stat("false_positives") > 500
        dupefilter.close()


def test_exact_table_and_filter_survive_a_kill(open_filter, tmp_path):
    settings = {"EXACT": True, "FPR": 0.3, "CAPACITY": 100, "GROW": False, "JOBDIR": tmp_path}
    dupefilter = open_filter(**settings)
    dupefilter.new(range(1000))
    dupefilter.kill()
    dupefilter = open_filter(**settings)
    assert dupefilter.new(range(1000)) == []
    assert dupefilter.new(range(1000, 2000)) == list(range(1000, 2000))
    dupefilter.close()


def test_seen_requests_survive_a_kill_with_a_truncated_log(open_filter, tmp_path):
    dupefilter = open_filter(JOBDIR=tmp_path)
    dupefilter.new(range(1000))
    dupefilter.kill()
    (log,) = (tmp_path / "petal.dupefilter").glob("log-*")
    os.truncate(log, log.stat().st_size - 3)
    dupefilter = open_filter(JOBDIR=tmp_path)
    assert dupefilter.stat("replayed") == 999
    assert dupefilter.new(range(1000)) == [999]
    dupefilter.close()


def test_log_is_read_up_to_trailing_zeros(open_filter, tmp_path):
    dupefilter = open_filter(JOBDIR=tmp_path)
    dupefilter.new(range(100))
    dupefilter.kill()
    (log,) = (tmp_path / "petal.dupefilter").glob("log-*")
    with log.open("ab") as file:
        file.write(bytes(4096))
    dupefilter = open_filter(JOBDIR=tmp_path)
    assert dupefilter.stat("replayed") == 100
    dupefilter.close()


def test_kill_during_a_snapshot_loses_nothing(
    open_filter, tmp_path, monkeypatch
):
    monkeypatch.setattr("petal.scrapy.snapshot_log.MIN_LOG_SIZE", 2000)
    monkeypatch.setattr("petal.scrapy.local.CHECK_INTERVAL", 20)
    dupefilter = open_filter(JOBDIR=tmp_path, CAPACITY=100, FPR=0.001)
    dupefilter.new(range(400))
    folder = tmp_path / "petal.dupefilter"
    names = sorted(path.name for path in folder.glob("*-*") if "sqlite" not in path.name)
    assert len(names) == 2 and "log-1" not in names
    # Killed before the snapshot is saved.
    snapshot_log = dupefilter.filter._backend._snapshot_log
    with pytest.raises(KeyboardInterrupt):
        snapshot_log.rotate(_interrupted)
    dupefilter.new(range(400, 450))
    dupefilter.kill()
    dupefilter = open_filter(JOBDIR=tmp_path, CAPACITY=100, FPR=0.001)
    assert dupefilter.new(range(450)) == []
    dupefilter.close()


def test_temporary_file_of_an_interrupted_snapshot_is_removed(open_filter, tmp_path):
    dupefilter = open_filter(JOBDIR=tmp_path)
    dupefilter.new(range(10))
    folder = tmp_path / "petal.dupefilter"
    (folder / ".petal-a1B2c3.tmp").write_bytes(bytes(1000))
    dupefilter.kill()
    dupefilter = open_filter(JOBDIR=tmp_path)
    assert not list(folder.glob(".petal-*"))
    assert dupefilter.new(range(10)) == []
    dupefilter.close()


def _interrupted(_path):
    raise KeyboardInterrupt


@pytest.mark.parametrize("encoding", ["binary", "hex", "mixed"])
def test_requests_seen_is_imported_once_and_not_changed(open_filter, tmp_path, encoding):
    dupefilter = open_filter()
    fingerprints = [dupefilter.filter._fingerprint(numbered_request(at)) for at in range(500)]
    dupefilter.close()
    binary = [len(value).to_bytes(2, "big") + value for value in fingerprints]
    lines = [value.hex().encode() + b"\n" for value in fingerprints]
    records = {"binary": binary, "hex": lines, "mixed": lines[:250] + binary[250:]}[encoding]
    # The last record is cut off.
    content = b"".join(records)[:-2]
    file = tmp_path / "requests.seen"
    file.write_bytes(content)
    dupefilter = open_filter(JOBDIR=tmp_path)
    assert dupefilter.stat("imported") == 499
    assert dupefilter.new(range(500)) == [499]
    dupefilter.close()
    assert file.read_bytes() == content
    file.write_bytes(content + binary[0])
    dupefilter = open_filter(JOBDIR=tmp_path)
    assert dupefilter.stat("imported") is None
    assert dupefilter.new(range(500)) == []
    dupefilter.close()


def test_invalid_requests_seen_is_refused(open_filter, tmp_path):
    (tmp_path / "requests.seen").write_bytes(b"deadbeef, and then something else\n" * 3)
    with pytest.raises(petal.FormatError, match="requests.seen: at byte 0"):
        open_filter(JOBDIR=tmp_path)
    # No partial filter was left.
    (tmp_path / "requests.seen").unlink()
    dupefilter = open_filter(JOBDIR=tmp_path)
    assert dupefilter.new(range(5)) == list(range(5))
    dupefilter.close()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"WINDOW": 60}, "with kind 'grow', but the settings have 'window'"),
        ({"GROW": False}, "with kind 'grow', but the settings have 'fixed'"),
        ({"EXACT": True}, "with exact False, but the settings have True"),
        ({"MEMORY_LIMIT": "1M"}, "with kind 'grow', but the settings have 'fixed'"),
        # Refused before connecting.
        ({"REDIS_URL": "redis://localhost:1"}, "with server False, but the settings have True"),
    ],
)
def test_jobdir_with_another_kind_is_refused(open_filter, tmp_path, settings, message):
    open_filter(JOBDIR=tmp_path).close()
    with pytest.raises(petal.IncompatibleError, match=message):
        open_filter(JOBDIR=tmp_path, **settings)


def test_requests_seen_with_a_server_is_refused(open_filter, tmp_path):
    (tmp_path / "requests.seen").touch()
    with pytest.raises(petal.IncompatibleError, match="cannot be copied to a"):
        open_filter(JOBDIR=tmp_path, REDIS_URL="redis://localhost:1")


def test_jobdir_with_another_capacity_keeps_it_and_logs_a_warning(open_filter, tmp_path, caplog):
    dupefilter = open_filter(JOBDIR=tmp_path, CAPACITY=1000)
    dupefilter.new(range(10))
    dupefilter.close()
    dupefilter = open_filter(JOBDIR=tmp_path, CAPACITY=5000)
    assert "keeps its size: capacity 1000" in caplog.text
    assert dupefilter.stat("capacity") == 1000
    assert dupefilter.new(range(10)) == []
    dupefilter.close()


def test_jobdir_without_the_server_field_is_accepted(open_filter, tmp_path, caplog):
    open_filter(JOBDIR=tmp_path).close()
    path = tmp_path / "petal.dupefilter" / "made.json"
    made = json.loads(path.read_text())
    del made["server"]
    path.write_text(json.dumps(made))
    open_filter(JOBDIR=tmp_path).close()
    assert "keeps its size" not in caplog.text


def test_jobdir_in_use_is_refused(open_filter, tmp_path):
    dupefilter = open_filter(JOBDIR=tmp_path)
    with pytest.raises(petal.InputError, match="another process uses it"):
        open_filter(JOBDIR=tmp_path)
    dupefilter.close()
    open_filter(JOBDIR=tmp_path).close()


@pytest.mark.parametrize("name", ["filter-*.petal", "made.json"])
def test_damaged_jobdir_is_refused_with_advice(open_filter, tmp_path, name):
    open_filter(JOBDIR=tmp_path).close()
    (path,) = (tmp_path / "petal.dupefilter").glob(name)
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(petal.FormatError, match="to start over"):
        open_filter(JOBDIR=tmp_path)


@pytest.mark.parametrize("name", ["pending.sqlite3", "exact.sqlite3"])
def test_damaged_sqlite_file_is_an_error_with_its_path(open_filter, tmp_path, caplog, name):
    open_filter(JOBDIR=tmp_path, EXACT=True).close()
    (tmp_path / "petal.dupefilter" / name).write_bytes(b"not SQLite" * 1000)
    for _ in range(2):
        # The second time too, because the JOBDIR was unlocked.
        with pytest.raises(petal.FormatError, match=f"{name}: file is not a database; restore"):
            open_filter(JOBDIR=tmp_path, EXACT=True)
    assert caplog.text.count("file is not a database; restore the file") == 2


def test_failed_start_or_close_unlocks_the_jobdir(open_filter, tmp_path, caplog, monkeypatch):
    monkeypatch.setattr("petal.scrapy.dupefilter.LocalFilter", _broken)
    for _ in range(2):
        with pytest.raises(OSError, match="broken"):
            open_filter(JOBDIR=tmp_path)
    assert caplog.text.count("Duplicate filter cannot start: broken") == 2
    monkeypatch.undo()
    dupefilter = open_filter(JOBDIR=tmp_path)
    monkeypatch.setattr(dupefilter.filter._backend, "close", _broken)
    with pytest.raises(OSError, match="broken"):
        dupefilter.close()
    open_filter(JOBDIR=tmp_path).close()


def _broken(*_):
    raise OSError("broken")


def test_other_lock_errors_are_raised_unchanged(open_filter, tmp_path, monkeypatch):
    monkeypatch.setattr("petal.scrapy.snapshot_log.fcntl.flock", _broken)
    with pytest.raises(OSError, match="^broken$"):
        open_filter(JOBDIR=tmp_path)


def test_window_survives_a_kill_with_its_times(open_filter, tmp_path, monkeypatch):
    now = [1_800_000_000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    dupefilter = open_filter(JOBDIR=tmp_path, WINDOW=3600, CAPACITY=1000)
    dupefilter.new(range(10))
    now[0] += 3000
    dupefilter.new(range(10, 20))
    dupefilter.kill()
    now[0] += 2000
    dupefilter = open_filter(JOBDIR=tmp_path, WINDOW=3600, CAPACITY=1000)
    assert dupefilter.new(range(10, 20)) == []
    assert dupefilter.new(range(10)) == list(range(10))
    dupefilter.close()


def test_full_disk_ends_the_log_and_not_the_crawl(open_filter, tmp_path, caplog):
    dupefilter = open_filter(JOBDIR=tmp_path, PENDING=False)
    dupefilter.new(range(10))
    os.close(dupefilter.filter._backend._snapshot_log._log)
    dupefilter.filter._backend._snapshot_log._log = os.open("/dev/full", os.O_WRONLY)
    assert dupefilter.new(range(20)) == list(range(10, 20))
    assert dupefilter.stat("log_errors") == 1
    assert "cannot write its log" in caplog.text
    # When the disk has space again, a snapshot replaces the incomplete log.
    dupefilter.new(range(20, 1020))
    dupefilter.kill()
    dupefilter = open_filter(JOBDIR=tmp_path, PENDING=False)
    assert dupefilter.new(range(1020)) == []
    dupefilter.close()


def test_failed_snapshot_keeps_the_old_log(open_filter, tmp_path, monkeypatch):
    monkeypatch.setattr("petal.scrapy.snapshot_log.MIN_LOG_SIZE", 2000)
    monkeypatch.setattr("petal.scrapy.local.CHECK_INTERVAL", 20)
    dupefilter = open_filter(JOBDIR=tmp_path, PENDING=False, CAPACITY=100)
    files = sorted(path.name for path in (tmp_path / "petal.dupefilter").glob("*-*"))
    backend = dupefilter.filter._backend
    backend._filter = UnsavableFilter(backend._filter)
    assert len(dupefilter.new(range(400))) == 400
    assert dupefilter.stat("snapshot_errors") == 1
    assert sorted(path.name for path in (tmp_path / "petal.dupefilter").glob("*-*")) == files
    dupefilter.kill()
    dupefilter = open_filter(JOBDIR=tmp_path, PENDING=False, CAPACITY=100)
    assert dupefilter.new(range(400)) == []
    dupefilter.close()


class UnsavableFilter:
    """A filter that cannot be saved."""

    def __init__(self, filter):
        self._filter = filter

    def __getattr__(self, name):
        return getattr(self._filter, name)

    def save(self, path):
        raise OSError("the disk is full")


def test_failed_snapshot_is_tried_again_after_a_growing_pause(open_filter, tmp_path, monkeypatch):
    now = [1000.0]
    clock = SimpleNamespace(monotonic=lambda: now[0], time=time.time)
    monkeypatch.setattr("petal.scrapy.local.time", clock)
    monkeypatch.setattr("petal.scrapy.local.CHECK_INTERVAL", 10)
    dupefilter = open_filter(JOBDIR=tmp_path, PENDING=False, WINDOW=3600)
    snapshot_log = dupefilter.filter._backend._snapshot_log
    os.close(snapshot_log._log)
    snapshot_log._log = os.open("/dev/full", os.O_WRONLY)
    rotate, snapshot_log.rotate = snapshot_log.rotate, _no_space
    for part, (seconds, tries) in enumerate([(0, 1), (59, 1), (1, 2), (119, 2), (1, 3)]):
        now[0] += seconds
        dupefilter.new(range(part * 100, part * 100 + 100))
        assert dupefilter.stat("snapshot_errors") == tries
    snapshot_log.rotate = rotate
    now[0] += 240
    dupefilter.new(range(500, 600))
    dupefilter.kill()
    dupefilter = open_filter(JOBDIR=tmp_path, PENDING=False, WINDOW=3600)
    assert dupefilter.new(range(600)) == []
    dupefilter.close()


def _no_space(_save):
    raise OSError("the disk is full")


def test_missing_made_json_is_an_error_and_nothing_is_removed(open_filter, tmp_path):
    dupefilter = open_filter(JOBDIR=tmp_path)
    dupefilter.new(range(10))
    dupefilter.close()
    made = tmp_path / "petal.dupefilter" / "made.json"
    text = made.read_bytes()
    made.unlink()
    with pytest.raises(petal.FormatError, match=r"made.json: missing, but filter-\d"):
        open_filter(JOBDIR=tmp_path)
    made.write_bytes(text)
    dupefilter = open_filter(JOBDIR=tmp_path)
    assert dupefilter.new(range(10)) == []
    dupefilter.close()


def test_duplicates_are_logged_like_scrapy_does(open_filter, caplog):
    caplog.set_level(logging.DEBUG, logger="petal.scrapy")
    for debug, lines in ((False, 1), (True, 3)):
        caplog.clear()
        dupefilter = open_filter(DUPEFILTER_DEBUG=debug)
        for _ in range(3):
            dupefilter.filter.log(numbered_request(1), dupefilter.crawler.spider)
        assert caplog.text.count("Filtered duplicate request") == lines
        assert dupefilter.crawler.stats.get_value("dupefilter/filtered") == 3
        dupefilter.close()


def test_key_is_the_fingerprint_as_bytes(open_filter, tmp_path):
    dupefilter = open_filter(JOBDIR=tmp_path)
    dupefilter.new(range(3))
    dupefilter.close()
    (path,) = (tmp_path / "petal.dupefilter").glob("filter-*.petal")
    filter = petal.open(path)
    assert all(dupefilter.filter._fingerprint(numbered_request(at)) in filter for at in range(3))
    assert fingerprint(0) not in filter
    made = json.loads((tmp_path / "petal.dupefilter" / "made.json").read_text())
    assert made["kind"] == "grow"


# ---- Adversarial fingerprints ------------------------------------------------------------------


class CollidingFingerprinter:
    """Fingerprints of 20 bytes that collide under the unkeyed hash with any seed.

    The 8 bytes at offset 4 make the hash's last product zero.
    """

    def fingerprint(self, request):
        at = int(request.url.rsplit("/", 1)[1])
        return b"%04x" % at + (0x8BB84B93962EACC9 ^ 20).to_bytes(8, "little") + b"%08x" % at


@pytest.mark.parametrize(
    "options", [{}, {"GROW": False}, {"WINDOW": 3600}, {"MEMORY_LIMIT": "1M"}, {"CAPACITY": 100}]
)
def test_adversarial_fingerprints_do_not_collide(open_filter, options):
    fingerprints = [CollidingFingerprinter().fingerprint(numbered_request(at)) for at in range(500)]
    unkeyed = petal.BloomFilter(1000, 1e-6, seed=7)
    assert len(set(fingerprints)) == 500
    assert sum(unkeyed.add(one) for one in fingerprints) == 1
    dupefilter = open_filter(
        FPR=1e-6, REQUEST_FINGERPRINTER_CLASS="test_scrapy_local.CollidingFingerprinter", **options
    )
    assert dupefilter.new(range(500)) == list(range(500))
    assert dupefilter.new(range(500)) == []
    dupefilter.close()


def test_each_filter_has_a_random_hash_key_which_the_jobdir_keeps(open_filter, tmp_path):
    keys = []
    for folder in ["one", "two"]:
        for _ in range(2):
            dupefilter = open_filter(JOBDIR=tmp_path / folder, CAPACITY=1000)
            dupefilter.new(range(10))
            dupefilter.close()
            (kept,) = (tmp_path / folder / "petal.dupefilter").glob("filter-*")
            keys.append(kept.read_bytes()[48:64])
            assert petal.load(kept).info()["hash"] == "siphash-1-3"
    assert keys[0] == keys[1] != keys[2] == keys[3]


def test_urls_are_compared_after_changes(open_filter):
    def new(dupefilter, url, **arguments):
        return not dupefilter.filter.request_seen(Request(url, **arguments))

    for names in ("url-surt,strip-query=utm_*", " url-surt, strip-query=utm_* "):
        dupefilter = open_filter(KEY_TRANSFORM=names)
        assert new(dupefilter, "https://www.Example.com/a?b=1&utm_id=3#top")
        assert not new(dupefilter, "http://example.com/a?b=1")
        # Method and body are part of the key.
        assert new(dupefilter, "http://example.com/a?b=1", method="POST")
        assert new(dupefilter, "http://example.com/a?b=1", method="POST", body=b"x")
        assert not new(dupefilter, "https://example.com/a?b=1", method="POST", body=b"x")
        assert new(dupefilter, "http://example.com/a?b=2")
        dupefilter.close()
    plain = open_filter()
    assert new(plain, "https://example.com/a") and new(plain, "http://example.com/a")
    plain.close()


def test_jobdir_with_other_changes_is_refused(open_filter, tmp_path):
    first = open_filter(JOBDIR=tmp_path, KEY_TRANSFORM="url-surt")
    assert first.new(range(5)) == list(range(5))
    first.close()
    for names in ("", "url", "url-surt,trim"):
        with pytest.raises(petal.IncompatibleError, match="key_transform 'url-surt', but the settings have"):
            open_filter(JOBDIR=tmp_path, KEY_TRANSFORM=names)
    again = open_filter(JOBDIR=tmp_path, KEY_TRANSFORM="url-surt")
    assert again.new(range(7)) == [5, 6]
    again.close()


def test_requests_seen_cannot_be_imported_with_changes(open_filter, tmp_path):
    (tmp_path / "requests.seen").write_text(fingerprint(1).hex() + "\n")
    with pytest.raises(petal.IncompatibleError, match="of URLs that were not changed"):
        open_filter(JOBDIR=tmp_path, KEY_TRANSFORM="url-surt")
