"""The list has the form of the download tool's, and the filter contains all of it except padding."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from pathlib import Path

from pwned_list import breached, write_list, write_ranges

MAIN = Path(__file__).with_name("main.py")


def test_one_file_and_range_files_have_the_same_hashes(tmp_path):
    write_list(tmp_path / "pwned.txt", 3000)
    write_ranges(tmp_path / "ranges", 3000, "0")
    lines = (tmp_path / "pwned.txt").read_bytes().splitlines()
    assert lines == sorted(lines) and len(lines) == 3000
    assert hashlib.sha1(breached(7).encode()).hexdigest().upper().encode() + b":7" in lines
    joined = [
        path.stem.encode() + line
        for path in sorted((tmp_path / "ranges").iterdir())
        for line in path.read_bytes().splitlines()
    ]
    assert joined == [line for line in lines if line.startswith(b"0")]


def test_breached_passwords_are_known_and_others_seldom():
    ran = subprocess.run([sys.executable, MAIN, "-n", "20000"], text=True, capture_output=True, check=True)
    known, others = re.search(r"known: ([\d,]+) of 1,000 breached passwords, ([\d,]+) of 100,000", ran.stdout).groups()
    assert known == "1,000" and 40 < int(others) < 180, ran.stdout
