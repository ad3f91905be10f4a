"""Generates a corpus with planted duplicates."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import orjson

PARAGRAPHS_PER_DOCUMENT = 6
# Documents that may be repeated.
EARLIER = 20_000


def generate(path: Path, count: int, seed: int) -> dict[str, int]:
    """Writes a corpus with planted duplicates. Returns how many documents of each kind it has.

    A tenth of the documents repeat an earlier one. A twentieth are an earlier one with one word changed: no tool that
    compares whole texts finds these documents, but all their other paragraphs are repeats. A third of the rest end
    with one of 200 boilerplate paragraphs.
    """
    choose, numbers = random.Random(seed), np.random.default_rng(seed)
    letters = "abcdefghijklmnoprstuvwy"
    words = np.array(["".join(choose.choices(letters, k=choose.randint(2, 9))) for _ in range(50_000)])
    weights = 1 / np.arange(1, len(words) + 1)
    cumulated = np.cumsum(weights / weights.sum())

    def paragraphs(number: int) -> list[str]:
        lengths = numbers.integers(15, 60, number)
        drawn = words[np.searchsorted(cumulated, numbers.random(int(lengths.sum()))).clip(0, len(words) - 1)].tolist()
        ends = np.cumsum(lengths).tolist()
        return [" ".join(drawn[end - length : end]) + "." for end, length in zip(ends, lengths.tolist())]

    boilerplate = paragraphs(200)
    earlier: list[str] = []
    kinds = dict.fromkeys(("new", "repeated", "near"), 0)
    pool: list[str] = []
    with open(path, "wb") as file:
        for number in range(count):
            kind = choose.choices(("new", "repeated", "near"), (85, 10, 5))[0] if earlier else "new"
            if kind == "new":
                if len(pool) < PARAGRAPHS_PER_DOCUMENT:
                    pool = paragraphs(PARAGRAPHS_PER_DOCUMENT * 500)
                parts = [pool.pop() for _ in range(PARAGRAPHS_PER_DOCUMENT)]
                if choose.random() < 1 / 3:
                    parts[-1] = choose.choice(boilerplate)
                text = "\n".join(parts)
                if len(earlier) < EARLIER:
                    earlier.append(text)
                elif choose.random() < 0.1:
                    earlier[choose.randrange(EARLIER)] = text
            else:
                text = choose.choice(earlier)
                if kind == "near":
                    at = text.index(" ", choose.randrange(len(text) // 2))
                    text = f"{text[:at]} changed{number}{text[at:]}"
            kinds[kind] += 1
            file.write(orjson.dumps({"id": number, "kind": kind, "text": text}) + b"\n")
    return kinds
