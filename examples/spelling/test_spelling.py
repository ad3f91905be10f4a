"""The spelling dictionary against the word list itself, and beside Hunspell."""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
from pathlib import Path

import pytest
from dictionaries import Dictionary, common_misspellings, hunspell, planted
from speller import Speller, candidates, spellings, words_of
from support import ROOT

MAIN = Path(__file__).with_name("main.py")


@pytest.fixture(scope="module", params=["american", "british"])
def dictionary(request):
    return Dictionary.find(request.param)


@pytest.fixture(scope="module")
def speller(dictionary):
    return Speller.build(dictionary.words())


def naive_edits(word: str, letters: str) -> set[str]:
    """All strings that are one edit away, as in Norvig's essay."""
    splits = [(word[:at], word[at:]) for at in range(len(word) + 1)]
    found = {a + b[1:] for a, b in splits if b}
    found |= {a + b[1] + b[0] + b[2:] for a, b in splits if len(b) > 1}
    found |= {a + letter + b[1:] for a, b in splits if b for letter in letters}
    return found | {a + letter + b for a, b in splits for letter in letters}


@pytest.mark.parametrize("letters", ["abx", "aé"])
def test_candidates_are_all_strings_within_two_edits(letters):
    for word in ["".join(each) for size in (1, 2, 3, 4) for each in itertools.product("abc", repeat=size)]:
        once = naive_edits(word, letters)
        assert decoded(candidates(word, 1, letters)) == once
        twice = {found for near in once for found in naive_edits(near, letters)}
        assert decoded(candidates(word, 2, letters)) | once | {word, ""} == twice | once | {word, ""}


def decoded(strings) -> set[str]:
    return {each.decode() if isinstance(each, bytes) else each for each in strings.tolist()}


def test_words_are_those_of_unicode():
    text = "Don’t say “cafe\u0301”, Łódź or 3D; read x_1, it's rock'n'roll."
    expected = ["Don't", "say", "café", "Łódź", "or", "read", "it's", "rock'n'roll"]
    assert [word for _, word in words_of(text)] == expected
    assert all(text[at : at + 1] == word[0] for at, word in words_of(text))


def test_every_word_of_the_list_is_correct_also_in_capitals(dictionary, speller):
    words = dictionary.words()[-1]
    assert all(speller.known(words))
    assert all(speller.known([word.upper() for word in words if word.isascii() and word[1:].islower()]))


def test_a_text_is_reported_as_with_the_list(dictionary, speller):
    words = set(dictionary.words()[-1])
    pairs = common_misspellings()
    pairs = [(wrong, right) for wrong, right in pairs if not any(form in words for form in spellings(wrong))]
    text, plants = planted((ROOT / "LICENSE-APACHE").read_text(), pairs)
    by_list = [
        (at, word) for at, word in words_of(text) if not any(form in words for form in spellings(word))
    ]
    assert len(plants) > 50 and set(plants) <= set(by_list)
    assert speller.misspelt(text) == by_list


def test_a_word_within_two_edits_is_among_the_suggestions(dictionary, speller):
    choose, words = random.Random(1), dictionary.words()[0]
    for right in choose.sample([word for word in words if len(word) > 5 and word.isascii()], 25):
        wrong = right
        for _ in range(2):
            wrong = choose.choice(sorted(naive_edits(wrong, "aeiostrn")))
        if wrong.lower() != right.lower():
            assert right.lower() in [word.lower() for word in speller.suggest(wrong, 10_000)], wrong


def test_hunspell_and_petal_correct_the_same_words(dictionary, speller):
    words = ["recieve", "receive", "wich", "abreviation", "qqqqqqqq"]
    theirs = hunspell(dictionary.hunspell, words)
    assert theirs[1] is None and theirs[4] == []
    for word, right, suggested in [(words[0], "receive", theirs[0]), (words[3], "abbreviation", theirs[3])]:
        assert right in suggested and speller.suggest(word)[0] == right
    assert speller.known(words) == [False, True, False, False, False]
    assert speller.suggest("qqqqqqqq") == []


def test_capital_letters_are_kept(speller):
    assert speller.suggest("Recieve")[0] == "Receive"
    assert speller.suggest("RECIEVE")[0] == "RECEIVE"
    assert speller.suggest("amercia")[0] == "America"


def test_accents_are_corrected_and_long_strings_are_not(speller):
    assert "fiancé" in speller.suggest("fiancè") and "café" in speller.suggest("cafèé")
    assert speller.suggest("a" * 1000) == [] and speller.suggest("q") != []


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(MAIN), *map(str, words)], capture_output=True, text=True)


def test_a_file_is_checked(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("All is well.\nI recieve a lettre.\n")
    ran = run(path)
    lines = ran.stdout.splitlines()
    assert [line.split(": ")[:2] for line in lines] == [[f"{path}:2:3", "recieve"], [f"{path}:2:13", "lettre"]]
    assert lines[0].split(": ")[2].startswith("receive, ")


def test_other_encodings_and_missing_files_are_errors(tmp_path):
    path = tmp_path / "latin1.txt"
    path.write_bytes("café".encode("latin-1"))
    for wrong, message in ((path, "not UTF-8"), (tmp_path / "none", "No such file")):
        ran = run(wrong)
        assert ran.returncode == 2 and str(wrong) in ran.stderr and message in ran.stderr
        assert ran.stderr.count("\n") == 1
