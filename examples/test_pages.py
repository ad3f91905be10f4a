"""Every `cargo x example` command of the pages prints what the page shows."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from support import ROOT

PROMPT = "$ cargo x example "


@dataclass
class Command:
    """A command of a page and the output below it."""

    page: str
    line: int
    words: list[str]
    shown: list[str]


def commands(page: str, text: str) -> list[Command]:
    """Returns the commands of the console blocks that are not marked as not run."""
    found: list[Command] = []
    in_block, marked = False, False
    # The output of the last command of the block.
    shown: list[str] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            in_block = line == "```console" and not marked
            marked, shown = False, None
        elif line.startswith("<!-- not run:"):
            marked = True
        elif line and not in_block and not line.startswith("<!--"):
            marked = False
        elif in_block and line.startswith(PROMPT):
            shown = []
            found.append(Command(page, number, shlex.split(line.removeprefix(PROMPT)), shown))
        elif in_block and shown is not None:
            shown.append(line.rstrip())
    return found


def is_as_shown(shown: list[str], output: list[str]) -> bool:
    """Compares output with a page, in which a line `...` is any lines and `...` within a line any text."""
    if not shown:
        return not output
    if shown[0] == "...":
        return any(is_as_shown(shown[1:], output[skip:]) for skip in range(len(output) + 1))
    pattern = ".*".join(map(re.escape, shown[0].split("...")))
    return bool(output) and re.fullmatch(pattern, output[0]) is not None and is_as_shown(shown[1:], output[1:])


def program(name: str) -> list[str]:
    """Returns the command that `cargo x example NAME` runs after the installation."""
    if (ROOT / "examples" / name / "main.py").exists():
        return [sys.executable, f"examples/{name}/main.py"]
    return [f"petal-example-{name}"]


PAGES = sorted((ROOT / "docs").rglob("*.md"))
COMMANDS = [c for page in PAGES for c in commands(str(page.relative_to(ROOT)), page.read_text())]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: f"{Path(c.page).stem}-{c.line}")
def test_output_is_as_shown(command: Command):
    ran = subprocess.run(
        [*program(command.words[0]), *command.words[1:]],
        cwd=ROOT, env=os.environ, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    output = [line.rstrip() for line in ran.stdout.rstrip().splitlines()]
    assert ran.returncode == 0, ran.stdout
    assert is_as_shown(command.shown, output), f"{command.page}:{command.line}: the output is\n{ran.stdout}"


def test_commands_of_a_page_are_found():
    text = "```console\n$ cargo x example a -n 1\none ... s\n```\n\n<!-- not run: long -->\n```console\n$ cargo x example b\n```\n"
    assert [(c.words, c.shown, c.line) for c in commands("p.md", text)] == [(["a", "-n", "1"], ["one ... s"], 2)]


def test_other_output_is_found():
    assert is_as_shown(["a ... s", "...", "c"], ["a 1 s", "b", "c"])
    assert not is_as_shown(["a ... s"], ["a 1 m"])
    assert not is_as_shown(["a"], ["a", "b"])
