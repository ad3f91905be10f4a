"""The programs of all languages, and the comparison of what they print."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LIBRARY = Path(os.environ.get("PETAL_LIBRARY") or ROOT / "target/release/deps/libpetal_capi.so")
PACKAGE = Path(os.environ.get("PETAL_JS") or ROOT / "target/js/petal.js")


@dataclass
class Language:
    """A program that prints the lines of its input that a filter file may contain. The file is its last argument."""

    name: str
    command: list[str]
    build: list[str] = field(default_factory=list)
    tools: list[str] = field(default_factory=list)
    needs: list[Path] = field(default_factory=list)

    def missing(self) -> str | None:
        """Returns what the language lacks on this machine."""
        tools = [tool for tool in self.tools if shutil.which(tool) is None]
        files = [str(path) for path in self.needs if not path.exists()]
        return ", ".join(tools + files) or None


def languages(folder: Path) -> list[Language]:
    """Returns all languages; their programs are built in the folder."""
    c, cpp, go = (str(folder / name) for name in ("ask-c", "ask-cpp", "ask-go"))
    headers = ["-O2", "-I", str(ROOT / "crates/capi/include")]
    # Programs look for the name that the library has when it is installed.
    (folder / "libpetal.so.1").symlink_to(LIBRARY.absolute())
    linked = [str(folder / "libpetal.so.1"), f"-Wl,-rpath,{folder}"]
    source = str(HERE / "ask")
    java = ["javac", "-sourcepath", str(ROOT / "java/src"), "-d", str(folder), str(HERE / "Ask.java")]
    return [
        Language("program", ["petal", "check"], tools=["petal"]),
        Language("Python", [sys.executable, f"{source}.py"]),
        Language("C", [c], ["gcc", *headers, "-o", c, f"{source}.c", *linked], ["gcc"], [LIBRARY]),
        Language("C++", [cpp], ["g++", *headers, "-o", cpp, f"{source}.cpp", *linked], ["g++"], [LIBRARY]),
        Language("Go", [go], ["go", "build", "-o", go, "ask.go"], ["go"]),
        Language("Java", ["java", "-cp", str(folder), "Ask"], java, ["java", "javac"]),
        Language("Node", ["node", f"{source}.mjs", str(PACKAGE)], tools=["node"], needs=[PACKAGE]),
    ]


def run(command: list[str], text: str = "") -> list[str]:
    """Runs a command in this folder; returns the lines that it prints."""
    environment = {**os.environ, "GO111MODULE": "on", "GOFLAGS": "-mod=mod", "GOPROXY": "off"}
    ran = subprocess.run(command, cwd=HERE, env=environment, input=text, encoding="utf-8", stdout=subprocess.PIPE)
    # `petal check` has exit code 1 if it found no key.
    if ran.returncode not in (0, 1) or (ran.returncode and command[0] != "petal"):
        raise SystemExit(f"{command[0]} failed with exit code {ran.returncode}")
    return ran.stdout.splitlines()


def first_difference(name: str, found: list[str], expected: list[str]) -> str | None:
    """Returns a sentence about the first answer that differs from that of the program."""
    if found == expected:
        return None
    differ = (index for index, (one, two) in enumerate(zip(found, expected)) if one != two)
    index = next(differ, min(len(found), len(expected)))
    answers = [repr(keys[index]) if index < len(keys) else "nothing" for keys in (found, expected)]
    return f"{name} prints {answers[0]} as line {index + 1}, the program {answers[1]}"
