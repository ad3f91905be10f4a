"""Every file of the list is known, and no other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

MAIN = Path(__file__).with_name("main.py")


def test_listed_files_are_known_whatever_their_names(tmp_path):
    for number in range(40):
        (tmp_path / f"file {number}").write_text(f"content {number}")
    for name in ('quoted "name"', "back\\slash", "line\nend", "-option"):
        (tmp_path / name).write_text(f"odd {name}")
    (tmp_path / "copy of a listed file").write_text("content 1")
    ran = subprocess.run([sys.executable, MAIN, tmp_path], text=True, capture_output=True, check=True)
    assert " files in " in ran.stdout and ran.stdout.startswith("45 files"), ran.stdout
    assert ", 0 falsely known; " in ran.stdout, ran.stdout
