"""A spelling dictionary that is a static filter: finds misspelt words and suggests corrections."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import petal
import regex

FPR = 1e-7
# False-positive rate of the filters of common words, which are queried only for words that were found.
COMMON_FPR = 1e-2
# Added to the cost of a suggestion: for each smaller list that lacks it, and for a possessive form.
RARE = 0.5
POSSESSIVE = 0.4
LETTERS = "abcdefghijklmnopqrstuvwxyz'"
# Letters that one edit may write, too.
ACCENTED = "áâäçèéêëíñóôöü"
# Longer strings are not corrected: the number of strings two edits away grows with the square of the length.
LONGEST = 45
# Words by the boundaries of Unicode (UAX 29) that have only letters and apostrophes: "don't" is a word, "3D" is none.
WORD = regex.compile(r"(?w)\b(?=\p{Alphabetic})[\p{Alphabetic}\p{M}'’]+\b")


def words_of(text: str) -> Iterator[tuple[int, str]]:
    """Returns the words of a text with their positions. Normalised: NFC, with ' for the typographic apostrophe."""
    for match in WORD.finditer(text):
        yield match.start(), unicodedata.normalize("NFC", match[0]).replace("’", "'")


def spellings(word: str) -> list[str]:
    """Returns the forms in which a list may contain a word: as it is, and without its capital letters."""
    forms = [word]
    if word.isupper():
        forms.append(word.capitalize())
    if word != word.lower():
        forms.append(word.lower())
    return forms


@dataclass
class Speller:
    """A dictionary: a filter of all words, and small filters of the more common ones, which order suggestions."""

    words: petal.StaticFilter
    common: list[petal.StaticFilter]

    @classmethod
    def build(cls, lists: Sequence[Sequence[str]], fpr: float = FPR) -> Speller:
        """Builds a dictionary from nested lists of words, the smallest first."""
        return cls(petal.StaticFilter(lists[-1], fpr), [petal.StaticFilter(words, COMMON_FPR) for words in lists[:-1]])

    @property
    def size_bytes(self) -> int:
        return sum(len(filter.to_bytes()) for filter in [self.words, *self.common])

    def known(self, words: Sequence[str]) -> list[bool]:
        """Returns for each word whether it is in the dictionary, possibly without its capital letters."""
        forms = [spellings(word) for word in words]
        found = iter(self.words.contains_batch([form for each in forms for form in each]))
        return [any([next(found) for _ in each]) for each in forms]

    def misspelt(self, text: str) -> list[tuple[int, str]]:
        """Returns the words of a text that are not in the dictionary, with their positions."""
        words = list(words_of(text))
        return [each for each, known in zip(words, self.known([word for _, word in words])) if not known]

    def suggest(self, word: str, limit: int = 5) -> list[str]:
        """Returns the most likely corrections of a word, the best first."""
        lower = word.lower()
        if len(lower) > LONGEST:
            return []
        near = candidates(lower, 1, LETTERS + ACCENTED)
        found = set(found_in(self.words, near)) | set(found_in(self.words, capitalized(near)))
        far = candidates(lower, 2)
        found.update(found_in(self.words, far))
        if word != lower:
            found.update(found_in(self.words, capitalized(far)))
        found.discard(lower)
        ordered = sorted(found)
        ranks = self._ranks(ordered)
        cost = {form: edit_cost(lower, form) + rank for form, rank in zip(ordered, ranks)}
        ordered.sort(key=cost.__getitem__)
        return list(dict.fromkeys(with_case_of(word, form) for form in ordered))[:limit]

    def _ranks(self, words: list[str]) -> list[float]:
        """Returns a penalty for each word: the less common, the higher."""
        rank = np.zeros(len(words))
        for filter in self.common:
            rank += np.where(filter.contains_batch(words), 0.0, RARE)
        return [r + (POSSESSIVE if word.endswith("'s") else 0) for r, word in zip(rank.tolist(), words)]


def found_in(filter: petal.Filter, strings: np.ndarray) -> list[str]:
    """Returns the strings of an array that a filter contains."""
    found = strings[filter.contains_batch(strings)]
    return [form.decode() if isinstance(form, bytes) else form for form in found.tolist()]


def candidates(word: str, distance: int, letters: str = LETTERS) -> np.ndarray:
    """Returns the strings that are `distance` edits (1 or 2) away from a word. A string may occur more than once."""
    is_ascii = (word + letters).isascii()
    codes = np.array([[ord(c) for c in word]], np.uint8 if is_ascii else np.uint32)
    alphabet = np.array([ord(c) for c in letters], codes.dtype)
    once = edits(codes, np.zeros(1, int), alphabet)
    if distance == 1:
        return strings((rows for rows, _ in once), len(word) + 1)
    twice = []
    for width in range(max(1, len(word) - 1), len(word) + 2):
        same = [(rows, start) for rows, start in once if rows.shape[1] == width]
        rows, start = (np.concatenate(parts) for parts in zip(*same))
        twice += [found for found, _ in edits(rows, start, alphabet)]
    return strings(twice, len(word) + 2)


