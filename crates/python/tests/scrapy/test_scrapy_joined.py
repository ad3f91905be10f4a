"""What is joined on a server, by what the server says of it. No server is asked."""

import pytest
import redis

import petal

FIGURES = ["capacity", 4_000_000, "error-rate", "0.0001", "items", 5, "memory", 6, "layers", 1]


@pytest.mark.parametrize(
    "info",
    [
        ["type", "incomplete", "bytes-come", 1, "bytes-in-all", 2, "memory", 3],
        ["type", "counting", *FIGURES],
        ["type", "static", *FIGURES],
    ],
)
def test_a_key_of_a_type_that_will_not_do_is_refused(ask, monkeypatch, info):
    monkeypatch.setattr(redis.Redis, "execute_command", answer(info))
    with pytest.raises(petal.IncompatibleError, match=f"of kind {info[1]}, window None; the"):
        ask(REDIS_URL="redis://localhost:1")


def test_a_filter_that_saturates_is_refused(ask, monkeypatch):
    info = ["type", "bloom", *FIGURES, "saturates", 1]
    monkeypatch.setattr(redis.Redis, "execute_command", answer(info))
    with pytest.raises(petal.IncompatibleError, match="key bare:dupefilter: .* saturates"):
        ask(REDIS_URL="redis://localhost:1", GROW=False)
    monkeypatch.setattr(redis.Redis, "execute_command", answer(info[:-2]))
    ask(REDIS_URL="redis://localhost:1", GROW=False).close()


def test_a_filter_that_grows_is_joined_by_its_name(ask, monkeypatch):
    monkeypatch.setattr(redis.Redis, "execute_command", answer(["type", "scalable", *FIGURES]))
    asked = ask(REDIS_URL="redis://localhost:1")
    asked.close()
    assert asked.stat("inserted") == 5


@pytest.mark.parametrize("quoted", ["ERR item exists", "ERR not found", "unknown command"])
def test_a_damaged_filter_is_refused_whatever_its_error_quotes(ask, monkeypatch, quoted):
    damaged = f"the filter is damaged: a command of the log failed: {quoted}; delete the key"
    calls = []

    def failing(_client, command, *_words):
        calls.append(command)
        raise redis.ResponseError(damaged)

    monkeypatch.setattr(redis.Redis, "execute_command", failing)
    with pytest.raises(redis.ResponseError, match=f"key bare:dupefilter: {damaged}"):
        ask(REDIS_URL="redis://localhost:1")
    assert calls == ["PETAL.RESERVE"]


def test_a_filter_that_becomes_damaged_is_not_made_again(ask, monkeypatch, caplog):
    calls = []

    def answering(_client, command, *_words):
        calls.append(command)
        if command == "PETAL.INFO":
            return ["type", "scalable", *FIGURES]
        if command == "PETAL.RESERVE":
            raise redis.ResponseError("item exists")
        raise redis.ResponseError("the filter is damaged: ERR not found; delete the key")

    monkeypatch.setattr(redis.Redis, "execute_command", answering)
    asked = ask(REDIS_URL="redis://localhost:1")
    assert asked.new([1]) == [1]
    assert calls.count("PETAL.RESERVE") == 1
    assert "the server refuses the request (the filter is damaged" in caplog.text


def answer(info):
    """As the server does where the key is there."""

    def answering(_client, command, *_words):
        if command == "PETAL.INFO":
            return info
        raise redis.ResponseError("item exists")

    return answering
