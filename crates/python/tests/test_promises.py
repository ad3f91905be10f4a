"""Each statement of pages and docstrings in `promises.toml` has tests; some of them are here."""

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
STATEMENTS = [(page, text) for page, statements in TABLE.items() for text in statements]


def unwrap(text):
    """Returns the text without line breaks."""
    return " ".join(text.split())


def text_of(page):
    if page.endswith(".md"):
        return (ROOT / page).read_text()
    found = petal
    for name in page.split(".")[1:]:
        found = getattr(found, name)
    return inspect.getdoc(found)


@pytest.mark.parametrize(("page", "text"), STATEMENTS, ids=[f"{p}: {t}" for p, t in STATEMENTS])
def test_statement_is_on_its_page_and_has_tests(page, text):
    assert text in unwrap(text_of(page)), f"{page} does not have this text: update promises.toml"
    for test in TABLE[page][text]:
        file, name = test.split("::")
        assert re.search(rf"^def {name}\(", (HERE / file).read_text(), re.M), f"no such test: {test}"
    assert TABLE[page][text]


def test_every_section_has_a_statement_or_is_listed():
    for page in (page for page in TABLE if page.endswith(".md")):
        body = re.sub(r"^```.*?^```$", "", (ROOT / page).read_text(), flags=re.M | re.S)
        sections = re.split(r"^##+ (.*)$", body, flags=re.M)
        blocks = re.split(r"^##+ (?!.*:$)(.*)$", (ROOT / page).read_text(), flags=re.M)
        text = dict(zip(blocks[1::2], map(unwrap, blocks[2::2])))
        for name in sections[1::2]:
            has = any(statement in text[name] for statement in TABLE[page])
            assert has != (f"{page}: {name}" in WITHOUT), f"{page}: {name}"


def test_every_public_name_has_a_docstring():
    for name in petal.__all__:
        assert name == "__version__" or inspect.getdoc(getattr(petal, name)), name
    for name in ["common", "diff", "dedup", "build", "check", "open", "load"]:
        assert f"petal.{name}" in TABLE


def test_wheel_is_for_all_versions_without_dependencies():
    needs = importlib.metadata.requires("petal-filters")
    assert needs and all("extra ==" in need for need in needs)
    assert "-cp311-abi3-" in wheel().name


def test_help_has_every_argument():
    given = {"capacity": 10, "fpr": 0.1, "memory_limit": None, "bits": None, "probes": None, "seed": 1, "secret": None}
    given |= {"least_space": False, "secret_apart": False}
    assert petal.BloomFilter(**given)
    assert set(inspect.signature(petal.BloomFilter).parameters) == set(given)
    for name in (name for name in petal.__all__ if name.endswith(("Filter", "Cascade"))):
        assert name == "Filter" or inspect.signature(getattr(petal, name)).parameters


def test_secret_is_kept_in_the_file_and_prevents_collisions(tmp_path):
    secret = os.urandom(16)
    one = petal.BloomFilter(1000, 1e-6, secret=secret)
    # Keys that collide under the hash without a secret.
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
def test_counter_limit_is_half_of_its_range(kind):
    for width in range(2, 9):
        most = 2 ** (width - 1)
        one = kind(1000, 1e-6, width=width)
        one.update(["often"] * (most + 5) + ["seldom"] * (most - 1))
        assert (one.count("often"), one.count("seldom")) == (most, most - 1)
        for _ in range(most + 5):
            one.discard("often")
        assert "often" in one
        assert [one.discard("seldom") for _ in range(most)] == [True] * (most - 1) + [False]


def test_array_may_change_during_update():
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
    # Each key was "ab", "cd" or a mixture of both.
    assert one.estimated_len < 6 and one.contains_batch(["ab", "cd"]) == [True, True]