def edits(rows: np.ndarray, start: np.ndarray, letters: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Returns all strings that are one edit away from the rows of a matrix of characters, as matrices.

    An edit deletes, swaps, replaces or inserts a letter at position `start` of its row or after it. With each string
    comes the position from which the next edit continues, so that no pair of edits is made in both orders.
    """
    width, found = rows.shape[1], []
    for at in range(width + 1):
        r = rows[start <= at]
        n = len(r)
        if n == 0:
            continue
        where = np.full(n, at)
        many, letter = np.repeat(r, len(letters), axis=0), np.tile(letters, n)[:, None]
        after = np.full(n * len(letters), at + 1)
        found.append((np.hstack([many[:, :at], letter, many[:, at:]]), after))
        if at < width:
            found.append((np.hstack([r[:, :at], r[:, at + 1 :]]), np.maximum(where - 1, 0)))
            found.append((np.hstack([many[:, :at], letter, many[:, at + 1 :]]), after))
        if at + 1 < width:
            swapped = r.copy()
            swapped[:, [at, at + 1]] = r[:, [at + 1, at]]
            found.append((swapped, np.maximum(where - 1, 0)))
    return found


def strings(matrices: Iterable[np.ndarray], width: int) -> np.ndarray:
    """Returns the rows of matrices of characters as one array of strings for a filter."""
    matrices = list(matrices)
    rows = np.zeros((sum(map(len, matrices)), width), matrices[0].dtype)
    end = 0
    for matrix in matrices:
        rows[end : end + len(matrix), : matrix.shape[1]] = matrix
        end += len(matrix)
    return rows.view(f"S{width}" if rows.dtype == np.uint8 else f"U{width}")[:, 0]


def capitalized(strings: np.ndarray) -> np.ndarray:
    """Returns the strings with a capital first letter."""
    width = strings.dtype.itemsize if strings.dtype.kind == "S" else strings.dtype.itemsize // 4
    rows = strings.view(np.uint8 if strings.dtype.kind == "S" else np.uint32).reshape(len(strings), width).copy()
    first = rows[:, 0]
    first[(first >= ord("a")) & (first <= ord("z"))] -= 32
    return rows.view(strings.dtype)[:, 0]


VOWELS = set("aeiouy")
ALIKE = {frozenset(pair) for pair in ("cs", "ck", "sz", "fv", "gj", "iy", "dt", "mn", "bp", "kq", "xs", "wu")}
KEYS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
NEAR = {frozenset(row[i : i + 2]) for row in KEYS for i in range(len(row) - 1)} | {
    frozenset(pair) for upper, lower in zip(KEYS, KEYS[1:]) for pair in [*zip(upper, lower), *zip(upper[1:], lower)]
}


def edit_cost(wrong: str, right: str) -> float:
    """Returns the weighted edit distance: swaps, doubled letters and confused vowels cost less than other edits."""
    wrong, right = wrong.lower(), right.lower()
    before: list[float] = []
    row = [0.0]
    for j, letter in enumerate(right):
        row.append(row[-1] + gap_cost(right, j))
    for i, a in enumerate(wrong):
        before, last, row = last if i else [], row, [row[0] + gap_cost(wrong, i)]
        for j, b in enumerate(right):
            cost = last[j] if a == b else last[j] + replace_cost(a, b)
            cost = min(cost, row[j] + gap_cost(right, j), last[j + 1] + gap_cost(wrong, i))
            if i and j and a == right[j - 1] and wrong[i - 1] == b and a != b:
                cost = min(cost, before[j - 1] + 0.7)
            row.append(cost)
    return row[-1] + (0.4 if wrong[:1] != right[:1] else 0)


def gap_cost(word: str, at: int) -> float:
    """Returns the cost of a letter that the other word does not have."""
    if at and word[at] == word[at - 1]:
        return 0.5
    return 0.6 if word[at] in "'e" else 0.9


def replace_cost(a: str, b: str) -> float:
    """Returns how unlikely it is that `b` was written as `a`; 1.1 for letters that have nothing in common."""
    pair = frozenset((a, b))
    if pair <= VOWELS:
        return 0.7
    if pair in ALIKE:
        return 0.8
    return 0.9 if pair in NEAR else 1.1


def with_case_of(word: str, suggestion: str) -> str:
    """Returns a suggestion in capital letters if the misspelt word has them."""
    if word.isupper() and len(word) > 1:
        return suggestion.upper()
    return suggestion[0].upper() + suggestion[1:] if word[0].isupper() else suggestion
