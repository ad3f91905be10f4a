"""Every language of the machine gives the program's answers; a missing tool and a difference are named."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from programs import first_difference

MAIN = Path(__file__).with_name("main.py")


def output(**environment: str) -> list[list[str]]:
    """Returns the rows that the example prints."""
    command, environment = [sys.executable, MAIN, "-n", "2000"], {**os.environ, **environment}
    ran = subprocess.run(command, env=environment, text=True, capture_output=True, check=True)
    return [line.split() for line in ran.stdout.splitlines()]


def test_all_languages_give_the_answers_of_the_program():
    head, program, *others, end = output()
    assert head == ["language", "bloom", "static"] and " ".join(end).endswith("all answers are equal")
    assert [row[0] for row in others] == ["Python", "C", "C++", "Go", "Java", "Node"]
    assert 1000 <= int(program[1].replace(",", "")) < 1040
    assert all(row[1:] == program[1:] for row in others if row[1] != "skipped:")


def test_a_missing_tool_is_named(tmp_path):
    (tmp_path / "petal").symlink_to(shutil.which("petal"))
    skipped = {row[0]: row[3].strip(",") for row in output(PATH=str(tmp_path)) if row[1] == "skipped:"}
    assert skipped == {"C": "gcc", "C++": "g++", "Go": "go", "Java": "java", "Node": "node"}


def test_the_first_difference_is_named():
    assert first_difference("Go", ["a"], ["a"]) is None
    assert first_difference("Go", ["a"], ["a", "b"]) == "Go prints nothing as line 2, the program 'b'"
