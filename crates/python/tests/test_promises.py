"""Each promise of the pages and docstrings, `promises.toml`, has a test; and tests of promises that no
other file holds."""

import importlib.metadata
import inspect
import os
import re
import threading
import tomllib
from pathlib import Path

import numpy as np
import petal
import petal.dask
import pytest
from environments import wheel

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
TABLE = tomllib.loads((HERE / "promises.toml").read_text())
WITHOUT = TABLE.pop("without")
PROMISES = [(page, words) for page, promises in TABLE.items() for words in promises]


def plain(text):
    """Without line breaks, and what a table or a comment of code puts around words."""
    return " ".join(text.split())


def text_of(page):
    if page.endswith(".md"):
        return (ROOT / page).read_text()
    found = petal
    for name in page.split(".")[1:]:
        found = getattr(found, name)
    return inspect.getdoc(found)


@pytest.mark.parametrize(("page", "words"), PROMISES, ids=[f"{p}: {w}" for p, w in PROMISES])
def test_a_promise_has_its_words_and_its_tests(page, words):
    assert words in plain(text_of(page)), f"{page} no longer says this: change promises.toml, too"
    for test in TABLE[page][words]:
        file, name = test.split("::")
        assert re.search(rf"^def {name}\(", (HERE / file).read_text(), re.M), f"no such test: {test}"
    assert TABLE[page][words]


def test_every_section_of_a_page_promises_something_or_is_listed():
    for page in (page for page in TABLE if page.endswith(".md")):
        body = re.sub(r"^```.*?^```$", "", (ROOT / page).read_text(), flags=re.M | re.S)
        sections = re.split(r"^##+ (.*)$", body, flags=re.M)
        blocks = re.split(r"^##+ (?!.*:$)(.*)$", (ROOT / page).read_text(), flags=re.M)
        text = dict(zip(blocks[1::2], map(plain, blocks[2::2])))
        for name in sections[1::2]:
            has = any(words in text[name] for words in TABLE[page])
            assert has != (f"{page}: {name}" in WITHOUT), f"{page}: {name}"


def test_every_function_of_the_package_says_what_it_promises():
    for name in petal.__all__:
        assert name == "__version__" or inspect.getdoc(getattr(petal, name)), name
    for name in ["common", "diff", "dedup", "build", "check", "open", "load"]:
        assert f"petal.{name}" in TABLE


def test_the_wheel_is_for_all_versions_and_needs_nothing():
    needs = importlib.metadata.requires("petal")
    assert needs and all("extra ==" in need for need in needs)
    assert "-cp311-abi3-" in wheel().name


def test_help_has_every_argument():
    given = {"capacity": 10, "rate": 0.1, "memory": None, "seed": 1, "secret": None}
    assert petal.BloomFilter(**given)
    assert set(inspect.signature(petal.BloomFilter).parameters) == set(given)
    for name in (name for name in petal.__all__ if name.endswith(("Filter", "Cascade"))):
        assert name == "Filter" or inspect.signature(getattr(petal, name)).parameters


def test_a_secret_is_kept_in_the_file_and_nobody_aims_at_it(tmp_path):
    secret = os.urandom(16)
    one = petal.BloomFilter(1000, 1e-6, secret=secret)
    # Keys that the hash without a secret takes for one.
    keys = [bytes.fromhex("a3d433d42ea6334b") + n.to_bytes(8, "little") + bytes(16) for n in range(100)]
    assert one.update(keys) == 100
    one.save(tmp_path / "f")
    assert secret in (tmp_path / "f").read_bytes()
    assert petal.open(tmp_path / "f").contains_batch(keys) == [True] * 100
    other = petal.BloomFilter(1000, 1e-6, secret=os.urandom(16))
    other.update(keys)
    with pytest.raises(petal.IncompatibleError):
        one | other


@pytest.mark.parametrize("kind", [petal.CountingBloomFilter, petal.ClassicCountingBloomFilter])
def test_a_counter_counts_to_half_of_its_width(kind):
    for width in range(2, 9):
        most = 2 ** (width - 1)
        one = kind(1000, 1e-6, width=width)
        one.update(["often"] * (most + 5) + ["seldom"] * (most - 1))
        assert (one.count("often"), one.count("seldom")) == (most, most - 1)
        for _ in range(most + 5):
            one.discard("often")
        assert "often" in one
        assert [one.discard("seldom") for _ in range(most)] == [True] * (most - 1) + [False]


def test_an_array_may_change_while_it_is_read():
    keys, stop = np.array(["ab", "cd"] * 200_000), threading.Event()

    def change():
        while not stop.is_set():
            keys[::2], keys[1::2] = keys[1::2].copy(), keys[::2].copy()

    other = threading.Thread(target=change)
    other.start()
    one = petal.BloomFilter(1000, 1e-9)
    try:
        for _ in range(5):
            one.update(keys)
    finally:
        stop.set()
        other.join()
    # Each key was one or the other, or letters of both.
    assert one.estimated_len < 6 and one.contains_batch(["ab", "cd"]) == [True, True]
