"""The counterparts: a policy service for Postfix, a real Postfix and a real Unbound on the loopback address."""

from __future__ import annotations

import os
import platform
import shutil
import smtplib
import socketserver
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import dns.message
import dns.query
import dns.rcode
import petal
from name_filter import Blocklist
from support import ROOT, free_port, peers, server

HERE = ROOT / "examples/blocklist"


class PolicyRequests(socketserver.StreamRequestHandler):
    """A connection of Postfix' policy delegation protocol: lines `name=value`, an empty line, an answer; repeated."""

    def handle(self) -> None:
        request: dict[str, str] = {}
        for raw in self.rfile:
            line = raw.decode("utf-8", "replace").rstrip("\r\n")
            name, equals, value = line.partition("=")
            if equals:
                request[name] = value
            elif not line and request.get("request") == "smtpd_access_policy":
                self.wfile.write(f"action={self.action(request.get('sender', ''))}\n\n".encode())
                request = {}
            else:
                # The protocol has no answer for errors. Postfix defers the mail when the connection is closed.
                print(f"blocklist: {line!r} is not a line of a policy request; connection closed", file=sys.stderr)
                return

    def action(self, sender: str) -> str:
        blocklist: Blocklist = self.server.blocklist
        blocklist.refresh()
        name = blocklist.listed_name(sender)
        return "DUNNO" if name is None else f"REJECT {name} is on the blocklist"


class PolicyServer(socketserver.ThreadingTCPServer):
    """Serves `check_policy_service`. A sender on the blocklist is rejected; other rules decide about the others."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, blocklist: Blocklist, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), PolicyRequests)
        self.blocklist = blocklist
        self.port: int = self.server_address[1]


@contextmanager
def policy_service(blocklist: Blocklist) -> Iterator[PolicyServer]:
    """Runs the policy service on a free port until the end of the block."""
    with PolicyServer(blocklist) as service:
        threading.Thread(target=service.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield service
        finally:
            service.shutdown()


@dataclass
class MailServer:
    """A running Postfix: its port, and the folder where accepted messages arrive."""

    port: int
    inbox: Path


MAIN_CF = """\
compatibility_level = 3.6
queue_directory = {folder}/spool
data_directory = {folder}/data
meta_directory = {folder}/etc
command_directory = {postfix}/usr/sbin
daemon_directory = {postfix}/usr/lib/postfix/sbin
shlib_directory = {postfix}/usr/lib/postfix
import_environment = MAIL_CONFIG LD_LIBRARY_PATH TZ LANG=C
mail_owner = mail
setgid_group = uucp
maillog_file = {folder}/maillog
maillog_file_prefixes = {folder}
inet_interfaces = loopback-only
inet_protocols = ipv4
myhostname = mail.example.test
mydestination =
alias_maps =
smtpd_peername_lookup = no
virtual_mailbox_domains = example.test
virtual_mailbox_base = {folder}/mail
virtual_mailbox_maps = static:inbox/
virtual_uid_maps = static:65534
virtual_gid_maps = static:65534
smtpd_sender_restrictions = check_policy_service inet:127.0.0.1:{policy_port}
"""
MASTER_CF = """\
127.0.0.1:{port} inet n - n - - smtpd
postlog unix-dgram n - n - 1 postlogd
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
proxymap unix - - n - - proxymap
anvil unix - - n - 1 anvil
virtual unix - n n - - virtual
error unix - - n - - error
retry unix - - n - - error
"""
QUEUES = "active bounce corrupt defer deferred flush hold incoming maildrop private public saved trace".split()


def no_postfix() -> str | None:
    """Returns why Postfix cannot start here. `None`: it can."""
    if os.geteuid() != 0:
        return "Postfix starts only as root, because its processes change to other users"
    if not (peers() / "debian/blocklist/usr/sbin/postconf").exists():
        return "Postfix is not installed; `cargo x example blocklist` installs it in target/"
    return None


def library_path(*folders: Path) -> str:
    machine_folder = peers() / "debian/blocklist/usr/lib" / f"{platform.machine()}-linux-gnu"
    return ":".join(map(str, [*folders, machine_folder]))


@contextmanager
def postfix(policy_port: int) -> Iterator[MailServer]:
    """Runs a Postfix with its own configuration, queue and mailboxes, which asks a policy service about senders.

    Its files are in a temporary folder that other users may enter: its processes are not root's. The users and groups
    are those that every Debian has; a real installation has its own, `postfix` and `postdrop`.
    """
    if reason := no_postfix():
        raise RuntimeError(reason)
    unpacked = peers() / "debian/blocklist"
    port = free_port()
    folder = Path(tempfile.mkdtemp(prefix="petal-postfix-"))
    try:
        folder.chmod(0o755)
        for name in ("etc", "data", "mail", "spool", "spool/pid", *(f"spool/{queue}" for queue in QUEUES)):
            (folder / name).mkdir()
        for queue in QUEUES:
            (folder / "spool" / queue).chmod(0o755 if queue == "public" else 0o700)
            shutil.chown(folder / "spool" / queue, "mail")
        shutil.chown(folder / "data", "mail")
        os.chown(folder / "mail", 65534, 65534)
        main_cf = MAIN_CF.format(folder=folder, postfix=unpacked, policy_port=policy_port)
        (folder / "etc/main.cf").write_text(main_cf)
        (folder / "etc/master.cf").write_text(MASTER_CF.format(port=port))
        environment = os.environ | {
            "LD_LIBRARY_PATH": library_path(unpacked / "usr/lib/postfix"),
            "MAIL_CONFIG": str(folder / "etc"),
        }
        master = [unpacked / "usr/lib/postfix/sbin/master", "-d", "-c", folder / "etc"]
        # The master ends its process group; it must have one of its own.
        with server(master, port, folder / "master.log", env=environment, start_new_session=True):
            yield MailServer(port, folder / "mail/inbox/new")
    finally:
        shutil.rmtree(folder)


def postfix_table_bytes(names: set[str], folder: Path) -> int:
    """Returns the size of Postfix' own indexed table (Berkeley DB hash) of the names."""
    unpacked = peers() / "debian/blocklist"
    (folder / "main.cf").write_text(MAIN_CF.format(folder=folder, postfix=unpacked, policy_port=0))
    table = folder / "table"
    table.write_text("".join(f"{name} REJECT\n" for name in sorted(names)))
    environment = os.environ | {"LD_LIBRARY_PATH": library_path(unpacked / "usr/lib/postfix")}
    postmap = [unpacked / "usr/sbin/postmap", "-c", folder, f"hash:{table}"]
    subprocess.run(postmap, check=True, env=environment)
    return table.with_suffix(".db").stat().st_size


