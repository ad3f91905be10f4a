"""`petal.seen_before`: calls with arguments seen before are skipped."""

import asyncio
import datetime as dt
import doctest
import inspect
import threading
from decimal import Decimal
from uuid import UUID

import numpy as np
import petal
import pytest
from petal._petal import _key_of_call


def test_repeated_calls_return_the_default() -> None:
    calls = []

    @petal.seen_before(1000, fpr=1e-6, default="again")
    def visit(url: str, *, depth: int = 0) -> str:
        """Visits a page."""
        calls.append((url, depth))
        return url.upper()

    assert visit("a") == "A" and visit("a") == "again" and visit("b") == "B"
    # Another way to pass an argument is another key.
    assert visit("a", depth=1) == "A" and visit("a", depth=1) == "again" and visit("a", depth=2) == "A"
    assert calls == [("a", 0), ("b", 0), ("a", 1), ("a", 2)]
    assert visit.__name__ == "visit" and visit.__doc__ == "Visits a page." and visit.__wrapped__("a") == "A"
    assert isinstance(visit.filter, petal.BloomFilter) and visit.filter.capacity == 1000
    assert "a" in visit.filter and ("a", "depth", 1) not in visit.filter
    visit.filter.clear()
    assert visit("a") == "A"


def test_key_and_filter_are_the_callers() -> None:
    seen = petal.ScalableBloomFilter(10)

    class Crawler:
        @petal.seen_before(seen, key=lambda self, url: petal.transform_key(url, ["url-surt"]))
        def visit(self, url: str) -> str:
            return url

    crawler = Crawler()
    assert crawler.visit("http://www.a.com/") == "http://www.a.com/" and crawler.visit("https://A.com") is None
    assert "com,a)/" in seen and Crawler.visit.filter is seen


def test_arguments_stay_seen_after_an_exception() -> None:
    @petal.seen_before(10)
    def fail(number: int) -> None:
        raise LookupError

    with pytest.raises(LookupError):
        fail(1)
    assert fail(1) is None
    with pytest.raises(TypeError, match="a key is"):
        fail(1.5)  # type: ignore[arg-type]
    with pytest.raises(petal.UnsupportedError):
        petal.seen_before(petal.StaticFilter(["a"]))(fail)("b")


NESTED = (((),), ((), ()), ((("a",),),), (("a", ""),), (("a",), ""))

#: Calls of which no two are the same.
CALLS = [
    ((), {}), (("",), {}), ((b"",), {}), (((),), {}), (("", ""), {}), ((1, 2), {}), (((1, 2),), {}), ((12,), {}),
    ((1, "2"), {}), (("1", 2), {}), (("12",), {}), ((b"12",), {}), (((1).to_bytes(8, "little"),), {}),
    (("a",), {}), ((b"a",), {}), ((("a",),), {}), ((b"\x01\0\0\0a",), {}), (("a", "depth", 1), {}), (("a",), {"depth": 1}),
    (("a",), {"depth": 2}), ((), {"url": "a"}), ((), {"url": "a", "depth": 1}), ((), {"a": "url", "depth": 1}),
    ((), {"a": "b", "c": "d"}), ((), {"a": "b"}), (("a", "b"), {}), (("ab",), {}), (("a", "bs\x01"), {}), (("as\x01\0\0\0b",), {}),
    ((dt.date(2024, 1, 1),), {}), (("2024-01-01",), {}), ((dt.datetime(2024, 1, 1),), {}), ((Decimal(1),), {}),
    ((UUID(int=5),), {}), ((UUID(int=5).bytes,), {}), *(((nested,), {}) for nested in NESTED), (NESTED, {}),
]  # fmt: skip


def test_different_calls_have_different_keys() -> None:
    made = []
    call = petal.seen_before(10_000, fpr=1e-12)(lambda *args, **kwargs: made.append((args, kwargs)))
    for args, kwargs in CALLS * 2:
        call(*args, **kwargs)
    assert made == CALLS
    # The order of names does not count, nor how an equal value is written.
    for args, kwargs in [((), {"depth": 1, "url": "a"}), ((True, 2), {}), ((np.int64(1), 2), {}), ((bytearray(b"a"),), {})]:
        call(*args, **kwargs)
    assert made == CALLS
    # A call with one text is the key of the text, and no other call is a text.
    texts = petal.BloomFilter(10, 1e-12)
    assert petal.seen_before(texts)(len)("a") == 1 and "a" in texts
    assert all(_key_of_call(*args, **kwargs)[:1] == b"\xff" for args, kwargs in CALLS if not isinstance((args or [0])[0], str))


def test_nested_arguments_are_limited() -> None:
    nested: tuple[object, ...] = ()
    for _ in range(200_000):
        nested = (nested,)
    with pytest.raises(ValueError, match="nested more than 100 times"):
        petal.seen_before(10)(len)(nested)


def test_async_function_is_awaited() -> None:
    @petal.seen_before(10, default="again")
    async def visit(url: str) -> str:
        await asyncio.sleep(0)
        return url

    async def run() -> list[str]:
        return [await visit("a"), await visit("a")]

    assert asyncio.run(run()) == ["a", "again"] and inspect.iscoroutinefunction(visit)


def test_one_of_many_threads_gets_through() -> None:
    calls = []
    once = petal.seen_before(10_000, fpr=1e-9)(calls.append)
    threads = [threading.Thread(target=lambda: [once(number) for number in range(2000)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(calls) == list(range(2000))


def test_example_runs() -> None:
    assert doctest.run_docstring_examples(petal.seen_before, {"petal": petal}) is None
    finder = doctest.DocTestFinder().find(petal.seen_before, globs={"petal": petal})
    assert doctest.DocTestRunner().run(finder[0]).failed == 0
