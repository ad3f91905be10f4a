"""The filter in one process: settings, growth, alarm, window, exact tier, JOBDIR."""

import json
import logging
import os
import time
from types import SimpleNamespace

import pytest
from conftest import fingerprint, number

import petal
from petal.scrapy import local


def test_what_was_seen_is_seen(ask):
    asked = ask()
    assert asked.new(range(2000)) == list(range(2000))
    assert asked.new(range(2000)) == []
    asked.close()
    assert asked.stat("inserted") == 2000
    assert asked.stat("capacity") == 4_000_000


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"CAPACITY": "many"}, "CAPACITY: expected a whole number above 0, found 'many'"),
        ({"CAPACITY": 0}, "CAPACITY: expected a whole number"),
        ({"RATE": 1.5}, "RATE: expected a number above 0 and below 1"),
        ({"MEMORY": "much"}, "MEMORY: expected bytes"),
        ({"CAPACTIY": 5}, "CAPACTIY: there is no such setting"),
        ({"MEMORY": "1M", "CAPACITY": 5}, "one follows from the other"),
        ({"MEMORY": "1M", "GROW": True}, "does not grow"),
        ({"WINDOW": 60, "GROW": True}, "does not grow"),
        ({"WINDOW": 60, "EXACT": True}, "do not go together"),
        ({"REDIS_URL": "redis://localhost", "EXACT": True}, "do not go together"),
    ],
)
def test_settings_that_cannot_be_are_refused(ask, caplog, words, told):
    with pytest.raises(ValueError, match=told):
        ask(**words)
    assert told in caplog.text


def test_a_filter_that_is_too_small_grows(ask):
    asked = ask(CAPACITY=100, RATE=0.001)
    assert len(asked.new(range(3000))) > 2980
    asked.close()
    assert asked.stat("layers") > 1
    assert asked.stat("overfull") is None


def test_a_filter_that_is_too_small_and_may_not_grow_raises_the_alarm_once(ask, caplog):
    asked = ask(CAPACITY=500, RATE=0.01, GROW=False)
    assert len(asked.new(range(490))) > 450
    assert asked.stat("overfull") is None and not caplog.records
    lost = 5000 - len(asked.new(range(1000, 6000)))
    assert lost > 500
    (alarm,) = [line for line in caplog.records if line.levelno == logging.ERROR]
    assert "Duplicate filter is full: 500 requests" in alarm.getMessage()
    assert asked.stat("overfull") == 1
    asked.close()


def test_memory_says_how_much_it_takes_at_most(ask):
    asked = ask(MEMORY="1M", RATE=0.001)
    size, capacity = asked.stat("bytes"), asked.stat("capacity")
    assert 0.9 * (1 << 20) < size <= 1 << 20
    # 14.4 bits a key are the least that any Bloom filter takes.
    assert 400_000 < capacity < (8 << 20) / 14.3
    asked.close()


def test_memory_may_be_nearly_all_that_the_system_gives_and_no_more(ask, monkeypatch):
    made = local._of_capacity

    def given(plan, capacity, secret):
        filter = made(plan, capacity, secret)
        if filter.memory_bytes > 1.2 * (1 << 20):
            raise petal.MemoryCapError("the system refused")
        return filter

    monkeypatch.setattr(local, "_of_capacity", given)
    asked = ask(MEMORY="1M")
    assert 0.9 * (1 << 20) < asked.stat("bytes") <= 1 << 20
    asked.close()
    with pytest.raises(petal.MemoryCapError, match="the system refused"):
        ask(MEMORY="2M")


