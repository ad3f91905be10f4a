"""Runs the Python that a page shows, as a reader does: `python page_code.py docs/page.md`.

All blocks run in one process, but those from a block on that begins with NEW_PROCESS, which run in
the next one. Further arguments are words: blocks that have one of them are left out."""

import os
import re
import subprocess
import sys
from pathlib import Path

NEW_PROCESS = "# In a new Python process:"


def processes(page: Path) -> list[list[tuple[int, str]]]:
    """The blocks of a page and the lines where they begin, by process."""
    text, found = page.read_text(), [[]]
    for block in re.finditer(r"^```python\n(.*?)^```$", text, re.M | re.S):
        if block.group(1).startswith(NEW_PROCESS):
            found.append([])
        found[-1].append((text.count("\n", 0, block.start(1)), block.group(1)))
    return found


def run(page: Path, number: int, left_out: list[str]) -> None:
    """Runs the blocks of one process, of which there are some."""
    names, ran = {"__name__": "page"}, 0
    for line, code in processes(page)[number]:
        if not any(word in code for word in left_out):
            exec(compile("\n" * line + code, str(page), "exec"), names)
            ran += 1
    assert ran, f"{page} shows no Python"


def run_all(python: str | Path, page: Path, folder: Path, *left_out: str, **variables: str) -> None:
    """Runs all blocks with a Python, in a folder."""
    for number in range(len(processes(page))):
        run_one(python, page, number, folder, *left_out, **variables)


def run_one(
    python: str | Path, page: Path, number: int, folder: Path, *left_out: str, **variables: str
) -> None:
    """Runs the blocks of one process with a Python, in a folder."""
    done = subprocess.run(
        [str(python), __file__, str(page), str(number), *left_out],
        cwd=folder, env=environment(variables), capture_output=True, text=True, check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def environment(variables: dict[str, str]) -> dict[str, str]:
    """That of a reader: nothing of Spark's or of these tests', but what is said."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_")}
    ours.pop("PYTHONPATH", None)
    return ours | variables


if __name__ == "__main__":
    run(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
