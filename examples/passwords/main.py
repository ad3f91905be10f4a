"""Breached passwords: makes a list as the download tool writes it, builds a filter of it, and asks for passwords."""

from __future__ import annotations

import argparse
import hashlib
import resource
import shlex
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from pwned_list import breached, write_list, write_ranges


def run(command: str, folder: Path, keys: Iterable[str] = ()) -> list[str]:
    """Shows and runs a command with keys as its input; returns the lines that it prints."""
    print(f"$ {command}", flush=True)
    text = "".join(f"{key}\n" for key in keys)
    ran = subprocess.run(shlex.split(command), cwd=folder, input=text, text=True, stdout=subprocess.PIPE)
    assert ran.returncode in (0, 1), ran.returncode
    return ran.stdout.splitlines()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", "--hashes", type=int, default=1_000_000, help="hashes in the list (default: a million)")
    parser.add_argument("-p", "--fpr", default="0.1%", help="false-positive rate (default: 0.1%%)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_list(folder / "pwned.txt", args.hashes)
        write_ranges(folder / "ranges", args.hashes, "00")
        padding = len(range(0, args.hashes, 50))
        print(f"{args.hashes:,} hashes, {padding:,} of them padding: {(folder / 'pwned.txt').stat().st_size:,} bytes")
        options = f"--type static -p {args.fpr} --counts --query-transform sha1"
        start = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        run(f"petal build {options} -o pwned.petal pwned.txt", folder)
        seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - start
        run(f"petal build {options} --prefix-from-name -o ranges.petal ranges", folder)
        size = (folder / "pwned.petal").stat().st_size
        bits = 8 * size / (args.hashes - padding)
        print(f"filter: {size:,} bytes, {bits:.2f} bits per hash, {1e9 * seconds / args.hashes:.0f} ns of CPU per line")

        known = [breached(n) for n in range(args.hashes) if n % 50][:1000]
        others = [f"meadow-lantern-{n}" for n in range(100_000)]
        found = run("petal check pwned.petal", folder, known)
        assert found == known
        false = run("petal check pwned.petal", folder, others)
        print(f"known: {len(found):,} of {len(known):,} breached passwords, {len(false):,} of {len(others):,} others")
        of_range = [key for key in known if hashlib.sha1(key.encode()).hexdigest().startswith("00")]
        assert run("petal check ranges.petal", folder, of_range) == of_range


if __name__ == "__main__":
    main()
