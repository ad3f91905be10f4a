"""The names and the version of the package, and its files beside those of the unrelated package `petal`."""

import importlib.metadata
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import petal
from environments import wheel

ROOT = Path(__file__).resolve().parents[3]


def test_version_is_the_workspaces_everywhere(program: Path):
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    shown = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    assert shown == f"petal {version}\n"
    assert petal.__version__ == importlib.metadata.version("petal-filters") == version
    assert wheel().name.startswith(f"petal_filters-{version}-")


def test_wheel_has_readme_licences_and_only_the_folder_petal():
    with zipfile.ZipFile(wheel()) as files:
        names = files.namelist()
        (metadata,) = (files.read(name).decode() for name in names if name.endswith("/METADATA"))
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"petal"}
    assert (ROOT / "crates/python/README.md").read_text() in metadata
    for licence in ["LICENSE-MIT", "LICENSE-APACHE"]:
        assert any(name.endswith(f"/licenses/{licence}") for name in names), names
    extras = set(re.findall(r"^Provides-Extra: (\S+)$", metadata, re.M))
    page = set(re.findall(r"`petal-filters\[([\w,]+)\]`", metadata))
    assert set().union(*(extra.split(",") for extra in page)) == extras


def warnings_with(folder: Path) -> str:
    """Returns what `import petal` prints if the package is in this folder."""
    code = f"import sys; sys.path.insert(0, {str(folder)!r}); import petal; petal.BloomFilter(10)"
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_files_of_the_other_package_give_a_warning(tmp_path: Path):
    package = tmp_path / "petal"
    package.mkdir()
    for file in Path(petal.__file__).parent.iterdir():
        (package / file.name).symlink_to(file)
    assert warnings_with(tmp_path) == ""
    (package / "grpc_services.py").touch()
    text = warnings_with(tmp_path)
    assert f"two packages are installed in {package}: petal-filters, and petal" in text
