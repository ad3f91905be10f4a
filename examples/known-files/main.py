"""Known files: makes a list of hashes in the form of the NSRL from half of the files of a folder, and scans the folder."""

from __future__ import annotations

import argparse
import hashlib
import shlex
import subprocess
import tempfile
from pathlib import Path

HEADER = '"SHA-1","MD5","CRC32","FileName","FileSize","ProductCode","OpSystemCode","SpecialCode"'


def files_of(folder: Path) -> list[Path]:
    """Returns the regular files of a folder that can be read, in order."""

    def is_readable(path: Path) -> bool:
        try:
            return path.is_file() and not path.is_symlink() and bool(path.open("rb"))
        except OSError:
            return False

    return sorted(path for path in folder.rglob("*") if is_readable(path))


def digest(path: Path, name: str) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, name).hexdigest()


def write_nsrl(path: Path, files: list[Path]) -> None:
    """Writes a list in the form of NSRLFile.txt, in which a file occurs once for each product: here twice."""
    with path.open("w", newline="") as out:
        out.write(HEADER + "\r\n")
        for product in (1, 2):
            for file in files:
                sha1, md5 = digest(file, "sha1").upper(), digest(file, "md5").upper()
                name, size = file.name.replace('"', '""'), file.stat().st_size
                out.write(f'"{sha1}","{md5}","00000000","{name}",{size},{product},"362",""\r\n')


def run(command: str, folder: Path) -> list[str]:
    """Shows and runs a command of the shell; returns the lines that it prints."""
    print(f"$ {command}", flush=True)
    return subprocess.run(command, shell=True, cwd=folder, text=True, stdout=subprocess.PIPE).stdout.splitlines()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("/usr/bin"), help="default: /usr/bin")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        work, files = Path(name), files_of(args.folder)
        known = {digest(file, "sha1") for file in files[::2]}
        write_nsrl(work / "NSRLFile.txt", files[::2])
        (work / "scan.txt").write_text("\0".join(map(str, files)))
        print(f"{len(files):,} files in {args.folder}, {len(files[::2]):,} of them in the list")
        run("petal build --type static -p 1e-6 --column SHA-1 -o nsrl.petal NSRLFile.txt", work)
        scan = f"xargs -0 -a {shlex.quote('scan.txt')} sha1sum"
        found = run(f"{scan} | petal check --sums nsrl.petal", work)
        unknown = run(f"{scan} | petal check --sums -v nsrl.petal", work)
        expected = sum(digest(file, "sha1") in known for file in files)
        assert len(found) >= expected and len(found) + len(unknown) == len(files)
        size = (work / "nsrl.petal").stat().st_size
        print(f"{len(found):,} known, {len(unknown):,} unknown, {len(found) - expected} falsely known; {size:,} bytes")


if __name__ == "__main__":
    main()
