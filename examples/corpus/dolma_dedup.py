"""Removes repeated documents or paragraphs with Dolma, the toolkit of the Allen Institute for AI."""

from __future__ import annotations

import functools
import importlib.machinery
import importlib.util
import itertools
import json
import math
import tempfile
from collections.abc import Iterator
from pathlib import Path

from dedup import Result, documents, filter_pass, json_lines
from support import peers

PLAIN = {"input": "", "output": ""}


def dolma(path: Path, out: Path, level: str, capacity: int, fpr: float) -> Result:
    """Runs the deduplication of Dolma, the toolkit of the Allen Institute for AI: its Bloom filter marks texts,
    a second pass drops them."""
    tool = dolma_extension()
    with tempfile.TemporaryDirectory(dir=out.parent) as folder:
        source = Path(folder, "documents", "corpus.jsonl")
        source.parent.mkdir()
        source.symlink_to(path.resolve())
        work = {"input": f"{folder}/work-in", "output": f"{folder}/work-out"}
        spans = {"attribute_name": "repeated"}
        dedupe = {"name": "dedupe", "skip_empty": True}
        dedupe |= {"documents": spans | {"key": "$.text"}} if level == "document" else {"paragraphs": spans}
        config = {
            "documents": [str(source)],
            "work_dir": work,
            "dedupe": dedupe,
            "bloom_filter": {
                "file": f"{folder}/filter",
                "size_in_bytes": textbook_bytes(capacity, fpr),
                "read_only": False,
                "estimated_doc_count": capacity,
                "desired_false_positive_rate": fpr,
            },
            "compression": PLAIN,
            "processes": 1,
        }
        tool.deduper_entrypoint(json.dumps(config))
        marks = dolma_marks(path, Path(folder, "attributes/dedupe/corpus.jsonl"), level)
        result = filter_pass(path, level, lambda texts: list(itertools.islice(marks, len(texts))), out)
        result.filter_bytes = Path(folder, "filter").stat().st_size
    return result


def dolma_marks(corpus: Path, attributes: Path, level: str) -> Iterator[bool]:
    """Returns for each text of a corpus whether Dolma did not mark it as repeated."""
    for (_, document), (_, _, marked) in zip(documents(corpus), json_lines(attributes), strict=True):
        starts = {span[0] for span in marked["attributes"].get("repeated", [])}
        if level == "document":
            yield not starts
            continue
        at = 0
        for line in document["text"].split("\n"):
            if line and not line.isspace():
                yield at not in starts
            at += len(line) + 1


def textbook_bytes(capacity: int, fpr: float) -> int:
    """Returns the size of a Bloom filter by the textbook. From a rate alone Dolma takes the next power of two."""
    return math.ceil(capacity * -math.log(fpr) / math.log(2) ** 2 / 8)


@functools.cache
def dolma_extension():
    """Loads the compiled part of Dolma alone: its Python part imports packages that deduplication does not need."""
    found = list((peers() / "dolma").glob("dolma/dolma.*.so"))
    if not found:
        raise FileNotFoundError(f"{peers() / 'dolma'}: Dolma is not installed; `cargo x example corpus` installs it")
    loader = importlib.machinery.ExtensionFileLoader("dolma", str(found[0]))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("dolma", loader))
    loader.exec_module(module)
    return module
