"""Runs the Python code of a page: `python page_code.py docs/page.md NUMBER [SKIP ...]`.

A block that begins with NEW_PROCESS starts another process; NUMBER selects one of these processes.
Blocks after the line `<!-- not run: REASON -->`, and those that contain one of the strings SKIP, are left out.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

NEW_PROCESS = "# In a new Python process:"


def processes(page: Path) -> list[list[tuple[int, str]]]:
    """Returns the blocks of a page with their line numbers, grouped by process."""
    text, found = page.read_text(), [[]]
    for block in re.finditer(r"(?<! -->\n)^```python\n(.*?)^```$", text, re.M | re.S):
        if block.group(1).startswith(NEW_PROCESS):
            found.append([])
        found[-1].append((text.count("\n", 0, block.start(1)), block.group(1)))
    return found


def run(page: Path, number: int, skip: list[str]) -> None:
    """Runs the blocks of one process in this interpreter; there must be at least one."""
    names, ran = {"__name__": "page"}, 0
    for line, code in processes(page)[number]:
        if not any(text in code for text in skip):
            exec(compile("\n" * line + code, str(page), "exec"), names)
            ran += 1
    assert ran, f"{page} has no Python code"


def run_all(python: str | Path, page: Path, folder: Path, *skip: str, **variables: str) -> None:
    """Runs all blocks with an interpreter, in a folder."""
    for number in range(len(processes(page))):
        run_one(python, page, number, folder, *skip, **variables)


def run_one(
    python: str | Path, page: Path, number: int, folder: Path, *skip: str, **variables: str
) -> None:
    """Runs the blocks of one process with an interpreter, in a folder."""
    done = subprocess.run(
        [str(python), __file__, str(page), str(number), *skip],
        cwd=folder, env=environment(variables), capture_output=True, text=True, check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def environment(variables: dict[str, str]) -> dict[str, str]:
    """Returns the environment without variables of Spark and of these tests, plus `variables`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_")}
    kept.pop("PYTHONPATH", None)
    return kept | variables


if __name__ == "__main__":
    run(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
