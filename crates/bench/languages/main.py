"""`cargo x bench languages`: times single queries in each language, beside the best known filter of the language.

Keys are URLs of 21 to 40 bytes; filters have a false-positive rate of 1 %. Each case runs in a process of its own on
one core: a warm-up, then five rounds over the keys, of which the median counts. Times are CPU time. The processes run
in three passes, and the figure is the median of the passes. Keys are bytes, in Node strings. A language whose tool is
missing is named. The rows of a whole run are appended to `results/<machine>/<date>-languages.csv`.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import shlex
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
RELEASE = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
PEERS = Path(os.environ.get("PETAL_PEERS", ROOT / "target/peers"))
PACKAGE = Path(os.environ.get("PETAL_JS", ROOT / "target/js/petal.js"))
FOLDER = ROOT / "bench-data/languages"
HEADER = ["date", "case", "size", "figure", "value", "unit", "command", "machine", "rustc", "commit"]
TYPES = ("bloom", "static")
PASSES = 3
# Of these cases fewer keys are asked: see ask.mjs.
ASKED = {"Node, bloom-filters": 20_000}


def make(keys: int) -> None:
    """Writes the keys and the filters."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    chance = random.Random(1)
    for name in ("present", "absent"):
        with open(FOLDER / f"{name}.txt", "w") as file:
            for number in range(keys):
                page = f"{chance.getrandbits(80):020x}"[: chance.randint(1, 19)]
                file.write(f"https://{name[0]}.org/{number:05}/{page}\n")
    for type_ in TYPES:
        options = ["--type", type_, "-p", "1%", "-q", "-o", FOLDER / f"{type_}.petal", FOLDER / "present.txt"]
        subprocess.run([RELEASE / "petal", "build", *options], check=True)


def compile_programs() -> None:
    """Compiles what the tools of this machine can compile, into the folder of the data."""
    library = FOLDER / "libpetal.so.1"
    library.unlink(missing_ok=True)
    library.symlink_to((RELEASE / "libpetal_capi.so").absolute())
    headers = f"-O2 -I {ROOT}/crates/capi/include"
    linked = f"{library} -Wl,-rpath,{FOLDER}"
    libbloom = f"{PEERS}/debian/libbloom/usr"
    shared = next(Path(libbloom).glob("lib/*/libbloom.so.1"), None)
    # The module mode of Go would look for the rival on the network.
    path = FOLDER / "go/src/example.com/petal"
    path.mkdir(parents=True, exist_ok=True)
    (path / "go").unlink(missing_ok=True)
    (path / "go").symlink_to(ROOT / "go")
    os.environ.update(GO111MODULE="off", GOPATH=f"{FOLDER}/go:{PEERS}/debian/gobloom/usr/share/gocode")
    guava = jars()
    # The command of the peers sets variables of its own.
    go = "go"
    if shutil.which(go):
        done = subprocess.run([go, "env", "GOROOT"], check=True, capture_output=True, text=True)
        go = f"{done.stdout.strip()}/bin/go"
    for name, command in {
        "C": f"gcc {headers} -o {FOLDER}/ask-c ask.c {linked}",
        "C++": f"g++ -std=c++17 {headers} -o {FOLDER}/ask-cpp -x c++ ask.c -x none {linked}",
        "libbloom": f"gcc -O2 -DLIBBLOOM -I {libbloom}/include {headers} -o {FOLDER}/ask-libbloom ask.c {shared} -lm "
        f"-Wl,-rpath,{shared and shared.parent}",
        "Go": f"{go} build -o {FOLDER}/ask-go ask.go",
        "Java": f"javac -cp {guava} -sourcepath {ROOT}/java/src -d {FOLDER} Ask.java",
    }.items():
        if not shutil.which(command.split()[0]):
            print(f"{name}: skipped: no {command.split()[0]}")
        elif name == "libbloom" and shared is None:
            print(f"{name}: skipped: not in {libbloom}")
        else:
            subprocess.run(shlex.split(command), cwd=HERE, check=True)


def jars() -> str:
    return ":".join(map(str, [*PEERS.glob("jars/guava-*.jar"), *PEERS.glob("jars/failureaccess-*.jar")]))


