# Squid's cache digests, made and queried by a real Squid.
#
# Keys are http URLs as Squid writes them. Each is fetched through a Squid whose only upstream is a local server that
# answers every URL, so the names need not exist.
#
#   write   Squid caches MEMBERS; its digest is downloaded when it counts all of them.
#   check   a second local server is a sibling cache whose digest is FILE. Squid fetches the URLs that are in the digest
#           from the sibling, and the others from the first server.
#   serve MEMBERS   (this peer only) as write, but prints the digest's URL and waits for the end of standard input.
#
# Variants: url (5 bits per entry, Squid's default), url-wide (8). N and RATE are ignored: Squid sizes a digest for the
# contents of its cache.

import contextlib
import http.client
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from common import lines, lookup, run

ROOT = Path(os.environ["SQUID"])
BITS = {"url": 5, "url-wide": 8}
DIGEST = "/squid-internal-periodic/store_digest"
TIMEOUT = 60
PERIOD = 3  # a rebuild during the first requests would change the size of the digest


def until(what, poll):
    """Polls until the result is true, and returns it."""
    end = time.monotonic() + TIMEOUT
    while time.monotonic() < end:
        if result := poll():
            return result
        time.sleep(0.1)
    raise TimeoutError(f"Squid did not {what} in {TIMEOUT} seconds")


@contextlib.contextmanager
def server(body, age, digest=None):
    """Serves `body` for every URL, cacheable for `age` seconds, and optionally a digest. Yields the port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # header and body in one packet

        def do_GET(self):
            is_digest = digest is not None and self.path.endswith(DIGEST)
            content = digest if is_digest else body
            self.send_response(200)
            self.send_header("Content-Type", "application/cache-digest" if is_digest else "text/plain")
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Cache-Control", f"max-age={age}" if age or is_digest else "no-store")
            self.end_headers()
            if is_digest:
                # Squid 5.7 corrupts a mask if more than 128 bytes of it arrive with the control block.
                self.wfile.write(content[:128])
                self.wfile.flush()
                time.sleep(1)
                content = content[128:]
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as serving:
        serving.daemon_threads = True
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        try:
            yield serving.server_port
        finally:
            serving.shutdown()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def squid(bits, *peers):
    """Starts a Squid with an empty cache whose only upstreams are `peers`. Yields the port."""
    port = free_port()
    folder = Path(tempfile.mkdtemp(prefix="squid-peer-"))
    config, log = folder / "squid.conf", folder / "cache.log"
    settings = [
        f"http_port 127.0.0.1:{port}",
        "visible_hostname localhost",  # the host in a request for the digest
        "http_access allow all",
        f"acl digest urlpath_regex ^{DIGEST}$",
        "always_direct allow digest",
        "never_direct allow all",
        *(f"cache_peer 127.0.0.1 {peer}" for peer in peers),
        f"cache_dir ufs {folder}/cache 64 1 1",  # objects that are only in memory are not in the digest
        f"digest_bits_per_entry {bits}",
        f"digest_rebuild_period {PERIOD} seconds",
        f"digest_rewrite_period {PERIOD} seconds",
        "digest_rebuild_chunk_percentage 100",
        f"cache_log {log}",
        f"access_log stdio:{folder}/access.log",
        "cache_store_log none",
        "buffered_logs off",
        f"pid_filename {folder}/pid",
        "netdb_filename none",
        f"coredump_dir {folder}",
        "hosts_file none",
        "dns_nameservers 127.0.0.1",
        "pinger_enable off",
        f"unlinkd_program {ROOT}/usr/lib/squid/unlinkd",
        f"mime_table {folder}/mime.conf",  # empty, so that no icons are in the digest
        f"icon_directory {folder}",
        f"error_directory {ROOT}/usr/share/squid-langpack/en",
        "shutdown_lifetime 0 seconds",
    ]
    if os.geteuid() == 0:
        # Squid refuses to run as root.
        settings.append("cache_effective_user nobody")
        shutil.chown(folder, "nobody")
    config.write_text("\n".join(settings) + "\n")
    (folder / "mime.conf").touch()
    libraries = ":".join(str(path) for path in (ROOT / "usr/lib").glob("*-linux-*"))
    command = [ROOT / "usr/sbin/squid", "-N", "-n", f"petal{os.getpid()}", "-f", config]
    options = {
        "env": {**os.environ, "LD_LIBRARY_PATH": libraries},
        "stdin": subprocess.DEVNULL,
        "stdout": (folder / "output").open("wb"),
        "stderr": subprocess.STDOUT,
        "start_new_session": True,
    }

    def failure():
        output = "".join(path.read_text() for path in (folder / "output", log) if path.exists())
        return ChildProcessError(re.findall("FATAL: .*", output) or output[-500:])

    running = None
    try:
        if subprocess.run([*command, "-z"], **options).returncode != 0:
            raise failure()
        running = subprocess.Popen(command, **options)

        def listens():
            if running.poll() is not None:
                raise failure()
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                return True

        until("start", listens)
        yield port
    finally:
        if running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
            running.wait()
        shutil.rmtree(folder, ignore_errors=True)


def get(connection, url):
    connection.request("GET", url)
    response = connection.getresponse()
    body = response.read()
    return body if response.status == 200 else None


@contextlib.contextmanager
def full_squid(variant, members):
    """Starts a Squid and lets it cache the members. Yields the port and the digest."""
    urls = set(lines(members))
    with server(b"something", 86400) as origin, squid(lookup(BITS, variant), f"parent {origin} 0 no-query no-digest") as port:
        connection = http.client.HTTPConnection("localhost", port)
        for url in urls:
            if get(connection, url) is None:
                raise ValueError(f"Squid rejects {url}")

        before = None

        def digest():
            # Complete when two digests, a rebuild apart, are equal.
            nonlocal before
            last, before = before, get(connection, DIGEST)
            full = before and struct.unpack_from(">i", before, 8)[0] >= len(urls)
            return before if full and before == last else time.sleep(PERIOD + 0.5)

        yield port, until("digest its cache", digest)


def write(variant, _n, _rate, members, out):
    with full_squid(variant, members) as (_, digest):
        Path(out).write_bytes(digest)


def check(variant, file, keys):
    lookup(BITS, variant)
    with server(b"0", 0) as other, server(b"1", 0, Path(file).read_bytes()) as sibling:
        peers = [f"parent {other} 0 no-query no-digest name=other", f"sibling {sibling} 0 no-query name=sibling"]
        with squid(5, *peers) as port:
            connection = http.client.HTTPConnection("localhost", port)
            get(connection, "http://any.request.makes.squid.fetch.the.digest.invalid/")

            def result():
                found = re.search(b"last request result: (.*)", get(connection, "/squid-internal-mgr/digest_stats"))
                return found and found[1] != b"(none)" and found[1].decode()

            status = until("fetch the digest", result)
            if status != "success":
                raise ValueError(f"Squid rejects the digest: {status}")
            return [get(connection, url) == b"1" for url in lines(keys)]


def serve(members):
    with full_squid("url", members) as (port, _):
        print(f"http://localhost:{port}{DIGEST}", flush=True)
        sys.stdin.read()


signal.signal(signal.SIGTERM, lambda *_: sys.exit("squid: stopped"))
if sys.argv[1:2] == ["serve"] and len(sys.argv) == 3:
    serve(sys.argv[2])
else:
    run("squid", write, check, os.environ["SQUID_VERSION"])
