"""What the examples share: a server ends with its program, and rows have the command without their own file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import support

PROGRAM = """
import sys, time
from pathlib import Path
import support

port = support.free_port()
command = [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", str(port)]
with support.server(command, port, Path(sys.argv[1])) as process:
    print(process.pid, flush=True)
    time.sleep(60)
"""


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_sigterm_ends_the_program_and_its_server(tmp_path):
    folder = str(Path(support.__file__).parent)
    command = [sys.executable, "-c", PROGRAM, tmp_path / "log"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as program:
        server = int(program.stdout.readline())
        assert is_running(server)
        program.terminate()
        assert program.wait(30) == 128 + signal.SIGTERM
    assert not is_running(server)


def test_rows_have_the_command_without_the_file_of_the_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["main.py", "--users", "5", "--rows", "a b.csv", "--rows=c.csv", "--items", "7"])
    rows = support.Rows(tmp_path / "rows.csv", "recommender")
    assert rows.command == "cargo x example recommender --users 5 --items 7"
