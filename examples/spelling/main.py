"""A spelling dictionary that is a static filter: checks texts and suggests corrections from the filter alone.

The words are those of Debian's lists. The filter does not contain them: it answers whether a word is in the list, with
false positives at a rate that is chosen. A suggestion is found by asking the filter for every string that is one or two
edits away from the misspelt word, some 100,000 strings, so the rate must be far below 1 in 100,000.
"""

from __future__ import annotations

import argparse
import gzip
import random
import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import petal
import regex
from dictionaries import LISTS, Dictionary, common_misspellings, hunspell, hunspell_bytes, planted
from speller import FPR, Speller, candidates, found_in, spellings, words_of
from support import ROOT, Rows


def measure(args: argparse.Namespace, dictionary: Dictionary) -> None:
    """Compares filters of several rates with the list and with Hunspell, and prints tables."""
    rows, lists = Rows(args.rows, "spelling"), dictionary.words()
    words = set(lists[-1])
    spellers = [Speller.build(lists, fpr) for fpr in args.fpr]
    everyone = [speller.words for speller in spellers]
    assert all(all(filter.contains_batch(lists[-1])) for filter in everyone)

    list_bytes = dictionary.lists[-1].read_bytes()
    files_of = [dictionary.hunspell.with_suffix(suffix).stat().st_size for suffix in (".dic", ".aff")]
    for name, value in (
        (f"list of {len(words):,} words", len(list_bytes)),
        ("the list, gzip -9", len(gzip.compress(list_bytes, 9))),
        ("Hunspell's .dic and .aff", sum(files_of)),
        ("Python set of the words", sys.getsizeof(words) + sum(map(sys.getsizeof, words))),
        ("Hunspell's process", hunspell_bytes(dictionary.hunspell)),
    ):
        print(f"{name:<28}{value:>12,} bytes")
        rows.add(name, len(words), "size", value, "bytes")

    text = (ROOT / "LICENSE-APACHE").read_text()
    pairs = [
        (wrong, right) for wrong, right in common_misspellings() if not any(f in words for f in spellings(wrong))
    ]
    with_plants, plants = planted(text, pairs)
    reported = [set(speller.misspelt(with_plants)) for speller in spellers]
    total = sum(1 for _ in words_of(text))
    print(f"\nLICENSE-APACHE: {total:,} words, {len(plants)} misspellings planted, ", end="")
    print(f"{len(reported[-1] & set(plants))} of them reported at the last rate")

    random.Random(args.seed).shuffle(pairs)
    pairs = [(wrong, right) for wrong, right in pairs if right in words][: args.misspellings]
    start = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    theirs = hunspell(dictionary.hunspell, [wrong for wrong, _ in pairs])
    seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - start
    accepted = hunspell(dictionary.hunspell, [right for _, right in pairs])
    kept = [at for at in range(len(pairs)) if theirs[at] is not None and accepted[at] is None]
    print(f"\n{len(kept):,} common misspellings of words that both dictionaries have")
    print(f"{'suggestions of':<22}{'bytes':>10}{'right first':>14}{'in first 5':>12}{'CPU ms':>11}{'wrong':>10}")

    def line(name: str, size: int, suggested: list[list[str]], each_ms: float, wrong: float) -> None:
        first, five = ([pairs[at][1] in s[:n] for at, s in zip(kept, suggested)] for n in (1, 5))
        print(f"{name:<22}{size:>10,}{share(first):>14}{share(five):>12}{each_ms:>11.1f}{wrong:>10.2f}", flush=True)
        rows.add(name, len(kept), "right word first", sum(first) / len(kept), "share")
        rows.add(name, len(kept), "right word in the first 5", sum(five) / len(kept), "share")
        rows.add(name, len(kept), "CPU time", each_ms / 1000, "s per misspelling")
        rows.add(name, len(kept), "suggestions that are no words", wrong, "per misspelling")
        rows.add(name, len(kept), "dictionary", size, "bytes")

    line("Hunspell", sum(files_of), [theirs[at] for at in kept], 1000 * seconds / len(pairs), 0)
    for fpr, speller in zip(args.fpr, spellers):
        start = time.process_time()
        suggested = [speller.suggest(pairs[at][0]) for at in kept]
        each_ms = 1000 * (time.process_time() - start) / len(kept)
        wrong = sum(not any(f in words for f in spellings(word)) for s in suggested for word in s) / len(kept)
        line(f"petal, rate {fpr:g}", speller.size_bytes, suggested, each_ms, wrong)

    asked, wrongly = false_words(everyone, words, args.non_words, args.seed)
    print(f"\n{asked:,} strings that are two edits away from a word, and no words; reported as correct:")
    for fpr, wrong in zip(args.fpr, wrongly):
        print(f"{f'petal, rate {fpr:g}':<22}{wrong:>10,}{wrong / asked:>14.2g}")
        rows.add(f"petal, rate {fpr:g}", asked, "non-words reported as correct", wrong, "strings")


