"""Debian's word lists, the program Hunspell, and a list of common misspellings."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from speller import words_of
from support import peers, resident_bytes

# The lists of one dictionary are nested: a word of the small list is more common than one of the large list only.
LISTS = {"american": "american-english", "british": "british-english"}
SIZES = ("-small", "", "-large")
HUNSPELL = {"american": "en_US", "british": "en_GB"}


@dataclass
class Dictionary:
    """The files of one dictionary: the word lists, and those of Hunspell."""

    lists: list[Path]
    hunspell: Path

    @classmethod
    def find(cls, name: str) -> Dictionary:
        root = peers() / "debian/spelling/usr/share"
        found = cls([root / "dict" / f"{LISTS[name]}{size}" for size in SIZES], root / "hunspell" / HUNSPELL[name])
        for path in found.lists:
            if not path.exists():
                raise FileNotFoundError(f"{path}: no such word list; `cargo x example spelling` installs it")
        return found

    def words(self) -> list[list[str]]:
        return [path.read_text("utf-8").split() for path in self.lists]


def hunspell(dictionary: Path, words: Sequence[str]) -> list[list[str] | None]:
    """Returns the suggestions of the program Hunspell for each word; None for a word that it accepts."""
    lines = "".join(f"^{word}\n" for word in words)
    command = ["hunspell", "-a", "-i", "utf-8", "-d", str(dictionary)]
    ran = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    # An answer of one line and an empty line for each word: `*` and others: correct; `#`: no suggestions;
    # `& WORD COUNT OFFSET: SUGGESTION, ...`.
    answers = [answer.split("\n")[0] for answer in ran.stdout.split("\n", 1)[1].split("\n\n")][: len(words)]
    if len(answers) != len(words):
        raise RuntimeError(f"hunspell: {len(answers)} answers for {len(words)} words")
    suggestions = (answer.partition(": ")[2].split(", ") for answer in answers)
    return [
        each if answer[0] == "&" else [] if answer[0] == "#" else None for answer, each in zip(answers, suggestions)
    ]


def hunspell_bytes(dictionary: Path) -> int:
    """Returns the resident memory of Hunspell with a dictionary."""
    command = ["hunspell", "-a", "-i", "utf-8", "-d", str(dictionary)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        process.stdin.write("^word\n")
        process.stdin.flush()
        process.stdout.readline()
        process.stdout.readline()
        memory = resident_bytes(process.pid)
        process.stdin.close()
        return memory


def common_misspellings() -> list[tuple[str, str]]:
    """Returns the misspelt words of the package codespell that have one correction, each with it."""
    pairs = []
    for line in (files("codespell_lib") / "data/dictionary.txt").read_text("utf-8").splitlines():
        wrong, _, right = line.partition("->")
        if wrong.isalpha() and not {",", " "} & set(right):
            pairs.append((wrong, right))
    return pairs


def planted(text: str, pairs: Sequence[tuple[str, str]], every: int = 10) -> tuple[str, list[tuple[int, str]]]:
    """Replaces words of a text by common misspellings of them. Returns the text, and the replacements."""
    wrong_of = {right: wrong for wrong, right in pairs}
    parts, plants, end, length = [], [], 0, 0
    for number, (at, word) in enumerate(words_of(text)):
        if number % every == 0 and word in wrong_of:
            parts.append(text[end:at])
            length += at - end
            plants.append((length, wrong_of[word]))
            parts.append(wrong_of[word])
            length += len(wrong_of[word])
            end = at + len(word)
    return "".join(parts) + text[end:], plants
