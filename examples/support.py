"""Shared by the examples: servers, memory of a process, and rows of measured figures."""

from __future__ import annotations

import csv
import datetime
import os
import platform
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def peers() -> Path:
    """Returns the folder of the installed counterparts; `cargo x example` sets PETAL_PEERS."""
    return Path(os.environ.get("PETAL_PEERS") or ROOT / "target/peers")


def free_port() -> int:
    """Returns a TCP port of the loopback address that was free at the time of the call."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_until(ready: Callable[[], bool], what: str, seconds: float = 20) -> None:
    """Waits until a function returns true. Raises TimeoutError with the name of what did not happen."""
    end = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {seconds:g} s")
        time.sleep(0.02)


def is_listening(port: int) -> bool:
    """Returns true if a server accepts connections on a port of the loopback address."""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def exit_on_sigterm() -> Iterator[None]:
    """Lets SIGTERM end the program as sys.exit does, within the block: `finally` runs. In other threads it does nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def server(command: Sequence[str | os.PathLike[str]], port: int, log: Path, **options) -> Iterator[subprocess.Popen]:
    """Runs a server until the end of the block or SIGTERM. Its output goes to `log`; `options` are those of Popen.

    Raises RuntimeError with the last lines of the log if the server does not listen on `port` within 20 s.
    """
    with exit_on_sigterm(), open(log, "ab") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, **options)
        try:
            try:
                wait_until(lambda: process.poll() is not None or is_listening(port), "the server listens")
            except TimeoutError:
                pass
            if process.poll() is not None or not is_listening(port):
                lines = log.read_text(errors="replace").splitlines()[-20:]
                raise RuntimeError(f"{command[0]} does not listen on port {port}:\n" + "\n".join(lines))
            yield process
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def resident_bytes(pid: int | None = None) -> int:
    """Returns the resident memory of a process, of this one by default, in bytes."""
    status = Path(f"/proc/{pid or 'self'}/status").read_text()
    return int(re.search(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)[1]) * 1024


def machine() -> str:
    """Returns the processor, the number of cores, the memory and the kernel, as in `results/`."""
    processor = re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    kernel = platform.release().split("-")[0]
    return f"{processor[1] if processor else platform.machine()}, {os.cpu_count()} cores, {memory} MiB, Linux {kernel}"


def without_rows(arguments: Sequence[str]) -> list[str]:
    """Returns arguments without `--rows FILE`: where the rows go has no effect on them."""
    words, kept = iter(arguments), []
    for word in words:
        if word == "--rows":
            next(words, None)
        elif not word.startswith("--rows="):
            kept.append(word)
    return kept


class Rows:
    """Measured figures of one use, appended to a CSV file. Without a file they are dropped."""

    FIELDS = ("machine", "date", "commit", "use", "case", "size", "figure", "value", "unit", "command")

    def __init__(self, path: Path | None, use: str) -> None:
        self.path, self.use = path, use
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
        self.commit = commit.stdout.strip() or "unknown"
        self.command = shlex.join(["cargo", "x", "example", use, *without_rows(sys.argv[1:])])

    def add(self, case: str, size: int, figure: str, value: float, unit: str) -> None:
        """Appends a row. `size` is the number of keys, users or documents of the run."""
        if self.path is None:
            return
        is_new = not self.path.exists() or self.path.stat().st_size == 0
        with open(self.path, "a", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            if is_new:
                writer.writerow(self.FIELDS)
            today = datetime.date.today().isoformat()
            shown = f"{value:.6g}" if isinstance(value, float) else value
            row = (machine(), today, self.commit, self.use, case, size, figure, shown, unit, self.command)
            writer.writerow(row)
