"""Writes docs/reference/python.md from the signatures and docstrings of the package `petal`, which must be installed.

    python crates/python/reference.py [--check]

Signatures come from the source and the stubs, docstrings from the source and the extension module. A docstring is
Markdown. The text from `<!-- generated: FORM MODULE FILE NAME... -->` to `<!-- end -->` is generated in one of these forms:

| form | text |
|---|---|
| `sections` | a section for each function, with its docstring, or class, also with its methods and properties |
| `exceptions` | a table of exceptions |
| `options` | the keywords that `…` stands for in signatures |

`--check` writes nothing, and fails if the page differs.
"""

import ast
import difflib
import inspect
import re
import sys
import textwrap
from pathlib import Path

from petal import _arguments, _petal
from petal._distributed import options

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs/reference/python.md"
PART = re.compile(r"(<!-- generated: (.*?) -->\n).*?(<!-- end -->)", re.S)

#: The shared options of the jobs in each module; others are in their signatures.
SHARED = {_arguments: _arguments.ReadOptions, options: options.Options}

#: Operators that are other names of methods.
OPERATORS = {"union": {"__or__": "a | b", "__ior__": "a |= b"}, "intersection": {"__and__": "a & b", "__iand__": "a &= b"}}


class File:
    """A file of the package: its functions and classes by name, and their docstrings."""

    def __init__(self, module, name):
        #: The public module.
        self.module, self.is_stub = module, name.endswith(".pyi")
        body = ast.parse((HERE / "python/petal" / name).read_text()).body
        self.nodes = {node.name: node for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}

    def doc(self, *names):
        """Returns the docstring of a function, of a class, or of a member of a class."""
        if self.is_stub:
            found = _petal
            for name in names:
                found = getattr(found, name)
            return inspect.getdoc(found)
        node = self.nodes[names[0]]
        for name in names[1:]:
            node = next(member for member in self.members(node) if member.name == name)
        return ast.get_docstring(node)

    def members(self, node):
        """Returns the public methods and properties of a class and of its private base."""
        bases = [self.nodes[base.id] for base in node.bases if isinstance(base, ast.Name) and base.id[0] == "_"]
        body = [item for one in (node, *bases) for item in one.body if isinstance(item, ast.FunctionDef)]
        return list({item.name: item for item in reversed(body) if item.name[0] != "_"}.values())[::-1]

    def signature(self, function, name):
        """Returns a call of the function with its arguments and defaults, without types."""
        args = function.args
        positional = [arg.arg for arg in args.posonlyargs + args.args]
        if positional and positional[0] == "engine":
            positional[0] = self.module.removeprefix("petal.")
        defaults = [None] * (len(positional) - len(args.defaults)) + args.defaults
        shown = [argument(*each) for each in zip(positional, defaults) if each[0] not in ("self", "cls")]
        keywords = [argument(arg.arg, default) for arg, default in zip(args.kwonlyargs, args.kw_defaults)]
        if args.kwarg:
            kind = args.kwarg.annotation.slice.id
            module = next(module for module in SHARED if hasattr(module, kind))
            own = getattr(module, kind).__annotations__.keys() - SHARED[module].__annotations__.keys()
            keywords += [f"{each}={module.DEFAULTS.get(each)!r}" for each in getattr(module, kind).__annotations__ if each in own]
            keywords.append("…")
        star = [f"*{args.vararg.arg}"] if args.vararg else ["*"] if keywords else []
        return f"`{name}({', '.join(shown + star + keywords)})`"

    def name(self, name):
        return f"{self.module}.{name}"


def argument(name, default):
    return name if default is None else f"{name}={ast.unparse(default)}"


def wrapped(text):
    """Returns a paragraph, or an item of a list, with the page's line length."""
    indent = "  " if text.startswith("- ") else ""
    options = {"subsequent_indent": indent, "break_long_words": False, "break_on_hyphens": False}
    return textwrap.fill(" ".join(text.split()), 120, **options)


