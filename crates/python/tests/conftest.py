"""What several tests need."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

# Whoever runs the tests in the background may ignore Ctrl-C, and so would all that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def program() -> Path:
    """The program `petal`, as the tests of the workspace build it."""
    subprocess.run(["cargo", "build", "--quiet", "--package", "petal-cli"], cwd=ROOT, check=True)
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug" / "petal"
