"""docs/reference/python*.md are generated, and have every public name; docstrings describe every argument."""

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import petal
import petal.dask
import petal.duckdb
import pytest
import reference
from petal._arguments import JobOptions, ReadOptions, SetOptions
from petal._distributed import jobs
from petal._distributed.options import ExactOptions, Options

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "crates/python/python/petal"
TEXT = "\n".join(page.read_text() for page in reference.PAGES)
OPERATORS = {"__or__": "a | b", "__ior__": "a |= b", "__and__": "a & b", "__iand__": "a &= b", "__le__": "a <= b"}
FILTERS = [name for name in petal.__all__ if name.endswith(("Filter", "Cascade"))]
TYPES = [name for name in FILTERS if name != "Filter"]
OPTIONS = {
    "common": (SetOptions, ExactOptions), "diff": (SetOptions, ExactOptions), "symdiff": (SetOptions, ExactOptions),
    "dedup": (SetOptions, ExactOptions), "build": (ReadOptions, Options), "check": (JobOptions, Options),
    "seen": (JobOptions, None), "count": (JobOptions, None),
}  # fmt: skip


def test_pages_have_the_signatures_and_docstrings_of_the_package():
    run = [sys.executable, str(ROOT / "crates/python/reference.py"), "--check"]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"run python crates/python/reference.py:\n{done.stderr}"


@pytest.mark.parametrize("name", [*FILTERS, "open", "load", "from_bytes"])
def test_signatures_of_the_stub_are_those_of_the_extension(name):
    """Also `*` before a name, which mypy's stubtest does not compare."""
    stub, found = reference.File("petal", "_petal.pyi"), getattr(petal, name)
    node = stub.nodes[name]
    functions = {found: node}
    if isinstance(node, ast.ClassDef):
        members = stub.members(node)
        functions = {getattr(found, each): members[each] for each in members if each[0] != "_"}
        functions[found] = members.get("__new__")
    for runtime, declared in functions.items():
        if declared and callable(runtime):
            arguments = [one for one in inspect.signature(runtime).parameters.values() if one.name != "self"]
            assert stub.signature(declared, "") == f"`{inspect.Signature(arguments)}`"


@pytest.mark.parametrize("module", ["__init__.py", "duckdb.py", "spark/__init__.py", "scrapy/__init__.py"])
def test_pages_have_every_public_name(module):
    body = ast.parse((PACKAGE / module).read_text()).body
    lists = [node.value for node in body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"]
    prefix = module.removesuffix(".py").removesuffix("__init__").replace("/", ".")
    prefix = f"petal.{prefix.rstrip('.')}" if prefix else ""
    for name in ast.literal_eval(lists[0]):
        shown = rf"`{prefix}\.{name}`" if prefix else rf"`(petal\.)?{name}`"
        assert re.search(shown, TEXT), name


@pytest.mark.parametrize("name", FILTERS)
def test_pages_have_the_operators_of_every_class(name):
    section = re.search(rf"^### `{name}`\n(.*?)^#+ ", TEXT, re.M | re.S)[1].replace("\\|", "|")
    for method in set(vars(getattr(petal, name))) & OPERATORS.keys():
        assert f"`{OPERATORS[method]}`" in section, method


def described(module, name, seen=()):
    """Returns the names in a docstring and in those that it refers to."""
    names = set(re.findall(r"`(\w+)`", inspect.getdoc(getattr(module, name))))
    others = [other for other in names if other not in (*seen, name) and other in (*petal.__all__, *OPTIONS)]
    return names.union(*(described(module, other, (*seen, name)) for other in others if hasattr(module, other)))


@pytest.mark.parametrize(
    ("module", "name"),
    [(petal, name) for name in [*TYPES, "open", "load", "from_bytes", "seen_before", "merge", "transform_key", *OPTIONS]]
    + [(jobs, name) for name, (_, options) in OPTIONS.items() if options]
    + [(petal.duckdb, "register")],
)
def test_docstrings_describe_every_argument(module, name):
    arguments = inspect.signature(getattr(module, name)).parameters.keys() - {"engine", "name"}
    assert arguments - described(module, name) == set()


def test_signatures_have_the_options_of_a_job():
    """For `help` and completion."""
    for name, (one_machine, cluster) in OPTIONS.items():
        shown = inspect.signature(getattr(petal, name)).parameters
        assert one_machine.__annotations__.keys() <= shown.keys(), name
        assert shown["delimiter"].default == b"\n" and shown["delimiter"].kind is inspect.Parameter.KEYWORD_ONLY
        if cluster:
            shown = inspect.signature(getattr(petal.dask, name)).parameters
            assert next(iter(shown)) == "client" and cluster.__annotations__.keys() <= shown.keys(), name
            assert shown["memory_limit"].default == "1G"


def test_unknown_options_are_errors(tmp_path):
    with pytest.raises(TypeError, match=r"dedup\(\) got an unexpected keyword argument 'seperator'"):
        petal.dedup("a", seperator=";")
    with pytest.raises(TypeError, match=r"count\(\) got an unexpected keyword argument 'resume'"):
        petal.count("a", resume=True)
    with pytest.raises(TypeError, match=r"check\(\) got an unexpected keyword argument 'shards'"):
        petal.BloomFilter(1).save(tmp_path / "f")
        jobs.check(None, "a", tmp_path / "f", None, shards=2)