def markdown(doc):
    """Returns a docstring without its examples."""
    blocks = [block for block in re.split(r"\n\n+|\n(?=- )", doc) if not block.lstrip().startswith(">>>")]
    text = "\n\n".join(block if block.startswith("    ") else wrapped(block) for block in blocks)
    # Items of a list follow each other.
    return re.sub(r"(?m)(^(?:- |  ).*)\n\n(?=- )", r"\1\n", text)


def table(head, rows):
    """Returns a table; `rows` has the names and the docstring of each."""
    lines = [f"| {names} | {' '.join(doc.split(chr(10) * 2)[0].split())} |".replace("`a |", "`a \\|") for names, doc in rows]
    return "\n".join([head, "|---|---|", *lines])


def sections(file, names):
    known = {}
    for name in names:
        node = file.nodes[name]
        heading = name if file.module == "petal" else file.name(name)
        yield f"### `{heading}`"
        if isinstance(node, ast.FunctionDef):
            yield wrapped(file.signature(node, file.name(name)))
            yield markdown(file.doc(name))
        else:
            yield from class_section(file, node, known)


def class_section(file, node, known):
    """Yields the paragraphs of a class. `known` has the rows of other classes, whose methods are not described again."""
    functions = {item.name: item for item in node.body if isinstance(item, ast.FunctionDef)}
    if "__new__" in functions:
        yield wrapped(file.signature(functions["__new__"], node.name))
    yield markdown(file.doc(node.name))
    fields = [
        (f"`{item.target.id}`", ast.literal_eval(doc.value))
        for item, doc in zip(node.body, node.body[1:])
        if isinstance(item, ast.AnnAssign) and isinstance(doc, ast.Expr)
    ]
    if fields:
        yield table("| field | value |", fields)
    methods, properties, same = [], [], {}
    for item in file.members(node):
        doc = file.doc(node.name, item.name)
        if any(isinstance(each, ast.Name) and each.id == "property" for each in item.decorator_list):
            properties.append((f"`{item.name}`", doc))
            continue
        operators = [shown for name, shown in OPERATORS.get(item.name, {}).items() if name in functions]
        row = (", ".join([file.signature(item, item.name), *(f"`{shown}`" for shown in operators)]), doc)
        first = known.setdefault(row, node.name)
        if first == node.name:
            methods.append(row)
        else:
            same.setdefault(first, []).append(row[0])
    if methods:
        yield table("| method | effect |", methods)
    if properties:
        yield table("| property | value |", properties)
    for first, names in same.items():
        yield wrapped(f"As in `{first}`: {', '.join(names)}.")


def exceptions(file, names):
    bases = {name: " and ".join(f"`{base.id}`" for base in file.nodes[name].bases) for name in names}
    yield table("| exception | meaning |", [(f"`{name}`", f"{file.doc(name)} A subclass of {bases[name]}.") for name in names])


def shared_options(_, names):
    for name in names:
        module = next(module for module in SHARED if hasattr(module, name))
        shown = [f"`{each}={module.DEFAULTS.get(each)!r}`" for each in SHARED[module].__annotations__]
        yield wrapped(f"`…` in a signature stands for the keywords {', '.join(shown)}.")


FORMS = {"sections": sections, "exceptions": exceptions, "options": shared_options}


def generated(part):
    form, module, file, *names = part[2].split()
    text = "\n\n".join(FORMS[form](File(module, file), names))
    return f"{part[1]}\n{text}\n\n{part[3]}"


def main():
    old = PAGE.read_text()
    new = PART.sub(generated, old)
    if "--check" not in sys.argv:
        PAGE.write_text(new)
    elif new != old:
        sys.exit("".join(difflib.unified_diff(old.splitlines(True), new.splitlines(True), "the page", "the package")))


if __name__ == "__main__":
    main()
