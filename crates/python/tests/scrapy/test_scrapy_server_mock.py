"""Joining a filter on a server, with simulated replies of the server."""

import pytest
import redis

import petal

INFO = ["capacity", 4_000_000, "target-fpr", "0.0001", "items", 5, "memory", 6, "layers", 1]


@pytest.mark.parametrize(
    "info",
    [
        ["type", "incomplete", "bytes-received", 1, "bytes-total", 2, "memory", 3],
        ["type", "counting", *INFO],
        ["type", "static", *INFO],
    ],
)
def test_existing_filter_of_an_unsupported_type_is_refused(open_filter, monkeypatch, info):
    monkeypatch.setattr(redis.Redis, "execute_command", replies(info))
    with pytest.raises(petal.IncompatibleError, match=f"of kind {info[1]}, window None; the"):
        open_filter(REDIS_URL="redis://localhost:1")


def test_saturating_filter_is_refused(open_filter, monkeypatch):
    info = ["type", "bloom", *INFO, "saturates", 1]
    monkeypatch.setattr(redis.Redis, "execute_command", replies(info))
    with pytest.raises(petal.IncompatibleError, match="key empty:dupefilter: .* saturates"):
        open_filter(REDIS_URL="redis://localhost:1", GROW=False)
    monkeypatch.setattr(redis.Redis, "execute_command", replies(info[:-2]))
    open_filter(REDIS_URL="redis://localhost:1", GROW=False).close()


def test_scalable_filter_is_joined(open_filter, monkeypatch):
    monkeypatch.setattr(redis.Redis, "execute_command", replies(["type", "scalable", *INFO]))
    dupefilter = open_filter(REDIS_URL="redis://localhost:1")
    dupefilter.close()
    assert dupefilter.stat("inserted") == 5


@pytest.mark.parametrize("quoted", ["ERR item exists", "ERR not found", "unknown command"])
def test_damaged_filter_is_refused_if_its_error_quotes_another(open_filter, monkeypatch, quoted):
    damaged = f"the filter is damaged: a command of the log failed: {quoted}; delete the key"
    calls = []

    def execute(_client, command, *_args):
        calls.append(command)
        raise redis.ResponseError(damaged)

    monkeypatch.setattr(redis.Redis, "execute_command", execute)
    with pytest.raises(redis.ResponseError, match=f"key empty:dupefilter: {damaged}"):
        open_filter(REDIS_URL="redis://localhost:1")
    assert calls == ["PETAL.RESERVE"]


def test_filter_that_becomes_damaged_is_not_created_again(open_filter, monkeypatch, caplog):
    calls = []

    def execute(_client, command, *_args):
        calls.append(command)
        if command == "PETAL.INFO":
            return ["type", "scalable", *INFO]
        if command == "PETAL.RESERVE":
            raise redis.ResponseError("item exists")
        raise redis.ResponseError("the filter is damaged: ERR not found; delete the key")

    monkeypatch.setattr(redis.Redis, "execute_command", execute)
    dupefilter = open_filter(REDIS_URL="redis://localhost:1")
    assert dupefilter.new([1]) == [1]
    assert calls.count("PETAL.RESERVE") == 1
    assert "the server refuses the request (the filter is damaged" in caplog.text


def test_changes_to_urls_are_a_part_of_the_servers_key(open_filter, monkeypatch):
    keys = set()

    def execute(_client, command, key, *_args):
        keys.add(key)
        return {"PETAL.INFO": ["type", "scalable", *INFO], "BF.INSERT": [1]}.get(command, b"OK")

    monkeypatch.setattr(redis.Redis, "execute_command", execute)
    for names, key in {"": "empty:dupefilter", "trim,url": "empty:dupefilter:trim,url"}.items():
        keys.clear()
        dupefilter = open_filter(REDIS_URL="redis://localhost:1", KEY_TRANSFORM=names)
        assert dupefilter.new(range(1)) == [0]
        dupefilter.close()
        assert keys == {key}


def replies(info):
    """Returns the replies of a server whose key exists."""

    def execute(_client, command, *_args):
        if command == "PETAL.INFO":
            return info
        raise redis.ResponseError("item exists")

    return execute
