"""The code of docs/guides/python-migration.md runs with the packages that it names."""

import subprocess
from pathlib import Path

import page_code
import pytest
from environments import python_with

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs/guides/python-migration.md"
PACKAGES = ["pybloom-live==4.0.0", "rbloom==1.5.4", "pyprobables==0.7.0", "datasketches==5.2.0"]


@pytest.fixture(scope="module")
def python() -> Path:
    return python_with(*PACKAGES)


def test_code_of_the_page_runs(python: Path, tmp_path: Path) -> None:
    page_code.run_all(python, PAGE, tmp_path)


def test_package_datasketches_has_no_bloom_filter(python: Path) -> None:
    code = "import datasketches; assert not [name for name in dir(datasketches) if 'bloom' in name.lower()]"
    subprocess.run([python, "-c", code], check=True)


def test_page_names_the_tested_versions() -> None:
    text = " ".join(PAGE.read_text().split())
    for package in PACKAGES:
        name, version = package.split("==")
        assert f"{name} {version}" in text or f"`{name}` {version}" in text
