"""The conformance set gives its answers, and its hostile files are refused (docs/reference/readers.md)."""

import json
from pathlib import Path
from typing import Any

import petal
import pytest

FOLDER = Path(__file__).resolve().parents[3] / "testdata" / "conformance"


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / name).read_text().splitlines()]


def key_of(line: dict[str, Any]) -> str | int | bytes:
    if "text" in line:
        return line["text"]
    return int(line["number"]) if "number" in line else bytes.fromhex(line["bytes"])


# A window of time moves with the clock, and the answers are those at the time in the file.
FILES = [file for file in lines("files.jsonl") if file["file"] != "windowed-time.petal"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file["file"])
def test_files_give_their_answers(file: dict[str, Any]) -> None:
    path = FOLDER / file["file"]
    secret = {"secret": bytes.fromhex(file["secret"])} if file["secret"] else {}
    answers = lines(path.with_suffix(".jsonl").name)
    keys, expected = [key_of(line) for line in answers], [line["present"] for line in answers]
    for filter in (petal.open(path, **secret), petal.from_bytes(path.read_bytes(), **secret)):
        assert filter.type == file["type"]
        assert [key in filter for key in keys] == expected
        assert filter.contains_batch(keys) == expected


def test_hostile_files_are_refused() -> None:
    for line in lines("hostile.jsonl"):
        data = bytearray((FOLDER / line["file"]).read_bytes())
        for at, new in line["edits"]:
            data[at : at + len(new) // 2] = bytes.fromhex(new)
        data = data[: line["length"]].ljust(line["length"], b"\0")
        with pytest.raises(petal.PetalError):
            petal.from_bytes(bytes(data))