UNBOUND_CONF = """\
server:
    interface: 127.0.0.1@{port}
    directory: "{folder}"
    pidfile: "{folder}/{port}.pid"
    chroot: ""
    username: ""
    do-daemonize: no
    use-syslog: no
    do-not-query-localhost: no
    {settings}
remote-control:
    control-enable: no
"""
UPSTREAM = """module-config: "iterator"
    local-zone: "." redirect
    local-data: ". 60 IN A 192.0.2.1"
"""
PLAIN = """module-config: "iterator"
{zones}
forward-zone:
    name: "."
    forward-addr: 127.0.0.1@{upstream}
"""
WITH_SCRIPT = """module-config: "python iterator"
python:
    python-script: "{script}"
forward-zone:
    name: "."
    forward-addr: 127.0.0.1@{upstream}
"""


@dataclass
class Resolver:
    """A running Unbound: its port and its process id."""

    port: int
    pid: int


@contextmanager
def unbound(folder: Path, settings: str, **variables: str) -> Iterator[Resolver]:
    """Runs Unbound with settings until the end of the block."""
    unpacked = peers() / "debian/blocklist"
    port = free_port()
    config = folder / f"unbound-{port}.conf"
    config.write_text(UNBOUND_CONF.format(port=port, folder=folder, settings=settings))
    environment = os.environ | {"LD_LIBRARY_PATH": library_path()} | variables
    command = [unpacked / "usr/sbin/unbound", "-c", config]
    with server(command, port, folder / f"unbound-{port}.log", env=environment) as process:
        yield Resolver(port, process.pid)


@contextmanager
def resolver(folder: Path, filter_path: Path, allow_path: Path) -> Iterator[Resolver]:
    """Runs an Unbound with petal's script. A second one stands for the Internet: every name has 192.0.2.1."""
    unpacked = peers() / "debian/blocklist"
    python_path = [unpacked / "usr/lib/python3/dist-packages", HERE, Path(petal.__file__).parent.parent]
    with unbound(folder, UPSTREAM) as upstream:
        settings = WITH_SCRIPT.format(script=HERE / "unbound_script.py", upstream=upstream.port)
        with unbound(
            folder, settings, PYTHONHOME=str(unpacked / "usr"), PYTHONPATH=":".join(map(str, python_path)),
            PYTHONDONTWRITEBYTECODE="1", PETAL_BLOCKLIST=str(filter_path), PETAL_ALLOW=str(allow_path),
        ) as running:  # fmt: skip
            yield running


@contextmanager
def resolver_with_zones(folder: Path, hosts: set[str]) -> Iterator[Resolver]:
    """Runs an Unbound that has the hosts as its own local zones, the usual way to block hosts in it."""
    with unbound(folder, UPSTREAM) as upstream:
        zones = "\n".join(f'    local-zone: "{host}" always_nxdomain' for host in sorted(hosts))
        with unbound(folder, PLAIN.format(zones=zones, upstream=upstream.port)) as running:
            yield running


def send(port: int, sender: str) -> str:
    """Sends a message by SMTP to `inbox@example.test` and returns the server's last reply."""
    with smtplib.SMTP("127.0.0.1", port, local_hostname="client.example.test", timeout=30) as client:
        client.ehlo()
        client.mail(sender)
        code, reply = client.rcpt("inbox@example.test")
        if code == 250:
            code, reply = client.data(f"From: <{sender}>\nSubject: hello\n\nhello\n")
    return f"{code} {reply.decode(errors='replace')}"


def ask(port: int, host: str) -> str:
    """Asks a DNS server for the address of a host and returns the answer, or the name of the error."""
    reply = dns.query.udp(dns.message.make_query(host, "A"), "127.0.0.1", port=port, timeout=10)
    return ", ".join(str(data) for rrset in reply.answer for data in rrset) or dns.rcode.to_text(reply.rcode())
