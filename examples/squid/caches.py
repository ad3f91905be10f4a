"""The programs around petal: a server that plays all web sites, Squid caches, and a server for digests."""

from __future__ import annotations

import http.client
import os
import pwd
import re
import shutil
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import support  # noqa: E402

DIGEST = "/squid-internal-periodic/store_digest"
HEADER = 128  # bytes of a digest before its bits
REBUILD = 2  # seconds between two digests of a cache; Squid's default is an hour
CLIENTS = 8
UNPRIVILEGED = 65534  # the user of programs without rights
MARKER = "/squid-internal-mgr/menu"
FIRST = "http://first-request.example/"


@contextmanager
def http_server(handler: type[socketserver.StreamRequestHandler]) -> Iterator[int]:
    """Runs a server on the loopback address until the end of the block. Yields the port."""

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        request_queue_size = 64

    with Server(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        try:
            yield running.server_address[1]
        finally:
            running.shutdown()


@contextmanager
def web(page: bytes) -> Iterator[tuple[int, list[str]]]:
    """Plays all web sites: answers every URL with `page`. Yields the port and the growing list of requested URLs."""
    requested: list[str] = []
    # Squid does not add a page without a date to its digest.
    head = f"HTTP/1.1 200 OK\r\nDate: {formatdate(usegmt=True)}\r\nCache-Control: max-age=86400\r\n"
    reply = f"{head}Content-Length: {len(page)}\r\n\r\n".encode() + page

    class Web(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while line := self.rfile.readline():
                while self.rfile.readline().strip():
                    pass
                requested.append(line.split()[1].decode())
                self.wfile.write(reply)

    with http_server(Web) as port:
        yield port, requested


@contextmanager
def digest_server(digest: bytes) -> Iterator[str]:
    """Serves a digest. Yields its URL.

    The header is sent alone, because of Squid's bug 5510: of the bits that arrive with the header, Squid damages all
    but the first 128 bytes.
    """
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/cache-digest\r\nContent-Length: {len(digest)}\r\n"
    head += "Cache-Control: max-age=3600\r\nConnection: close\r\n\r\n"

    class Digest(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while self.rfile.readline().strip():
                pass
            self.wfile.write(head.encode() + digest[:HEADER])
            time.sleep(1)
            self.wfile.write(digest[HEADER:])

    with http_server(Digest) as port:
        yield f"http://127.0.0.1:{port}/digest"


@dataclass
class LogLine:
    """A line of Squid's access log: the result (TCP_MISS/200), where the page came from (CD_SIBLING_HIT), the URL."""

    result: str
    source: str
    url: str


class Squid:
    """A running Squid."""

    def __init__(self, port: int, log: Path) -> None:
        self.port = port
        self._log, self._read = log, 0

    def fetch(self, urls: Sequence[str]) -> None:
        """Fetches every URL through this cache, with several clients at once."""

        def fetch_some(some: Sequence[str]) -> None:
            connection = http.client.HTTPConnection("127.0.0.1", self.port)
            for url in some:
                connection.request("GET", url)
                response = connection.getresponse()
                response.read()
                if response.status != 200:
                    raise OSError(f"{url}: Squid answers {response.status} {response.reason}")
            connection.close()

        with ThreadPoolExecutor(CLIENTS) as clients:
            list(clients.map(fetch_some, (urls[client::CLIENTS] for client in range(CLIENTS))))

    def page(self, path: str) -> bytes:
        """Returns one of Squid's own pages; no bytes if it does not exist yet."""
        connection = http.client.HTTPConnection("localhost", self.port)
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read()
        connection.close()
        return body if response.status == 200 else b""

    def digest(self, entries: int) -> bytes:
        """Returns the digest of this cache with nearly all of `entries` URLs, when it no longer changes.

        Squid leaves out a page now and then.
        """
        digest = b""

        def is_complete() -> bool:
            nonlocal digest
            last, digest = digest, self.page(DIGEST)
            if int.from_bytes(digest[8:12], "big") >= 0.98 * entries and digest == last:
                return True
            time.sleep(2 * REBUILD)
            return False

        support.wait_until(is_complete, "Squid digests its cache", 60)
        return digest

    def wait_for_digest_of_sibling(self) -> None:
        """Waits until this cache has the digest of its sibling. Squid fetches it at the first request."""
        self.fetch([FIRST])
        result = "(none)"

        def is_fetched() -> bool:
            nonlocal result
            if found := re.search(b"last request result: (.*)", self.page("/squid-internal-mgr/digest_stats")):
                result = found[1].decode()
            return result != "(none)"

        support.wait_until(is_fetched, "Squid fetches the digest", 60)
        if result != "success":
            raise OSError(f"Squid rejects the digest: {result}")

    def new_log_lines(self) -> list[LogLine]:
        """Returns the lines of the access log since the last call, without those of Squid's own pages."""
        lines: list[LogLine] = []
        # Squid writes a line after the answer; this request is behind all others.
        self.page(MARKER)

        def is_written() -> bool:
            with self._log.open() as log:
                log.seek(self._read)
                while (line := log.readline()).endswith("\n"):
                    self._read = log.tell()
                    lines.append(LogLine(*line.split()))
            return any(line.url.endswith(MARKER) for line in lines)

        support.wait_until(is_written, "Squid writes its log")
        return [line for line in lines if line.url.startswith("http://") and "/squid-internal-" not in line.url]


def settings(name: str, port: int, folder: Path, root: Path, peers: Iterable[str]) -> list[str]:
    """Returns the lines of squid.conf. `root` is where Debian's package is unpacked."""
    return [
        f"http_port 127.0.0.1:{port}",
        "http_access allow all",
        "visible_hostname localhost",
        f"unique_hostname {name}",  # caches of equal names would see a loop
        "hostname_aliases 127.0.0.1",  # the host in a sibling's request for the digest
        *(f"cache_peer 127.0.0.1 {peer} no-query no-netdb-exchange" for peer in peers),
        "acl here dstdomain -n 127.0.0.1",
        "always_direct allow here",  # digests
        "never_direct allow all",
        f"cache_dir ufs {folder}/cache 1024 16 16",  # pages that are only in memory are not in the digest
        f"digest_rebuild_period {REBUILD} seconds",
        f"digest_rewrite_period {REBUILD} seconds",
        "digest_rebuild_chunk_percentage 100",
        "logformat example %Ss/%>Hs %Sh %ru",
        f"access_log stdio:{folder}/access.log example",
        "buffered_logs off",
        f"cache_log {folder}/cache.log",
        f"pid_filename {folder}/pid",
        "netdb_filename none",
        f"coredump_dir {folder}",
        "hosts_file none",
        "dns_nameservers 127.0.0.1",
        "pinger_enable off",
        f"unlinkd_program {root}/usr/lib/squid/unlinkd",
        f"mime_table {folder}/mime.conf",  # empty, so that the digest has no icons
        f"icon_directory {folder}",
        f"error_directory {root}/usr/share/squid-langpack/en",
        "shutdown_lifetime 0 seconds",
    ]


@contextmanager
def squid(name: str, *peers: str) -> Iterator[Squid]:
    """Runs a Squid with an empty cache until the end of the block.

    Its upstreams are `peers`, each as after `cache_peer 127.0.0.1` in squid.conf: type, port, 0, options.
    """
    root = support.peers() / "debian/squid"
    libraries = ":".join(str(path) for path in (root / "usr/lib").glob("*-linux-*"))
    options = {"env": {**os.environ, "LD_LIBRARY_PATH": libraries}}
    with tempfile.TemporaryDirectory(prefix=f"petal-{name}-", ignore_cleanup_errors=True) as name_of_folder:
        folder, port = Path(name_of_folder), support.free_port()
        lines = settings(name, port, folder, root, peers)
        if os.geteuid() == 0:
            # Squid refuses to run as root.
            user = pwd.getpwuid(UNPRIVILEGED).pw_name
            lines.append(f"cache_effective_user {user}")
            shutil.chown(folder, user)
        (folder / "squid.conf").write_text("\n".join(lines) + "\n")
        (folder / "mime.conf").touch()
        command = [root / "usr/sbin/squid", "-N", "-n", f"petal{port}", "-f", folder / "squid.conf"]
        made = subprocess.run([*command, "-z"], capture_output=True, text=True, **options)
        if made.returncode != 0:
            raise RuntimeError(f"Squid cannot make its cache: {made.stderr[-500:]}")
        with support.server(command, port, folder / "output", **options):
            yield Squid(port, folder / "access.log")
