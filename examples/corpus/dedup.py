"""Removes repeated documents or paragraphs from JSON lines: in one pass with a filter, exactly, and with a set."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import resource
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson
import petal

BATCH = 1000


@dataclass
class Result:
    """Figures of a job. Texts are documents or paragraphs; `memory_bytes` is what the job added to its process."""

    texts: int = 0
    kept: int = 0
    candidates: int = 0
    filter_bytes: int = 0
    cpu_seconds: float = 0.0
    memory_bytes: int = 0


def approximate(path: Path, out: Path, level: str, capacity: int, fpr: float) -> Result:
    """Keeps each text that the filter has not seen. Every repeat is dropped, and about a share `fpr` of the others."""
    seen = petal.BloomFilter(capacity, fpr)
    result = filter_pass(path, level, lambda texts: [seen.add(text) for text in texts], out)
    result.filter_bytes = seen.size_bytes
    return result


def exact(path: Path, out: Path, level: str, capacity: int, fpr: float) -> Result:
    """Keeps the first of all equal texts, in two passes; the memory is the filter and a digest for each repeated text.

    The first pass collects the digests of the texts that the filter reports as seen: all repeated texts, and a few
    others. A text without such a digest occurs once; of the others the second pass keeps the first.
    """
    seen = petal.BloomFilter(capacity, fpr)
    candidates: set[bytes] = set()

    def collect(texts: list[str]) -> list[bool]:
        is_new = [seen.add(text) for text in texts]
        candidates.update(digest(text) for text, new in zip(texts, is_new) if not new)
        return is_new

    filter_pass(path, level, collect, None)
    size, count = seen.size_bytes, len(candidates)
    del seen
    written: set[bytes] = set()

    def is_first(text: str) -> bool:
        mark = digest(text)
        if mark not in candidates:
            return mark not in written
        candidates.remove(mark)
        written.add(mark)
        return True

    result = filter_pass(path, level, lambda texts: [is_first(text) for text in texts], out)
    result.filter_bytes, result.candidates = size, count
    return result


def with_set(path: Path, out: Path, level: str, capacity: int, fpr: float) -> Result:
    """Keeps the first of all equal texts: the reference, a set of the digests of all texts in memory."""
    seen: set[bytes] = set()

    def is_first(text: str) -> bool:
        size = len(seen)
        seen.add(digest(text))
        return len(seen) > size

    return filter_pass(path, level, lambda texts: [is_first(text) for text in texts], out)


def program(path: Path, out: Path, level: str, capacity: int, fpr: float) -> Result:
    """Runs `petal dedup`, exact: with `--unit line` for paragraphs. Its memory is that of its process."""
    with tempfile.TemporaryDirectory(dir=out.parent) as folder:
        report, cleaned = Path(folder, "report"), Path(folder, "cleaned")
        command = ["petal", "dedup", "-q", "--json-key", "/text", "--report", report, "-o", cleaned, path]
        if level == "paragraph":
            command += ["--unit", "line", "--min-parts", "1"]
        subprocess.run(command, check=True)
        (cleaned / path.name if level == "paragraph" else cleaned).rename(out)
        figures = json.loads(report.read_bytes())
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    texts = figures.get("parts") or {"read": figures["first_lines"], "kept": figures["kept"]}
    return Result(
        texts=texts["read"],
        kept=texts["kept"],
        cpu_seconds=used.ru_utime + used.ru_stime,
        memory_bytes=figures["memory_peak_bytes"],
    )


def digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def filter_pass(path: Path, level: str, decide: Callable[[list[str]], list[bool]], out: Path | None) -> Result:
    """Reads a corpus and writes what `decide` keeps of it. A document without any text left is dropped."""
    result = Result()
    with open(out, "wb") if out else contextlib.nullcontext() as file:
        reader = documents(path)
        while batch := list(itertools.islice(reader, BATCH)):
            texts = [texts_of(document, level) for _, document in batch]
            decisions = iter(decide([text for each in texts for text in each]))
            for (line, document), each in zip(batch, texts):
                left = [text for text in each if next(decisions)]
                result.texts += len(each)
                result.kept += len(left)
                if file and len(left) == len(each):
                    file.write(line if line.endswith(b"\n") else line + b"\n")
                elif file and left:
                    file.write(orjson.dumps(document | {"text": "\n".join(left)}) + b"\n")
    return result


def texts_of(document: dict, level: str) -> list[str]:
    """Returns the texts of a document that are compared: the whole text, or its paragraphs, which are its lines."""
    text = document["text"]
    return [text] if level == "document" else [line for line in text.split("\n") if line and not line.isspace()]


def documents(path: Path) -> Iterator[tuple[bytes, dict]]:
    """Returns the lines of a corpus and the documents in them."""
    for number, line, document in json_lines(path):
        if not isinstance(document, dict) or not isinstance(document.get("text"), str):
            raise ValueError(f'{path}:{number}: not a document: expected an object with a string "text"')
        yield line, document


def json_lines(path: Path) -> Iterator[tuple[int, bytes, dict]]:
    """Returns the number, the bytes and the value of each line of a file of JSON lines. Empty lines are skipped."""
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            if line.isspace():
                continue
            try:
                yield number, line, orjson.loads(line)
            except orjson.JSONDecodeError as error:
                raise ValueError(f"{path}:{number}: not JSON: {error}; expected one document per line") from None
