"""Virtual environments with petal and other packages, kept in `target/` between runs."""

import fcntl
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import petal

ROOT = Path(__file__).resolve().parents[3]


def python_with(*packages: str, extra: str | None = None) -> Path:
    """Returns the Python of an environment with petal, these packages and their dependencies.

    With `extra`, pip installs `petal-filters[extra]` from petal's wheel.
    """
    name = hashlib.sha256("\n".join([sys.version, extra or "", *packages]).encode()).hexdigest()[:16]
    home = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "python-environments" / name
    home.parent.mkdir(parents=True, exist_ok=True)
    python = home / "bin/python"
    with open(f"{home}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (home / "done").exists():
            _run(sys.executable, "-m", "venv", "--clear", home)
            if packages:
                _pip(python, *packages)
            if extra:
                _pip(python, f"{wheel()}[{extra}]")
            (home / "done").touch()
        # petal changes between runs, so it is replaced.
        (site,) = home.glob("lib/python3*/site-packages")
        if extra:
            _pip(python, "--no-deps", "--force-reinstall", wheel())
        else:
            here = site / "petal"
            here.unlink(missing_ok=True)
            here.symlink_to(Path(petal.__file__).parent)
    return python


def wheel() -> Path:
    """Returns the wheel under test."""
    (made,) = (Path(sys.prefix) / "wheels").glob("petal_filters-*.whl")
    return made


def _pip(python: Path, *packages: str | Path) -> None:
    _run(python, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", *packages)


def _run(*command: str | Path) -> None:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
