"""Virtual environments with chosen packages beside petal, kept in `target/` between runs."""

import fcntl
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import petal

ROOT = Path(__file__).resolve().parents[3]


def python_with(*packages: str, extra: str | None = None) -> Path:
    """The Python of an environment with petal, these packages and what they need, and no others.

    With `extra` pip installs petal's wheel as `petal[extra]`, which adds what that names.
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
        # Petal itself changes from run to run.
        (site,) = home.glob("lib/python3*/site-packages")
        if extra:
            _pip(python, "--no-deps", "--force-reinstall", wheel())
        else:
            here = site / "petal"
            here.unlink(missing_ok=True)
            here.symlink_to(Path(petal.__file__).parent)
    return python


def wheel() -> Path:
    """The wheel that is tested."""
    (made,) = (Path(sys.prefix) / "wheels").glob("petal-*.whl")
    return made


def _pip(python: Path, *words: str | Path) -> None:
    _run(python, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", *words)


def _run(*words: str | Path) -> None:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