def cases() -> dict[str, list[str]]:
    """Returns the command of each case. The first argument that follows is the folder."""
    found = {}
    node = ["node", f"{HERE}/ask.mjs"]
    for type_ in TYPES:
        found[f"Rust portable, petal {type_}"] = [f"{RELEASE}/languages", "run", "portable", type_]
        found[f"Rust, petal {type_}"] = [f"{RELEASE}/languages", "run", "fastest", type_]
        found[f"C, petal {type_}"] = [f"{FOLDER}/ask-c", type_]
        found[f"C++, petal {type_}"] = [f"{FOLDER}/ask-cpp", type_]
        found[f"Go, petal {type_}"] = [f"{FOLDER}/ask-go", type_]
        found[f"Java, petal {type_}"] = ["java", "-cp", f"{FOLDER}:{jars()}", "Ask", type_]
        found[f"Node, petal {type_}"] = [*node, str(PACKAGE), type_]
    found["C, libbloom"] = [f"{FOLDER}/ask-libbloom", "rival"]
    found["Go, bits-and-blooms"] = [f"{FOLDER}/ask-go", "rival"]
    found["Java, Guava"] = ["java", "-cp", f"{FOLDER}:{jars()}", "Ask", "rival"]
    found["Node, bloom-filters"] = [*node, f"{PEERS}/languages/node_modules/bloom-filters/dist/api.js", "rival"]
    return found


def missing(command: list[str]) -> str | None:
    """Returns the first program or script of a command that does not exist."""
    files = [word for word in command if word.endswith((".js", ".mjs"))]
    return next((name for name in [command[0], *files] if not shutil.which(name) and not Path(name).exists()), None)


def measure(keys: int) -> dict[tuple[str, str], float]:
    """Returns the ns of each case for present and absent keys. Exits if an answer is wrong."""
    times: dict[tuple[str, str], list[float]] = {}
    rates: dict[str, float] = {}
    for number in range(PASSES):
        for case, command in cases().items():
            if lacks := missing(command):
                if number == 0:
                    print(f"{case}: skipped: no {lacks}")
                continue
            ran = subprocess.run([*command, FOLDER], check=True, capture_output=True, text=True)
            for line in ran.stdout.splitlines():
                figure, ns, found = line.split()
                times.setdefault((case, figure), []).append(float(ns))
                of_type = case.split(", ")[1]
                asked = min(keys, ASKED.get(case, keys))
                rate = 1.0 if figure == "present" else rates.setdefault(of_type, int(found) / asked)
                if int(found) != round(rate * asked):
                    raise SystemExit(f"{case}: {found} {figure} keys found instead of {rate * asked:.0f}")
    print("false positives: " + ", ".join(f"{name} {100 * rate:.2f} %" for name, rate in rates.items()))
    return {name: statistics.median(values) for name, values in times.items()}


def verdict(times: dict[tuple[str, str], float]) -> None:
    """Prints all times, and whether the targets are met."""
    for case in dict.fromkeys(case for case, _ in times):
        print(f"{case:30}{times[case, 'present']:9.1f}{times[case, 'absent']:9.1f} ns")
    for type_ in TYPES:
        for figure in ("present", "absent"):
            base = times[f"Rust portable, petal {type_}", figure]
            for language in ("Go", "Java"):
                if time := times.get((f"{language}, petal {type_}", figure)):
                    met = "met" if time <= 2.5 * base else "MISSED"
                    print(f"{type_}, {figure}: {language} {time / base:.2f} of Rust portable, target 2.50: {met}")
            if time := times.get((f"C, petal {type_}", figure)):
                more = time - times[f"Rust, petal {type_}", figure]
                met = "met" if more <= 3 else "MISSED"
                print(f"{type_}, {figure}: C {more:+.1f} ns beside Rust, target +3.0: {met}")


def save(keys: int, times: dict[tuple[str, str], float], described: list[str]) -> None:
    slug, machine, rustc, commit, date = described
    file = ROOT / "results" / slug / f"{date}-languages.csv"
    is_new = not file.exists()
    command = shlex.join(["cargo", "x", "bench", "languages", *sys.argv[1:]])
    with file.open("a", newline="") as out:
        table = csv.writer(out, lineterminator="\n")
        if is_new:
            table.writerow(HEADER)
        for (case, figure), ns in times.items():
            row = [date, case, keys, f"query, {figure}", f"{ns:.6g}", "ns of CPU time per key"]
            table.writerow([*row, command, machine, rustc, commit])
    print(f"rows: {file.relative_to(ROOT)}")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="cargo x bench languages", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--keys", type=int, default=1_000_000, help="keys of the filters (default: a million)")
    parser.add_argument("--quick", action="store_true", help="20000 keys, no rows")
    args = parser.parse_args()
    keys = 20_000 if args.quick else args.keys
    make(keys)
    compile_programs()
    # Before the process is bound to one core, which would be the number of cores.
    done = subprocess.run([RELEASE / "languages", "machine"], check=True, capture_output=True, text=True)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    times = measure(keys)
    verdict(times)
    if not args.quick:
        save(keys, times, done.stdout.splitlines())


if __name__ == "__main__":
    main()
