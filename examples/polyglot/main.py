"""One filter, every language: queries keys with the program, Python, C, C++, Go, Java and Node, and compares."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from programs import first_difference, languages, run


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", "--keys", type=int, default=10_000, help="keys, half are members (default: 10000)")
    parser.add_argument("-p", "--fpr", default="1%", help="false-positive rate (default: 1%%)")
    args = parser.parse_args()
    keys = [f"https://example.com/été/{number}" for number in range(args.keys)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "members.txt").write_text("".join(f"{key}\n" for key in keys[::2]), encoding="utf-8")
        types = ("bloom", "static")
        for type_ in types:
            made = ["-q", "-o", str(folder / f"{type_}.petal"), str(folder / "members.txt")]
            run(["petal", "build", "--type", type_, "-p", args.fpr, *made])
        print(f"{'language':10}" + "".join(f"{type_:>10}" for type_ in types))
        expected: dict[str, list[str]] = {}
        for language in languages(folder):
            if missing := language.missing():
                print(f"{language.name:10}   skipped: no {missing}")
                continue
            if language.build:
                run(language.build)
            counts = ""
            for type_ in types:
                text = "".join(f"{key}\n" for key in keys)
                found = run([*language.command, str(folder / f"{type_}.petal")], text)
                if problem := first_difference(language.name, found, expected.setdefault(type_, found)):
                    print(f"{type_}: {problem}", file=sys.stderr)
                    return 1
                counts += f"{len(found):10,}"
            print(f"{language.name:10}{counts}", flush=True)
    print(f"present of {args.keys:,} keys; {len(keys[::2]):,} are members; all answers are equal")
    return 0


if __name__ == "__main__":
    sys.exit(main())
