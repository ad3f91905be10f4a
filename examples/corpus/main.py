"""Removes repeated documents or paragraphs from a corpus of JSON lines, as builders of training corpora do.

Ways: `filter`, one pass with a Bloom filter of all texts seen so far; `exact`, a second pass that decides about the
texts that the filter reported as seen; `set`, a set of the digests of all texts; `program`, the command `petal
dedup`; `dolma`, the Bloom filter of a public tool. Without FILE the program generates a corpus with planted duplicates,
removes them in all ways, each in a process of its own, and compares CPU time, memory, and texts that were dropped by
mistake.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import orjson
from dedup import Result, approximate, documents, exact, program, texts_of, with_set
from dolma_dedup import dolma
from planted import PARAGRAPHS_PER_DOCUMENT, generate
from support import Rows

# The first is the reference that the others are compared with.
WAYS = {"set": with_set, "filter": approximate, "exact": exact, "program": program, "dolma": dolma}


def compare(args: argparse.Namespace) -> None:
    """Generates a corpus, removes its duplicates in every way, and prints a table."""
    rows = Rows(args.rows, "corpus")
    with tempfile.TemporaryDirectory(dir=args.temp_dir) as folder:
        corpus = Path(folder, "corpus.jsonl")
        kinds = generate(corpus, args.documents, args.seed)
        print(f"{args.documents:,} documents, {corpus.stat().st_size / 1e6:,.0f} MB; planted: ", end="")
        print(f"{kinds['repeated']:,} repeats, {kinds['near']:,} with one word changed")
        for level in ("document", "paragraph"):
            capacity = args.documents * (1 if level == "document" else PARAGRAPHS_PER_DOCUMENT)
            compare_level(corpus, level, capacity, args, rows)
        print(f"\npetal dedup counts {lines_of_dedup(corpus):,} distinct documents")


def compare_level(corpus: Path, level: str, capacity: int, args: argparse.Namespace, rows: Rows) -> None:
    print(f"\n{level}s, false-positive rate {args.fpr:g}")
    print(f"{'way':<8}{'CPU s':>9}{'memory MB':>11}{'filter MB':>11}{'kept':>12}{'dropped':>11}{'by mistake':>12}")
    reference, total = corpus.with_name("reference.jsonl"), 0
    for way in WAYS:
        out = reference if way == "set" else corpus.with_name("kept.jsonl")
        result = run_way(way, corpus, out, level, capacity, args.fpr)
        total = total or result.texts
        kept, lacks, extra = (result.kept, 0, 0) if out == reference else missing(reference, out, level)
        if extra:
            raise SystemExit(f"main.py: {way} kept {extra} {level}s that are repeats")
        sizes = f"{result.memory_bytes / 1e6:>11.1f}{result.filter_bytes / 1e6:>11.2f}"
        print(f"{way:<8}{result.cpu_seconds:>9.2f}{sizes}{kept:>12,}{total - kept:>11,}{lacks:>12,}", flush=True)
        case = f"{level}s: {way}"
        for figure, value, unit in (
            ("CPU time", result.cpu_seconds, "s"),
            ("memory", result.memory_bytes, "bytes"),
            ("filter", result.filter_bytes, "bytes"),
            ("candidates", result.candidates, f"{level}s"),
            ("kept", kept, f"{level}s"),
            ("dropped", total - kept, f"{level}s"),
            ("dropped by mistake", lacks, f"{level}s"),
        ):
            rows.add(case, args.documents, figure, value, unit)


def run_way(way: str, path: Path, out: Path, level: str, capacity: int, fpr: float) -> Result:
    """Runs one way of deduplication in a process of its own, so that its memory is measured."""
    words = ["--way", way, "--level", level, "--capacity", str(capacity), "--fpr", str(fpr), "--output", str(out)]
    command = [sys.executable, __file__, *words, str(path)]
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"RUST_LOG": "error"})
    if ran.returncode:
        raise SystemExit(f"main.py: the way {way!r} failed: its messages are above")
    return Result(**json.loads(ran.stdout))


def peak_bytes() -> int:
    """Returns the largest resident memory that this process had."""
    return int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) * 1024


def missing(reference: Path, other: Path, level: str) -> tuple[int, int, int]:
    """Compares two deduplicated corpora in the same order.

    Returns the number of texts of the second, how many of the reference it lacks, and how many only it has.
    """
    texts = lacks = extra = 0
    others = ((document["id"], left) for _, document in documents(other) if (left := texts_of(document, level)))
    id, kept = next(others, (None, []))
    for _, document in documents(reference):
        expected = texts_of(document, level)
        mine: list[str] = []
        if id == document["id"]:
            mine = kept
            id, kept = next(others, (None, []))
        both = len(set(expected) & set(mine))
        texts += len(mine)
        lacks += len(expected) - both
        extra += len(mine) - both
    leftover = itertools.chain([kept] if id is not None else [], (left for _, left in others))
    more = sum(len(each) for each in leftover)
    return texts + more, lacks, extra + more


def lines_of_dedup(corpus: Path) -> int:
    """Returns the number of distinct documents by `petal dedup`, exact for any size: a text in JSON is one line."""
    with subprocess.Popen(["petal", "dedup", "-c"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        with program.stdin as pipe:
            for _, document in documents(corpus):
                pipe.write(orjson.dumps(document["text"]) + b"\n")
        return int(program.stdout.read())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: cargo x example corpus --level paragraph --way exact -o kept.jsonl corpus.jsonl",
    )
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE", help='JSON lines with a field "text"')
    parser.add_argument("-o", "--output", type=Path, help="where the documents that are kept are written")
    parser.add_argument("--level", choices=("document", "paragraph"), default="document", help="[default: document]")
    parser.add_argument("--way", choices=WAYS, default="filter", help="[default: filter]")
    parser.add_argument("--capacity", type=int, help="texts to plan for [default: lines, times 6 for paragraphs]")
    parser.add_argument("--fpr", type=float, default=1e-4, help="false-positive rate of the filters [default: 1e-4]")
    parser.add_argument("--documents", type=int, default=20_000, help="documents to generate [default: 20,000]")
    parser.add_argument("--seed", type=int, default=1, help="seed of the generated corpus [default: 1]")
    parser.add_argument("--temp-dir", type=Path, help="folder for the generated corpus [default: the system's]")
    parser.add_argument("--rows", type=Path, help="append the measured figures to this CSV file")
    args = parser.parse_args()
    if not 0 < args.fpr < 1:
        parser.error(f"--fpr {args.fpr:g}: expected a rate between 0 and 1")
    if args.documents < 1:
        parser.error(f"--documents {args.documents}: expected at least 1")
    if args.file is None:
        if args.output:
            parser.error("--output needs FILE: the generated corpus is not kept")
        compare(args)
        return
    if args.output is None:
        parser.error("FILE needs --output: where the documents that are kept are written")
    try:
        capacity = args.capacity
        if capacity is None:
            with open(args.file, "rb") as file:
                capacity = max(1, sum(1 for _ in file)) * (1 if args.level == "document" else PARAGRAPHS_PER_DOCUMENT)
        start, before = time.process_time(), peak_bytes()
        result = WAYS[args.way](args.file, args.output, args.level, capacity, args.fpr)
        result.cpu_seconds += time.process_time() - start
        result.memory_bytes = result.memory_bytes or peak_bytes() - before
    except (OSError, ValueError) as error:
        print(f"main.py: {error}", file=sys.stderr)
        sys.exit(2)
    print(json.dumps(asdict(result)))


if __name__ == "__main__":
    main()
