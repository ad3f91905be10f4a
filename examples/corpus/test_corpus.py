"""Repeats are always dropped, and others only by false positives: compared with a dict and with Dolma."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from dedup import approximate, exact, program, texts_of, with_set
from dolma_dedup import dolma
from planted import generate

MAIN = Path(__file__).with_name("main.py")
DOCUMENTS = 2000
CAPACITY = {"document": DOCUMENTS, "paragraph": 6 * DOCUMENTS}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "corpus.jsonl"
    kinds = generate(path, DOCUMENTS, 7)
    assert sum(kinds.values()) == DOCUMENTS and min(kinds.values()) > 50
    return path


def read(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def naive(documents: list[dict], level: str) -> list[tuple[int, list[str]]]:
    """The texts that are kept, by a dict of all texts."""
    first: dict[str, tuple[int, int]] = {}
    for document in documents:
        for at, text in enumerate(texts_of(document, level)):
            first.setdefault(text, (document["id"], at))
    kept = [
        (d["id"], [t for at, t in enumerate(texts_of(d, level)) if first[t] == (d["id"], at)]) for d in documents
    ]
    return [(id, texts) for id, texts in kept if texts]


@pytest.mark.parametrize("level", ["document", "paragraph"])
@pytest.mark.parametrize("way", [exact, with_set, program])
def test_exact_ways_keep_the_first_of_equal_texts(corpus, tmp_path, way, level):
    out = tmp_path / "out.jsonl"
    result = way(corpus, out, level, CAPACITY[level], 0.01)
    expected = naive(read(corpus), level)
    assert [(d["id"], texts_of(d, level)) for d in read(out)] == expected
    assert result.kept == sum(len(texts) for _, texts in expected)
    assert result.texts == sum(len(texts_of(d, level)) for d in read(corpus))


@pytest.mark.parametrize("level", ["document", "paragraph"])
def test_exact_with_a_filter_that_is_far_too_small(corpus, tmp_path, level):
    out = tmp_path / "out.jsonl"
    exact(corpus, out, level, 50, 0.5)
    assert [(d["id"], texts_of(d, level)) for d in read(out)] == naive(read(corpus), level)


@pytest.mark.parametrize("level", ["document", "paragraph"])
@pytest.mark.parametrize("way", [approximate, dolma])
def test_a_filter_keeps_no_repeat_and_drops_few_others(corpus, tmp_path, way, level):
    out = tmp_path / "out.jsonl"
    way(corpus, out, level, CAPACITY[level], 0.01)
    expected = dict(naive(read(corpus), level))
    kept = {d["id"]: texts_of(d, level) for d in read(out)}
    assert all(set(texts) <= set(expected[id]) for id, texts in kept.items())
    count, right = (sum(len(texts) for texts in each.values()) for each in (kept, expected))
    assert right - 0.02 * right < count <= right


def test_documents_with_one_word_changed_stay_but_not_their_other_paragraphs(corpus, tmp_path):
    near = [d for d in read(corpus) if d["kind"] == "near"]
    for level, most in (("document", 6), ("paragraph", 2)):
        exact(corpus, tmp_path / "out.jsonl", level, CAPACITY[level], 0.01)
        kept = [d for d in read(tmp_path / "out.jsonl") if d["kind"] == "near"]
        assert len(kept) == len(near)
        assert all(d["text"].count("\n") < most for d in kept)


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(MAIN), *map(str, words)], capture_output=True, text=True)


def test_the_program_deduplicates_a_file(corpus, tmp_path):
    ran = run("--level", "paragraph", "--way", "exact", "-o", tmp_path / "out.jsonl", corpus)
    assert ran.returncode == 0, ran.stderr
    kept = sum(len(texts_of(d, "paragraph")) for d in read(tmp_path / "out.jsonl"))
    assert json.loads(ran.stdout)["kept"] == kept


def test_the_ways_are_compared():
    ran = run("--documents", "500", "--fpr", "0.001")
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    kept = {way: [line.split()[-3] for line in lines if line.startswith(f"{way} ")] for way in ("set", "exact")}
    assert len(kept["set"]) == 2 and kept["set"] == kept["exact"]
    assert lines[-1].startswith("petal dedup counts ")


@pytest.mark.parametrize(
    ("content", "message"),
    [('{"text": "a"}\nnot json\n', ":2: not JSON"), ('{"txt": "a"}\n', ":1: not a document"), ("[1]\n", ":1: not a")],
)
def test_a_bad_line_is_an_error(tmp_path, content, message):
    path = tmp_path / "bad.jsonl"
    path.write_text(content)
    ran = run("-o", tmp_path / "out.jsonl", path)
    assert ran.returncode == 2 and f"{path}{message}" in ran.stderr and ran.stderr.count("\n") == 1


def test_a_missing_file_is_an_error(tmp_path):
    ran = run("-o", tmp_path / "out.jsonl", tmp_path / "none")
    assert ran.returncode == 2 and str(tmp_path / "none") in ran.stderr and ran.stderr.count("\n") == 1
