"""Fixtures of several tests."""

import importlib.util
import os
import signal
from pathlib import Path

import pytest

# A background job may ignore Ctrl-C, and so would all processes that it starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples in every run. The environment with Spark does not have the package.
if importlib.util.find_spec("hypothesis"):
    from hypothesis import settings

    settings.register_profile("repeatable", derandomize=True, database=None)
    settings.load_profile("repeatable")

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def program() -> Path:
    """The program `petal`, which `cargo x python` builds."""
    path = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug" / "petal"
    assert path.exists(), f"no {path}: run the tests by `cargo x python`"
    return path
