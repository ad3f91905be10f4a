"""`key_transform`: lines are compared after changes to them, as by the program."""

import hashlib
import subprocess
from pathlib import Path

import petal
from petal import _petal
import pytest
import surt
from hypothesis import given
from hypothesis import strategies as st
from w3lib.url import canonicalize_url

URLS = b"http://www.Example.com/a/?b=1&c=2\nhttps://other.org/\n"
PASSWORDS = ("password", "123456", "qwerty")
VARIANTS = b"https://example.com/a?c=2&b=1#x\r\nhttp://new.org/\n"


@pytest.fixture
def urls(tmp_path: Path) -> Path:
    (tmp_path / "urls").write_bytes(URLS)
    (tmp_path / "variants").write_bytes(VARIANTS)
    return tmp_path


def test_set_operations_compare_changed_lines(urls: Path) -> None:
    a, b = urls / "urls", urls / "variants"
    surts = ["url-surt"]
    assert list(petal.common(a, b, key_transform=surts)) == URLS.splitlines()[:1]
    assert list(petal.diff(b, a, key_transform=surts)) == [b"http://new.org/"]
    assert petal.dedup(a, b, count=True, key_transform=["trim", "registered-domain"]).kept == 3


def test_files_equal_those_of_the_program(urls: Path, program: Path) -> None:
    names = ["trim", "strip-query=b*", "host"]
    petal.build(urls / "urls", urls / "ours.petal", key_transform=names)
    command = [program, "build", "-o", "theirs.petal", "--key-transform", ",".join(names), "urls"]
    subprocess.run(command, cwd=urls, check=True)
    assert (urls / "ours.petal").read_bytes() == (urls / "theirs.petal").read_bytes()
    assert "trim,strip-query=b*,host" in petal.load(urls / "ours.petal").metadata


def test_check_uses_the_names_that_the_filter_records(urls: Path) -> None:
    petal.build(urls / "urls", urls / "f.petal", key_transform=["url-surt"])
    for filter in (urls / "f.petal", petal.load(urls / "f.petal")):
        assert petal.check(filter, urls / "variants", count=True).kept == 1
        assert petal.check(filter, urls / "variants", count=True, key_transform=["url-surt"]).kept == 1
        with pytest.raises(petal.IncompatibleError, match="changed by 'url-surt', not by 'trim'"):
            petal.check(filter, urls / "variants", key_transform=["trim"])
    filter = petal.load(urls / "f.petal")
    assert petal.transform_key("https://EXAMPLE.com/a?c=2&b=1", ["url-surt"]) in filter
    petal.build(urls / "urls", urls / "plain.petal")
    with pytest.raises(petal.IncompatibleError, match="were not changed, not by 'trim'"):
        petal.check(urls / "plain.petal", urls / "urls", key_transform=["trim"])


def test_transform_key_keeps_the_type() -> None:
    for names in (["trim", "lowercase"], "trim,lowercase", " trim, lowercase ", ("trim", "lowercase")):
        assert petal.transform_key(" A\r", names) == "a"
    assert petal.transform_key(" A", "") == petal.transform_key(" A", []) == " A"
    assert petal.transform_key(b" \xff ", ["trim"]) == b"\xff"
    assert petal.transform_key(b"a", []) == b"a"
    for key in (1, None, bytearray(b"a")):
        with pytest.raises(TypeError, match="expected bytes or text"):
            petal.transform_key(key, [])  # type: ignore[type-var]


def test_unknown_names_are_errors(urls: Path) -> None:
    for names in (["urls"], ["trim", "urls"]):
        with pytest.raises(ValueError, match="key_transform=: 'urls': unknown transform"):
            petal.dedup(urls / "urls", key_transform=names)
    for names in ([""], ["trim,lowercase"], "trim,,lowercase"):
        with pytest.raises(ValueError, match="expected one name"):
            petal.dedup(urls / "urls", key_transform=names)
    for names in (b"trim", 1, [1]):
        with pytest.raises(TypeError, match="expected a list of names"):
            petal.dedup(urls / "urls", key_transform=names)  # type: ignore[arg-type]


PARTS = st.sampled_from(
    ["http://", "https:", "//", "foo:", "www.", "Example.com", "bücher.de", "[::1]", "1.2", ":80", ":", "/", "/a/",
    "..", "%2e", "%zz", "?", "&"]
    + ["b=1", "a=2", "=", "+", "%20", " ", "é", "#", "@", ";", "\t", "\\", "sid=0123456789abcdef0123456789abcdef",
    "日本"]
)


