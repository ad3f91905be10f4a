# Shared by the peers in Python: the arguments of the command, and keys as lines of a file.

import importlib.metadata
import sys


def lines(path):
    """Returns the lines of a file as text; only LF ends a line."""
    with open(path, "rb") as file:
        text = file.read().decode("utf-8")
    return text.removesuffix("\n").split("\n") if text else []


def run(package, write, check, version=None):
    """Runs the command line.

    `write(variant, n, rate, members, out, *more)` writes the file `out`; `check(variant, file, keys)` returns a result for
    each line of the file `keys`; `version` defaults to that of the Python package.
    """
    try:
        match sys.argv[1:]:
            case ["version"]:
                print(package, version or importlib.metadata.version(package))
            case ["write", variant, n, rate, members, out, *more]:
                write(variant, int(n), float(rate), members, out, *more)
            case ["check", variant, file, keys]:
                results = check(variant, file, keys)
                sys.stdout.write("".join("1\n" if found else "0\n" for found in results))
            case _:
                sys.exit(f"{package}: version, write or check")
    except Exception as error:
        message = " ".join(str(error).split())
        sys.exit(f"{package}: {type(error).__name__}: {message}")


def lookup(variants, name):
    """Returns the value of a variant."""
    if name not in variants:
        raise ValueError(f"no variant {name}: {', '.join(variants)}")
    return variants[name]