def false_words(filters: Sequence[petal.Filter], words: set[str], count: int, seed: int) -> tuple[int, list[int]]:
    """Queries `count` or more strings that are two edits away from words, and not words.

    Returns their number, and how many of them each filter reports as words.
    """
    choose, ordered = random.Random(seed), sorted(words)
    asked, wrong = 0, [0] * len(filters)
    while asked < count:
        strings = np.unique(candidates(choose.choice(ordered).lower(), 2))
        is_word = sum(form in words for form in found_in(filters[0], strings))
        asked += len(strings) - is_word
        for at, filter in enumerate(filters):
            wrong[at] += int(np.count_nonzero(filter.contains_batch(strings))) - is_word
    return asked, wrong


def share(found: Sequence[bool]) -> str:
    return f"{100 * sum(found) / max(1, len(found)):.1f} %"


def check(path: Path, speller: Speller) -> int:
    """Prints the misspelt words of a file with suggestions. Returns their number."""
    text = path.read_text("utf-8")
    ends = [match.end() for match in regex.finditer("\n", text)]
    found = speller.misspelt(text)
    for at, word in found:
        line = int(np.searchsorted(ends, at, side="right"))
        column = at - (ends[line - 1] if line else 0) + 1
        print(f"{path}:{line + 1}:{column}: {word}: {', '.join(speller.suggest(word)) or 'no suggestion'}")
    return len(found)


def rate(text: str) -> float:
    value = float(text)
    if not 0 < value < 1:
        raise ValueError
    return value


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: cargo x example spelling --word recieve abreviation\nWithout FILE and --word it measures.",
    )
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE", help="text to check")
    parser.add_argument("--word", nargs="+", metavar="WORD", help="print suggestions for misspelt words")
    parser.add_argument("--dictionary", choices=LISTS, default="american", help="[default: american]")
    parser.add_argument("--fpr", type=rate, nargs="+", default=[1e-3, 1e-5, FPR], metavar="RATE",
                        help=f"rates to compare; the last one checks texts [default: 1e-3 1e-5 {FPR:g}]")  # fmt: skip
    parser.add_argument("--misspellings", type=int, default=100, help="common misspellings to correct [default: 100]")
    parser.add_argument("--non-words", type=int, default=2_000_000, help="non-words to check [default: 2,000,000]")
    parser.add_argument("--seed", type=int, default=1, help="selects misspellings and non-words [default: 1]")
    parser.add_argument("--rows", type=Path, help="append the measured figures to this CSV file")
    args = parser.parse_args()
    try:
        dictionary = Dictionary.find(args.dictionary)
        if not args.file and not args.word:
            measure(args, dictionary)
            return
        speller = Speller.build(dictionary.words(), args.fpr[-1])
        for word, known in zip(args.word or [], speller.known(args.word or [])):
            print(f"{word}: {'correct' if known else ', '.join(speller.suggest(word)) or 'no suggestion'}")
        if args.file:
            check(args.file, speller)
    except (OSError, UnicodeDecodeError) as error:
        print(f"main.py: {args.file}: not UTF-8: {error}" if isinstance(error, ValueError) else f"main.py: {error}",
              file=sys.stderr)  # fmt: skip
        sys.exit(2)


if __name__ == "__main__":
    main()