@given(st.lists(PARTS, max_size=14).map("".join))
def test_urls_equal_those_of_the_installed_w3lib(url: str) -> None:
    try:
        expected = canonicalize_url(url.encode())
    except ValueError:
        expected = url
    assert petal.transform_key(url, ["url-scrapy"]) == expected


@given(st.lists(PARTS.filter(lambda part: part != "1.2"), max_size=14).map("".join))
def test_urls_equal_those_of_the_installed_surt(url: str) -> None:
    # Without numbers, whose host names surt looks up.
    try:
        expected = surt.surt(url.encode())
    except (AttributeError, ValueError):
        expected = url.encode()
    assert petal.transform_key(url.encode(), ["url-surt"]) == expected


def test_transform_keys_of_a_list_equal_single_keys() -> None:
    keys = [" A ", b" \xff", None, ""]
    assert _petal._transform_keys(keys, "trim,lowercase") == [b"a", b"\xff", None, b""]
    assert _petal._transform_keys(["a"], "") == [b"a"]
    with pytest.raises(TypeError):
        _petal._transform_keys([1], "trim")
    with pytest.raises(ValueError, match="unknown transform"):
        _petal._transform_keys([], "urls")


def digests(folder: Path, case: str, *words: str) -> Path:
    path = folder / f"{case}-{'-'.join(words)}"
    listed = (getattr(hashlib.sha1(word.encode()).hexdigest(), case)() for word in words)
    path.write_text("".join(f"{digest}\n" for digest in listed))
    return path


def test_queries_are_changed_as_the_filter_records(tmp_path: Path, program: Path) -> None:
    listed = digests(tmp_path, "upper", *PASSWORDS)
    words = tmp_path / "words"
    words.write_text("password\nother\n")
    petal.build(listed, tmp_path / "ours", query_transform="sha1,uppercase")
    command = [program, "build", "-q", "--query-transform", "sha1,uppercase", "-o", "theirs", listed]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()
    for filter in (tmp_path / "theirs", petal.open(tmp_path / "theirs"), petal.load(tmp_path / "theirs")):
        assert list(petal.check(filter, words)) == [b"password"]
        with pytest.raises(petal.InputError, match="found 'password', expected 40 hexadecimal digits"):
            list(petal.check(filter, words, key_transform=["trim"]))
        hashes = digests(tmp_path, "lower", "password", "other")
        assert len(list(petal.check(filter, hashes, key_transform=["uppercase"]))) == 1
    several = tmp_path / "several"
    several.write_text(f"{'0' * 32}\n{listed.read_text()}")
    message = "found 32 hexadecimal digits, expected 40 .*; take the column of the hashes with column="
    with pytest.raises(petal.InputError, match=message):
        petal.build(several, tmp_path / "lengths", query_transform="sha1")
    opened = petal.open(tmp_path / "theirs")
    assert (opened.key_transform, opened.query_transform) == ([], ["sha1", "uppercase"])
    assert "password" not in opened and petal.transform_key("password", opened.query_transform) in opened
    assert _petal._adopted_transforms(opened, "") == "sha1,uppercase"


def test_hexadecimal_keys_are_found_in_both_cases(tmp_path: Path, program: Path) -> None:
    for case, other in (("upper", "lower"), ("lower", "upper")):
        listed, queried = digests(tmp_path, case, *PASSWORDS), digests(tmp_path, other, "password", "other")
        petal.build(listed, tmp_path / "f")
        found = subprocess.run([program, "check", "-q", "f", queried], cwd=tmp_path, capture_output=True, check=True)
        assert list(petal.check(tmp_path / "f", queried)) == found.stdout.splitlines() != []
        filter = petal.load(tmp_path / "f")
        assert filter.query_transform == [f"{case}case"]
        assert list(petal.check(filter, queried)) == found.stdout.splitlines()
        # Keys of the caller may have any case.
        filter.add("a key")
        assert filter.query_transform == []


def test_filters_with_other_queries_have_no_union(tmp_path: Path) -> None:
    listed = digests(tmp_path, "upper", *PASSWORDS)
    plain, queried = tmp_path / "plain", tmp_path / "queried"
    petal.build(listed, plain, capacity=10)
    petal.build(listed, queried, capacity=10, query_transform=["sha1", "uppercase"])
    message = "not changed .queries by 'sha1,uppercase'.*build both with the same query_transform="
    with pytest.raises(petal.IncompatibleError, match=message):
        petal.merge(plain, queried, out=tmp_path / "union")
    with pytest.raises(petal.IncompatibleError, match=message):
        petal.load(plain).union(petal.load(queried))  # type: ignore[attr-defined]
    petal.merge(queried, queried, out=tmp_path / "union")
    assert petal.load(tmp_path / "union").query_transform == ["sha1", "uppercase"]
