"""docs/reference/python.md has every public name, signature, property and argument of the package."""

import ast
import inspect
import re
from pathlib import Path

import petal
import pytest
from petal import _arguments

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "crates/python/python/petal"
PAGE = (ROOT / "docs/reference/python.md").read_text()
OPERATORS = {"__or__": "|", "__ior__": "|=", "__and__": "&", "__iand__": "&="}


def definitions(file):
    """Returns the functions and classes of a file by name."""
    body = ast.parse((PACKAGE / file).read_text()).body
    return {node.name: node for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}


STUBS = definitions("_petal.pyi")
FILES = definitions("_set_operations.py") | definitions("_line_filters.py") | definitions("_report.py")
JOBS = definitions("_distributed/jobs.py")
CLASSES = [name for name in petal.__all__ if name.endswith(("Filter", "Cascade"))]


def section(heading):
    """Returns the text of a section, without line breaks and without its subsections."""
    found = re.search(rf"^##+ `?(?:petal\.)?{heading}`?\n(.*?)(?=^##|\Z)", PAGE, re.M | re.S)
    assert found, f"docs/reference/python.md has no section {heading}"
    return " ".join(found[1].split())


#: Keywords that the page has as `…` in the signatures of set operations, and in those of distributed ones.
READING = "jobs delimiter text column separator quote escape header json_key key_transform progress".split()
DISTRIBUTED = "work memory_limit jobs slots range_bytes delimiter json_key key_transform".split()


def signature(function, first=None, shared=()):
    """Returns the arguments as they are written in a call, with `…` for shared ones; the first one may have another
    name."""
    args, shown = function.args, []
    positional = [arg.arg for arg in args.posonlyargs + args.args if arg.arg not in ("self", "cls")]
    if first:
        positional[0] = first
    defaults = [None] * (len(positional) - len(args.defaults)) + args.defaults
    for name, default in zip(positional, defaults):
        shown.append(name if default is None else f"{name}={ast.unparse(default)}")
    if args.vararg:
        shown.append(f"*{args.vararg.arg}")
    elif args.kwonlyargs:
        shown.append("*")
    keywords = keyword_arguments(function)
    is_short = bool(shared) and set(shared) <= set(keywords)
    for name, default in keywords.items():
        if not is_short or name not in shared:
            shown.append(name if default is None else f"{name}={default}")
    if is_short:
        shown.append("…")
    return f"({', '.join(shown)})"


def keyword_arguments(function):
    """Returns the defaults of keyword arguments by name, those of the declared options as well."""
    args = function.args
    defaults = {arg.arg: default and ast.unparse(default) for arg, default in zip(args.kwonlyargs, args.kw_defaults)}
    if args.kwarg:
        options = getattr(_arguments, args.kwarg.annotation.slice.id)
        defaults |= {name: repr(_arguments.DEFAULTS.get(name)) for name in options.__annotations__}
    return defaults


def test_shared_arguments_have_one_default():
    """The page shows the defaults of shared arguments once, where it describes them."""
    found = {}
    for function in (item for item in JOBS.values() if isinstance(item, ast.FunctionDef)):
        for name, default in keyword_arguments(function).items():
            found.setdefault(name, set()).add(default)
    assert [name for name in DISTRIBUTED if len(found[name]) != 1] == []


def test_signatures_have_the_options_of_a_job():
    """For `help` and completion."""
    for name in ("common", "diff", "symdiff", "dedup", "count", "build", "check", "seen"):
        shown = inspect.signature(getattr(petal, name)).parameters
        keywords = [one.name for one in shown.values() if one.kind is one.KEYWORD_ONLY]
        assert keywords == list(keyword_arguments(FILES[name])), name
        assert shown["delimiter"].default == b"\n"


def test_unknown_options_are_errors():
    with pytest.raises(TypeError, match=r"dedup\(\) got an unexpected keyword argument 'seperator'"):
        petal.dedup("a", seperator=";")
    with pytest.raises(TypeError, match=r"count\(\) got an unexpected keyword argument 'resume'"):
        petal.count("a", resume=True)


