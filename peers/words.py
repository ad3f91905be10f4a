# What the peers in Python share: the words of the command, and keys as lines of a file.

import importlib.metadata
import sys


def lines(path):
    """The lines of a file as text; only LF ends a line."""
    with open(path, "rb") as file:
        text = file.read().decode("utf-8")
    return text.removesuffix("\n").split("\n") if text else []


def obey(package, write, check, version=None):
    """Does what the command line says.

    `write(variant, n, rate, members, out, *more)` writes the file `out`; `check(variant, file, keys)` gives an answer for
    each line of the file `keys`; `version` is that of the Python package unless given.
    """
    try:
        match sys.argv[1:]:
            case ["version"]:
                print(package, version or importlib.metadata.version(package))
            case ["write", variant, n, rate, members, out, *more]:
                write(variant, int(n), float(rate), members, out, *more)
            case ["check", variant, file, keys]:
                answers = check(variant, file, keys)
                sys.stdout.write("".join("1\n" if answer else "0\n" for answer in answers))
            case _:
                sys.exit(f"{package}: version, write or check")
    except Exception as error:
        words = " ".join(str(error).split())
        sys.exit(f"{package}: {type(error).__name__}: {words}")


def choose(variants, name):
    """What a variant stands for."""
    if name not in variants:
        raise ValueError(f"no variant {name}: {', '.join(variants)}")
    return variants[name]
