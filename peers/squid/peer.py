# Squid's cache digests, made by a real Squid and asked by one.
#
# Keys are http URLs, as Squid itself writes them. Each is fetched through a Squid whose only way out is a server of ours
# that answers every URL, so the names need not exist.
#
#   write   Squid caches MEMBERS; its digest is fetched once it counts them all.
#   check   a second server of ours plays a sibling cache whose digest is FILE. Squid asks the sibling for the URLs it
#           finds in the digest, and the other server for the rest: whoever answers is the answer.
#   serve MEMBERS   (this peer only) as write, but prints the digest's URL and stays until standard input ends.
#
# Variants: url (5 bits an entry, Squid's default), url-wide (8). N and RATE say nothing to Squid: it sizes a digest for
# what it has cached.

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

from words import choose, lines, obey

ROOT = Path(os.environ["SQUID"])
BITS = {"url": 5, "url-wide": 8}
DIGEST = "/squid-internal-periodic/store_digest"
PATIENCE = 60
PERIOD = 3  # a rebuild amid the first requests would give a digest of another size


def until(what, ask):
    """What `ask` answers, once that is true."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if answer := ask():
            return answer
        time.sleep(0.1)
    raise TimeoutError(f"Squid did not {what} in {PATIENCE} seconds")


@contextlib.contextmanager
def server(body, age, digest=None):
    """A server that answers every URL with `body`, to be kept for `age` seconds, and may have a digest. Gives the port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body go in one packet

        def do_GET(self):
            is_digest = digest is not None and self.path.endswith(DIGEST)
            content = digest if is_digest else body
            self.send_response(200)
            self.send_header("Content-Type", "application/cache-digest" if is_digest else "text/plain")
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Cache-Control", f"max-age={age}" if age or is_digest else "no-store")
            self.end_headers()
            if is_digest:
                # Squid 5.7 spoils a mask of which it gets more than 128 bytes together with the control block.
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
    """A running Squid with nothing cached, whose only ways out are `peers`. Gives the port."""
    port = free_port()
    folder = Path(tempfile.mkdtemp(prefix="squid-peer-"))
    config, log = folder / "squid.conf", folder / "cache.log"
    settings = [
        f"http_port 127.0.0.1:{port}",
        "visible_hostname localhost",  # whom a request for the digest must name
        "http_access allow all",
        f"acl digest urlpath_regex ^{DIGEST}$",
        "always_direct allow digest",
        "never_direct allow all",
        *(f"cache_peer 127.0.0.1 {peer}" for peer in peers),
        f"cache_dir ufs {folder}/cache 64 1 1",  # what is in memory only is in no digest
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
        f"mime_table {folder}/mime.conf",  # an empty one: the icons of a full one would be in the digest
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
        "stdout": (folder / "said").open("wb"),
        "stderr": subprocess.STDOUT,
        "start_new_session": True,
    }

    def trouble():
        said = "".join(path.read_text() for path in (folder / "said", log) if path.exists())
        return ChildProcessError(re.findall("FATAL: .*", said) or said[-500:])

    running = None
    try:
        if subprocess.run([*command, "-z"], **options).returncode != 0:
            raise trouble()
        running = subprocess.Popen(command, **options)

        def listens():
            if running.poll() is not None:
                raise trouble()
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
    answer = connection.getresponse()
    body = answer.read()
    return body if answer.status == 200 else None


@contextlib.contextmanager
def full_squid(variant, members):
    """A Squid that has cached the members, and its digest. Gives the port and the digest."""
    urls = set(lines(members))
    with server(b"something", 86400) as origin, squid(choose(BITS, variant), f"parent {origin} 0 no-query no-digest") as port:
        connection = http.client.HTTPConnection("localhost", port)
        for url in urls:
            if get(connection, url) is None:
                raise ValueError(f"Squid does not take {url}")

        before = None

        def digest():
            # Settled when two, a rebuild apart, are the same.
            nonlocal before
            last, before = before, get(connection, DIGEST)
            full = before and struct.unpack_from(">i", before, 8)[0] >= len(urls)
            return before if full and before == last else time.sleep(PERIOD + 0.5)

        yield port, until("digest its cache", digest)


def write(variant, _n, _rate, members, out):
    with full_squid(variant, members) as (_, digest):
        Path(out).write_bytes(digest)


def check(variant, file, keys):
    choose(BITS, variant)
    with server(b"0", 0) as other, server(b"1", 0, Path(file).read_bytes()) as sibling:
        peers = [f"parent {other} 0 no-query no-digest name=other", f"sibling {sibling} 0 no-query name=sibling"]
        with squid(5, *peers) as port:
            connection = http.client.HTTPConnection("localhost", port)
            get(connection, "http://any.request.makes.squid.fetch.the.digest.invalid/")

            def verdict():
                found = re.search(b"last request result: (.*)", get(connection, "/squid-internal-mgr/digest_stats"))
                return found and found[1] != b"(none)" and found[1].decode()

            said = until("fetch the digest", verdict)
            if said != "success":
                raise ValueError(f"Squid does not take the digest: {said}")
            return [get(connection, url) == b"1" for url in lines(keys)]


def serve(members):
    with full_squid("url", members) as (port, _):
        print(f"http://localhost:{port}{DIGEST}", flush=True)
        sys.stdin.read()


signal.signal(signal.SIGTERM, lambda *_: sys.exit("squid: stopped"))
if sys.argv[1:2] == ["serve"] and len(sys.argv) == 3:
    serve(sys.argv[2])
else:
    obey("squid", write, check, os.environ["SQUID_VERSION"])