def public_methods(node):
    """Returns the methods and properties of a class that are public or operators."""
    methods = [item for item in node.body if isinstance(item, ast.FunctionDef)]
    return [item for item in methods if not item.name.startswith("_") or item.name in OPERATORS]


@pytest.mark.parametrize("name", petal.__all__)
def test_page_has_every_public_name(name):
    assert re.search(rf"`(petal\.)?{name}[`(]", PAGE), name


@pytest.mark.parametrize("name", CLASSES)
def test_page_has_the_members_of_every_class(name):
    text, node = section(name), STUBS[name]
    for method in public_methods(node):
        decorators = [ast.unparse(decorator) for decorator in method.decorator_list]
        if method.name in OPERATORS:
            expected = rf"{re.escape(OPERATORS[method.name])}(?!=)"
        elif any("property" in decorator or "setter" in decorator for decorator in decorators):
            expected = re.escape(f"`{method.name}`")
        else:
            expected = re.escape(f"`{method.name}{signature(method)}`")
        assert re.search(expected, text), f"{name}.{method.name}: {expected}"


@pytest.mark.parametrize("name", [name for name in CLASSES if name != "Filter"])
def test_page_has_the_arguments_of_every_constructor(name):
    new = next(method for method in STUBS[name].body if getattr(method, "name", "") == "__new__")
    assert f"`{name}{signature(new)}`" in section(name)


@pytest.mark.parametrize("name", ["common", "diff", "symdiff", "dedup", "count", "build", "check", "seen", "merge"])
def test_page_has_the_arguments_of_every_operation(name):
    assert f"`petal.{name}{signature(FILES[name], shared=READING)}`" in section(name)
    described = section("common") + section(name) + section("spark")
    functions = [FILES[name]]
    if name in JOBS:
        assert f"`{name}{signature(JOBS[name], first='spark', shared=DISTRIBUTED)}`" in section("spark")
        functions.append(JOBS[name])
    for function in functions:
        engine = function is not FILES[name]
        positional = [argument.arg for argument in function.args.args[engine:]]
        for argument in [*positional, *keyword_arguments(function)]:
            assert re.search(rf"[|,] `\*?{argument}`|`{argument}`", described), f"{name}: {argument}"


@pytest.mark.parametrize("name", ["open", "load", "from_bytes"])
def test_page_has_the_arguments_of_every_function_that_opens(name):
    assert f"`petal.{name}{signature(STUBS[name])}`" in section("Opening filters")


@pytest.mark.parametrize("name", ["Report", "CountReport", "Phase"])
def test_page_has_every_field(name):
    fields = {node.target.id for node in FILES[name].body if isinstance(node, ast.AnnAssign)}
    shown = set(re.findall(r"\| `(\w+)` \|", section(name)))
    assert shown == {field for field in fields if not field.startswith("_")}
    shared = public_methods(FILES["_Results"]) if name != "Phase" else []
    for method in public_methods(FILES[name]) + shared:
        arguments = "" if method.decorator_list else signature(method)
        assert f"`{method.name}{arguments}`" in section(name)


def test_page_has_the_function_of_duckdb():
    assert f"`register{signature(definitions('duckdb.py')['register'])}`" in section("duckdb")


def test_page_has_the_public_names_of_spark_dask_and_scrapy():
    for package in ("spark", "scrapy"):
        body = ast.parse((PACKAGE / package / "__init__.py").read_text()).body
        names = next(ast.literal_eval(n.value) for n in body if isinstance(n, ast.Assign))
        for name in names:
            assert re.search(rf"[`.]{name}[`(]", section(package)), f"petal.{package}.{name}"
    body = ast.parse((PACKAGE / "dask.py").read_text()).body
    for node in (node for node in body if isinstance(node, ast.Assign)):
        name = ast.unparse(node.targets[0])
        assert name == "P" or f"`{name}`" in section("dask"), f"petal.dask.{name}"
    functions = definitions("spark/_frames.py") | definitions("spark/_sketch.py")
    for name in ("contains", "register", "transform_key", "to_spark_bloom", "from_spark_bloom", "xxhash64", "sql_extension"):
        assert f"`{name}{signature(functions[name])}`" in section("spark")