def test_a_window_forgets_and_what_comes_again_does_not_stay(ask, monkeypatch):
    now = [1_800_000_000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    asked = ask(WINDOW=3600, CAPACITY=1000)
    assert asked.new(range(10)) == list(range(10))
    for _ in range(5):
        # Seen again and again: it is due all the same.
        now[0] += 600
        assert asked.new(range(10)) == []
    now[0] += 3600
    assert asked.new(range(10)) == list(range(10))
    asked.close()


def test_a_window_raises_the_alarm_when_more_comes_than_planned_and_not_before(
    ask, monkeypatch, caplog
):
    now = [1_800_000_000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    monkeypatch.setattr("petal.scrapy.local.STEP", 20)
    asked = ask(WINDOW=3600, CAPACITY=3000, RATE=0.001)
    for part in range(8):
        asked.new(range(part * 1000, part * 1000 + 990))
        now[0] += 1200
    assert asked.stat("overfull") is None and not caplog.records
    asked.close()
    assert 0.0005 < asked.stat("expected_rate") <= 0.001
    # All of a window's in a third of it.
    asked = ask(WINDOW=3600, CAPACITY=3000, RATE=0.001)
    asked.new(range(2900))
    (alarm,) = [line for line in caplog.records if line.levelno == logging.ERROR]
    assert "is full: more requests in this part of the window" in alarm.getMessage()
    assert asked.stat("overfull") == 1
    asked.close()


def test_a_part_of_a_small_window_that_becomes_full_is_told_at_once(ask, monkeypatch):
    now = [1_800_000_000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    asked = ask(WINDOW=3600, CAPACITY=300)
    asked.new(range(50))
    now[0] += 1200
    asked.new(range(50, 149))
    assert asked.stat("overfull") is None
    asked.new(range(149, 151))
    assert asked.stat("overfull") == 1
    asked.close()


def test_with_the_exact_tier_nothing_is_lost(ask, tmp_path):
    for words in ({}, {"JOBDIR": tmp_path}):
        asked = ask(EXACT=True, RATE=0.3, CAPACITY=100, GROW=False, **words)
        assert asked.new(range(3000)) == list(range(3000))
        assert asked.new(range(3000)) == []
        assert asked.stat("false_positives") > 500
        asked.close()


def test_the_exact_tier_and_the_filter_survive_a_kill_together(ask, tmp_path):
    words = {"EXACT": True, "RATE": 0.3, "CAPACITY": 100, "GROW": False, "JOBDIR": tmp_path}
    asked = ask(**words)
    asked.new(range(1000))
    asked.kill()
    asked = ask(**words)
    assert asked.new(range(1000)) == []
    assert asked.new(range(1000, 2000)) == list(range(1000, 2000))
    asked.close()


def test_what_was_seen_survives_a_kill_and_a_log_that_is_torn(ask, tmp_path):
    asked = ask(JOBDIR=tmp_path)
    asked.new(range(1000))
    asked.kill()
    (log,) = (tmp_path / "petal.dupefilter").glob("log-*")
    os.truncate(log, log.stat().st_size - 3)
    asked = ask(JOBDIR=tmp_path)
    assert asked.stat("replayed") == 999
    assert asked.new(range(1000)) == [999]
    asked.close()


def test_a_log_that_ends_in_zeros_is_read_up_to_them(ask, tmp_path):
    asked = ask(JOBDIR=tmp_path)
    asked.new(range(100))
    asked.kill()
    (log,) = (tmp_path / "petal.dupefilter").glob("log-*")
    with log.open("ab") as file:
        file.write(bytes(4096))
    asked = ask(JOBDIR=tmp_path)
    assert asked.stat("replayed") == 100
    asked.close()


def test_snapshots_are_made_on_the_way_and_a_kill_between_two_steps_loses_nothing(
    ask, tmp_path, monkeypatch
):
    monkeypatch.setattr("petal.scrapy.journal.LEAST_LOG", 2000)
    monkeypatch.setattr("petal.scrapy.local.STEP", 20)
    asked = ask(JOBDIR=tmp_path, CAPACITY=100, RATE=0.001)
    asked.new(range(400))
    folder = tmp_path / "petal.dupefilter"
    names = sorted(path.name for path in folder.glob("*-*") if "sqlite" not in path.name)
    assert len(names) == 2 and "log-1" not in names
    # Killed after a log was begun and before its snapshot was saved.
    journal = asked.filter._tier._journal
    with pytest.raises(KeyboardInterrupt):
        journal.rotate(_interrupted)
    asked.new(range(400, 450))
    asked.kill()
    asked = ask(JOBDIR=tmp_path, CAPACITY=100, RATE=0.001)
    assert asked.new(range(450)) == []
    asked.close()


def test_what_a_snapshot_left_that_was_killed_halfway_is_removed(ask, tmp_path):
    asked = ask(JOBDIR=tmp_path)
    asked.new(range(10))
    folder = tmp_path / "petal.dupefilter"
    (folder / ".petal-a1B2c3.tmp").write_bytes(bytes(1000))
    asked.kill()
    asked = ask(JOBDIR=tmp_path)
    assert not list(folder.glob(".petal-*"))
    assert asked.new(range(10)) == []
    asked.close()


def _interrupted(_path):
    raise KeyboardInterrupt


@pytest.mark.parametrize("form", ["binary", "hex", "mixed"])
def test_scrapys_own_file_is_taken_over_once_and_left_as_it_was(ask, tmp_path, form):
    asked = ask()
    prints = [asked.filter._fingerprint(number(at)) for at in range(500)]
    asked.close()
    binary = [len(print_).to_bytes(2, "big") + print_ for print_ in prints]
    lines = [print_.hex().encode() + b"\n" for print_ in prints]
    whole = {"binary": binary, "hex": lines, "mixed": lines[:250] + binary[250:]}[form]
    # The last one is torn.
    content = b"".join(whole)[:-2]
    file = tmp_path / "requests.seen"
    file.write_bytes(content)
    asked = ask(JOBDIR=tmp_path)
    assert asked.stat("imported") == 499
    assert asked.new(range(500)) == [499]
    asked.close()
    assert file.read_bytes() == content
    file.write_bytes(content + binary[0])
    asked = ask(JOBDIR=tmp_path)
    assert asked.stat("imported") is None
    assert asked.new(range(500)) == []
    asked.close()


def test_a_file_that_is_not_scrapys_is_refused(ask, tmp_path):
    (tmp_path / "requests.seen").write_bytes(b"deadbeef, and then something else\n" * 3)
    with pytest.raises(petal.FormatError, match="requests.seen: at byte 0"):
        ask(JOBDIR=tmp_path)
    # Nothing half-made stays behind.
    (tmp_path / "requests.seen").unlink()
    asked = ask(JOBDIR=tmp_path)
    assert asked.new(range(5)) == list(range(5))
    asked.close()


@pytest.mark.parametrize(
    ("then", "told"),
    [
        ({"WINDOW": 60}, "made with kind 'grow', the settings say 'window'"),
        ({"GROW": False}, "made with kind 'grow', the settings say 'fixed'"),
        ({"EXACT": True}, "made with exact False, the settings say True"),
        ({"MEMORY": "1M"}, "made with kind 'grow', the settings say 'fixed'"),
        # No server is asked.
        ({"REDIS_URL": "redis://localhost:1"}, "made with server False, the settings say True"),
    ],
)
def test_a_jobdir_made_for_another_kind_is_refused(ask, tmp_path, then, told):
    ask(JOBDIR=tmp_path).close()
    with pytest.raises(petal.IncompatibleError, match=told):
        ask(JOBDIR=tmp_path, **then)


def test_what_scrapys_own_filter_had_seen_is_not_taken_to_a_server(ask, tmp_path):
    (tmp_path / "requests.seen").touch()
    with pytest.raises(petal.IncompatibleError, match="cannot be taken to a server"):
        ask(JOBDIR=tmp_path, REDIS_URL="redis://localhost:1")


def test_a_jobdir_made_for_another_size_goes_on_and_says_so(ask, tmp_path, caplog):
    asked = ask(JOBDIR=tmp_path, CAPACITY=1000)
    asked.new(range(10))
    asked.close()
    asked = ask(JOBDIR=tmp_path, CAPACITY=5000)
    assert "stays as it was made: capacity 1000" in caplog.text
    assert asked.stat("capacity") == 1000
    assert asked.new(range(10)) == []
    asked.close()


def test_a_jobdir_from_before_there_were_servers_goes_on(ask, tmp_path, caplog):
    ask(JOBDIR=tmp_path).close()
    path = tmp_path / "petal.dupefilter" / "made.json"
    made = json.loads(path.read_text())
    del made["server"]
    path.write_text(json.dumps(made))
    ask(JOBDIR=tmp_path).close()
    assert "stays as it was made" not in caplog.text


def test_a_jobdir_in_use_is_refused(ask, tmp_path):
    asked = ask(JOBDIR=tmp_path)
    with pytest.raises(petal.InputError, match="another process uses it"):
        ask(JOBDIR=tmp_path)
    asked.close()
    ask(JOBDIR=tmp_path).close()


@pytest.mark.parametrize("name", ["filter-*.petal", "made.json"])
def test_a_damaged_jobdir_is_refused_with_what_to_do(ask, tmp_path, name):
    ask(JOBDIR=tmp_path).close()
    (path,) = (tmp_path / "petal.dupefilter").glob(name)
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(petal.FormatError, match="to begin anew"):
        ask(JOBDIR=tmp_path)


@pytest.mark.parametrize("name", ["pending.sqlite3", "exact.sqlite3"])
def test_a_base_that_is_none_is_told_with_its_path(ask, tmp_path, caplog, name):
    ask(JOBDIR=tmp_path, EXACT=True).close()
    (tmp_path / "petal.dupefilter" / name).write_bytes(b"no base" * 1000)
    for _ in range(2):
        # The second time too: the JOBDIR is let go of.
        with pytest.raises(petal.FormatError, match=f"{name}: file is not a database; restore"):
            ask(JOBDIR=tmp_path, EXACT=True)
    assert caplog.text.count("file is not a database; restore it") == 2


def test_a_start_or_an_end_that_fails_lets_go_of_the_jobdir(ask, tmp_path, caplog, monkeypatch):
    monkeypatch.setattr("petal.scrapy.dupefilter.Local", _broken)
    for _ in range(2):
        with pytest.raises(OSError, match="broken"):
            ask(JOBDIR=tmp_path)
    assert caplog.text.count("Duplicate filter cannot begin: broken") == 2
    monkeypatch.undo()
    asked = ask(JOBDIR=tmp_path)
    monkeypatch.setattr(asked.filter._tier, "close", _broken)
    with pytest.raises(OSError, match="broken"):
        asked.close()
    ask(JOBDIR=tmp_path).close()


def _broken(*_):
    raise OSError("broken")


def test_a_lock_that_fails_for_another_reason_is_told_as_such(ask, tmp_path, monkeypatch):
    monkeypatch.setattr("petal.scrapy.journal.fcntl.flock", _broken)
    with pytest.raises(OSError, match="^broken$"):
        ask(JOBDIR=tmp_path)


def test_a_window_survives_a_kill_with_its_times(ask, tmp_path, monkeypatch):
    now = [1_800_000_000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    asked = ask(JOBDIR=tmp_path, WINDOW=3600, CAPACITY=1000)
    asked.new(range(10))
    now[0] += 3000
    asked.new(range(10, 20))
    asked.kill()
    now[0] += 2000
    asked = ask(JOBDIR=tmp_path, WINDOW=3600, CAPACITY=1000)
    assert asked.new(range(10, 20)) == []
    assert asked.new(range(10)) == list(range(10))
    asked.close()


def test_a_disk_that_takes_no_more_ends_the_log_and_not_the_crawl(ask, tmp_path, caplog):
    asked = ask(JOBDIR=tmp_path, PENDING=False)
    asked.new(range(10))
    os.close(asked.filter._tier._journal._log)
    asked.filter._tier._journal._log = os.open("/dev/full", os.O_WRONLY)
    assert asked.new(range(20)) == list(range(10, 20))
    assert asked.stat("log_errors") == 1
    assert "cannot write its log" in caplog.text
    # Once the disk takes more, a snapshot makes up for what the log has not.
    asked.new(range(20, 1020))
    asked.kill()
    asked = ask(JOBDIR=tmp_path, PENDING=False)
    assert asked.new(range(1020)) == []
    asked.close()


def test_a_snapshot_that_fails_leaves_the_log_as_it_was(ask, tmp_path, monkeypatch):
    monkeypatch.setattr("petal.scrapy.journal.LEAST_LOG", 2000)
    monkeypatch.setattr("petal.scrapy.local.STEP", 20)
    asked = ask(JOBDIR=tmp_path, PENDING=False, CAPACITY=100)
    files = sorted(path.name for path in (tmp_path / "petal.dupefilter").glob("*-*"))
    tier = asked.filter._tier
    tier._filter = Unsaved(tier._filter)
    assert len(asked.new(range(400))) == 400
    assert asked.stat("snapshot_errors") == 1
    assert sorted(path.name for path in (tmp_path / "petal.dupefilter").glob("*-*")) == files
    asked.kill()
    asked = ask(JOBDIR=tmp_path, PENDING=False, CAPACITY=100)
    assert asked.new(range(400)) == []
    asked.close()


class Unsaved:
    """A filter that no disk takes."""

    def __init__(self, filter):
        self._filter = filter

    def __getattr__(self, name):
        return getattr(self._filter, name)

    def save(self, path):
        raise OSError("the disk is full")


def test_a_snapshot_that_fails_is_tried_again_by_the_clock(ask, tmp_path, monkeypatch):
    now = [1000.0]
    clock = SimpleNamespace(monotonic=lambda: now[0], time=time.time)
    monkeypatch.setattr("petal.scrapy.local.time", clock)
    monkeypatch.setattr("petal.scrapy.local.STEP", 10)
    asked = ask(JOBDIR=tmp_path, PENDING=False, WINDOW=3600)
    journal = asked.filter._tier._journal
    os.close(journal._log)
    journal._log = os.open("/dev/full", os.O_WRONLY)
    rotate, journal.rotate = journal.rotate, _no_space
    for part, (seconds, tries) in enumerate([(0, 1), (59, 1), (1, 2), (119, 2), (1, 3)]):
        now[0] += seconds
        asked.new(range(part * 100, part * 100 + 100))
        assert asked.stat("snapshot_errors") == tries
    journal.rotate = rotate
    now[0] += 240
    asked.new(range(500, 600))
    asked.kill()
    asked = ask(JOBDIR=tmp_path, PENDING=False, WINDOW=3600)
    assert asked.new(range(600)) == []
    asked.close()


def _no_space(_save):
    raise OSError("the disk is full")


def test_without_made_json_nothing_is_removed(ask, tmp_path):
    asked = ask(JOBDIR=tmp_path)
    asked.new(range(10))
    asked.close()
    made = tmp_path / "petal.dupefilter" / "made.json"
    text = made.read_bytes()
    made.unlink()
    with pytest.raises(petal.FormatError, match=r"made.json: missing, though filter-\d"):
        ask(JOBDIR=tmp_path)
    made.write_bytes(text)
    asked = ask(JOBDIR=tmp_path)
    assert asked.new(range(10)) == []
    asked.close()


def test_duplicates_are_logged_as_scrapy_does(ask, caplog):
    caplog.set_level(logging.DEBUG, logger="petal.scrapy")
    for debug, lines in ((False, 1), (True, 3)):
        caplog.clear()
        asked = ask(DUPEFILTER_DEBUG=debug)
        for _ in range(3):
            asked.filter.log(number(1), asked.crawler.spider)
        assert caplog.text.count("Filtered duplicate request") == lines
        assert asked.crawler.stats.get_value("dupefilter/filtered") == 3
        asked.close()


def test_the_bytes_of_the_fingerprint_are_the_key(ask, tmp_path):
    asked = ask(JOBDIR=tmp_path)
    asked.new(range(3))
    asked.close()
    (path,) = (tmp_path / "petal.dupefilter").glob("filter-*.petal")
    filter = petal.open(path)
    assert all(asked.filter._fingerprint(number(at)) in filter for at in range(3))
    assert fingerprint(0) not in filter
    made = json.loads((tmp_path / "petal.dupefilter" / "made.json").read_text())
    assert made["kind"] == "grow"


# ---- Fingerprints that an adversary prepares ----------------------------------------------------


class Prepared:
    """Fingerprints of 20 bytes that collide under the published hash, whatever its seed is.

    The word 16 bytes before the end makes the hash's last product zero.
    """

    def fingerprint(self, request):
        at = int(request.url.rsplit("/", 1)[1])
        return b"%04x" % at + (0x8BB84B93962EACC9 ^ 20).to_bytes(8, "little") + b"%08x" % at


@pytest.mark.parametrize(
    "words", [{}, {"GROW": False}, {"WINDOW": 3600}, {"MEMORY": "1M"}, {"CAPACITY": 100}]
)
def test_prepared_fingerprints_do_not_collide(ask, words):
    prints = [Prepared().fingerprint(number(at)) for at in range(500)]
    plain = petal.BloomFilter(1000, 1e-6, seed=7)
    assert len(set(prints)) == 500 and sum(plain.add(one) for one in prints) == 1
    asked = ask(RATE=1e-6, REQUEST_FINGERPRINTER_CLASS="test_scrapy_local.Prepared", **words)
    assert asked.new(range(500)) == list(range(500))
    assert asked.new(range(500)) == []
    asked.close()


def test_every_filter_has_a_random_key_and_a_jobdir_keeps_it(ask, tmp_path):
    keys = []
    for folder in ["one", "two"]:
        for _ in range(2):
            asked = ask(JOBDIR=tmp_path / folder, CAPACITY=1000)
            asked.new(range(10))
            asked.close()
            (kept,) = (tmp_path / folder / "petal.dupefilter").glob("filter-*")
            keys.append(kept.read_bytes()[48:64])
            assert petal.load(kept).info()["hash"] == "siphash-1-3"
    assert keys[0] == keys[1] != keys[2] == keys[3]
