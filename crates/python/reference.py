"""Writes docs/reference/python*.md from the signatures and docstrings of the package `petal`, which must be installed.

    python crates/python/reference.py [--check]

Signatures come from the source and the stubs, docstrings from the source and the extension module. A docstring is
Markdown. A page is generated from `<!-- generated: FORM MODULE FILE NAME... -->` to `<!-- end -->`: `sections` are of
functions and classes, `exceptions` is a list, `options` has the keywords that `…` stands for in signatures.
`--check` writes nothing, and fails if a page differs.
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
PAGES = sorted((HERE.parents[1] / "docs/reference").glob("python*.md"))
PART = re.compile(r"(<!-- generated: (.*?) -->\n).*?(<!-- end -->)", re.S)

#: The options that `…` stands for, in each module that declares options.
SHARED = {_arguments: _arguments.ReadOptions, options: options.Options}

#: Operators of methods.
OR, AND = {"__or__": "a | b", "__ior__": "a |= b"}, {"__and__": "a & b", "__iand__": "a &= b"}
OPERATORS = {"union": OR, "intersection": AND}


class File:
    """A file of the package: its functions and classes by name, and their docstrings."""

    def __init__(self, module, name):
        #: The public name of the module.
        self.module = module
        #: What its functions of equal names are about, for headings.
        self.of = " of rows" if name == "spark/_frames.py" else ""
        self.is_stub = name.endswith(".pyi")
        body = ast.parse((HERE / "python/petal" / name).read_text()).body
        self.nodes = {node.name: node for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}

    def doc(self, node, member=None):
        """Returns the docstring of a function, of a class or of a member of a class."""
        if not self.is_stub:
            return ast.get_docstring(member or node)
        found = getattr(_petal, node.name)
        return inspect.getdoc(getattr(found, member.name) if member else found)

    def members(self, node):
        """Returns the methods and properties of a class and of its private bases by name, overloads once."""
        members = {}
        for item in node.body:
            if isinstance(item, ast.FunctionDef):
                members.setdefault(item.name, item)
        for base in map(ast.unparse, node.bases):
            if base.startswith("_"):
                members |= self.members(self.nodes[base]) | members
        return members

    def signature(self, function, name):
        """Returns a call of the function with its arguments and defaults, without types."""
        args = function.args
        positional = [arg.arg for arg in args.posonlyargs + args.args]
        if positional[:1] == ["engine"]:
            positional[0] = self.module.removeprefix("petal.")
        defaults = [None] * (len(positional) - len(args.defaults)) + args.defaults
        shown = [argument(*each) for each in zip(positional, defaults) if each[0] not in ("self", "cls")]
        keywords = [argument(arg.arg, default) for arg, default in zip(args.kwonlyargs, args.kw_defaults)]
        if args.kwarg:
            keywords += own_options(args.kwarg.annotation.slice.id)
        if args.vararg:
            shown.append(f"*{args.vararg.arg}")
        elif keywords:
            shown.append("*")
        return f"`{name}({', '.join(shown + keywords)})`"


def argument(name, default):
    return name if default is None else f"{name}={ast.unparse(default)}"


def own_options(name):
    """Returns those options of a type that are not shared, and `…` for the others."""
    module = next(module for module in SHARED if hasattr(module, name))
    shared = defaults(module, SHARED[module])
    return [*(option for option in defaults(module, getattr(module, name)) if option not in shared), "…"]


def defaults(module, kind):
    return [f"{name}={module.DEFAULTS.get(name)!r}" for name in kind.__annotations__]


def wrapped(text):
    """Returns a paragraph, or an item of a list, with the page's line length."""
    indent = "  " if text.startswith("- ") else ""
    keep = {"break_long_words": False, "break_on_hyphens": False}
    return textwrap.fill(" ".join(text.split()), 120, subsequent_indent=indent, **keep)


def markdown(doc):
    """Returns a docstring without its examples."""
    blocks = [block for block in re.split(r"\n\n+|\n(?=- )", doc) if not block.lstrip().startswith(">>>")]
    text = "\n\n".join(block if block.startswith("    ") else wrapped(block) for block in blocks)
    # Items of a list follow each other.
    return re.sub(r"(?m)(^(?:- |  ).*)\n\n(?=- )", r"\1\n", text)


def listed(rows):
    """Returns a list, which a phone shows without scrolling; `rows` has the names and the docstring of each."""
    return "\n".join(wrapped(f"- {names}: {doc.partition('>>>')[0]}") for names, doc in rows)


def sections(file, names):
    known = {}
    for name in names:
        node, shown = file.nodes[name], f"{file.module}.{name}"
        yield f"### `{name if file.module == 'petal' else shown}`{file.of}"
        if isinstance(node, ast.ClassDef):
            yield from class_section(file, node, known)
        else:
            yield wrapped(file.signature(node, shown))
            yield markdown(file.doc(node))


def class_section(file, node, known):
    """Yields the paragraphs of a class. `known` has the members of the classes before, which are only named."""
    members = file.members(node)
    if "__new__" in members:
        yield wrapped(file.signature(members["__new__"], node.name))
    yield markdown(file.doc(node))
    lists = {"Fields": fields(node), "Methods": [], "Properties": []}
    same = {}
    for member in (member for name, member in members.items() if not name.startswith("_")):
        doc = file.doc(node, member)
        if "property" in map(ast.unparse, member.decorator_list):
            head, shown = "Properties", f"`{member.name}`"
        else:
            operators = [f"`{shown}`" for name, shown in OPERATORS.get(member.name, {}).items() if name in members]
            head, shown = "Methods", ", ".join([file.signature(member, member.name), *operators])
        if (first := known.setdefault((shown, doc), node.name)) == node.name:
            lists[head].append((shown, doc))
        else:
            same.setdefault(first, []).append(shown)
    yield from (f"{head}:\n\n{listed(rows)}" for head, rows in lists.items() if rows)
    yield from (wrapped(f"As in `{first}`: {', '.join(names)}.") for first, names in same.items())


def fields(node):
    """Returns the fields of a data class, with the docstring after each."""
    return [
        (f"`{field.target.id}`", ast.literal_eval(doc.value))
        for field, doc in zip(node.body, node.body[1:])
        if isinstance(field, ast.AnnAssign) and isinstance(doc, ast.Expr)
    ]


def exceptions(file, names):
    rows = []
    for node in (file.nodes[name] for name in names):
        bases = " and ".join(f"`{base.id}`" for base in node.bases)
        rows.append((f"`{node.name}`", f"{file.doc(node)} A subclass of {bases}."))
    yield listed(rows)


def shared_options(_, names):
    for module, kind in SHARED.items():
        if kind.__name__ in names:
            shown = ", ".join(f"`{option}`" for option in defaults(module, kind))
            yield wrapped(f"`…` in a signature stands for the keywords {shown}.")


FORMS = {"sections": sections, "exceptions": exceptions, "options": shared_options}


def generated(part):
    form, module, file, *names = part[2].split()
    text = "\n\n".join(FORMS[form](File(module, file), names))
    return f"{part[1]}\n{text}\n\n{part[3]}"


def main():
    differences = []
    for page in PAGES:
        old = page.read_text()
        new = PART.sub(generated, old)
        if "--check" not in sys.argv:
            page.write_text(new)
        else:
            names = page.name, "the package"
            differences += difflib.unified_diff(old.splitlines(True), new.splitlines(True), *names)
    if differences:
        sys.exit("".join(differences))


if __name__ == "__main__":
    main()
