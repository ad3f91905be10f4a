"""Block disposable mail addresses and tracking hosts with a filter, and let false alarms pass with an allow list.

Without a command: what real lists take as text, as a set, as a filter and as a cascade, how fast each decides, and
how many good addresses each blocks. With one:

    main.py smtp        a real Postfix asks petal about senders
    main.py dns         a real Unbound asks petal about hosts
    main.py lists DIR   write the lists, to build filters with `petal build`
    main.py policy F    serve Postfix' policy requests from a filter file until Ctrl-C
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Container
from pathlib import Path
from typing import TypeVar

sys.path.insert(1, str(Path(__file__).resolve().parent.parent))

import dns.message
import dns.rcode
import mail_and_dns
import petal
from name_filter import Blocklist, blocked, false_alarm, false_alarms, passing, write_names
from public_lists import Lists, host_lists, mail_lists
from support import Rows, resident_bytes

T = TypeVar("T")


def memory_of(make: Callable[[], T]) -> tuple[T, int]:
    """Returns what a function makes, and the memory that Python took for it."""
    tracemalloc.start()
    made = make()
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return made, taken


def decisions_per_second(addresses: list[str], names: Container[str], allowed: Container[str] = ()) -> float:
    """Returns the decisions per second of CPU time of one thread: the best of three runs."""
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        blocked(addresses, names, allowed)
        best = min(best, time.process_time() - start)
    return len(addresses) / best


def figures(lists: Lists, fpr: float, rows: Rows) -> None:
    """Prints and records the figures of one list."""
    listed, universe = sorted(lists.listed), lists.universe()
    text = "".join(f"{name}\n" for name in listed)
    as_set, set_bytes = memory_of(lambda: set(text.split()))
    filter = petal.StaticFilter(listed, fpr)
    allow_list_text = "\n".join(false_alarms(filter, universe))
    allow_list, allow_list_bytes = memory_of(lambda: frozenset(allow_list_text.split()))
    cascade = petal.FilterCascade(listed, universe, fpr)
    alarms = false_alarms(cascade, universe)
    if not all(name in filter and name in cascade for name in listed) or alarms:
        raise RuntimeError(f"a listed name was not found, or the cascade has false alarms: {alarms[:3]}")

    print(f"{lists.what}: {len(listed):,} names to block; {len(lists.known):,} good addresses that we know")
    print(f"({len(universe):,} names to look up for them), {len(lists.unknown):,} that we do not; rate {fpr:.2%}")
    print(f"{'':20}{'bytes':>12}{'bits/name':>11}{'decisions/s':>13}{'known blocked':>15}{'unknown blocked':>17}")
    sample = lists.unknown[:100_000]
    cases: list[tuple[str, int, Container[str] | None, Container[str]]] = [
        ("text", len(text), None, ()),
        ("Python set", set_bytes, as_set, ()),
        ("filter", filter.memory_bytes, filter, ()),
        ("... and allow list", filter.memory_bytes + allow_list_bytes, filter, allow_list),
        ("cascade", cascade.memory_bytes, cascade, ()),
    ]
    for case, size, names, allowed in cases:
        bits = size * 8 / len(listed)
        line = f"{case:20}{size:12,}{bits:11.1f}"
        measured = {"bytes": (size, "byte"), "bits per name": (bits, "bit")}
        if names is not None:
            rate = decisions_per_second(sample, names, allowed)
            known, unknown = blocked(lists.known, names, allowed), blocked(lists.unknown, names, allowed)
            line += f"{rate:13,.0f}{known:15,}{unknown:17,}"
            measured |= {
                "decisions": (rate, "1/s"),
                "known good addresses blocked": (known, "address"),
                "unknown good addresses blocked": (unknown, "address"),
            }
        print(line)
        for figure, (value, unit) in measured.items():
            rows.add(f"{lists.what}: {case.removeprefix('... and ')}", len(listed), figure, value, unit)
    print(f"allow list: {len(allow_list):,} names")
    rows.add(f"{lists.what}: allow list", len(listed), "names", len(allow_list), "name")


def write_lists(folder: Path, limit: int | None) -> None:
    """Writes the names to block and the names known to be good, in files for `petal build` and `petal check`."""
    folder.mkdir(parents=True, exist_ok=True)
    for lists in (mail_lists(limit), host_lists(limit)):
        for path, names in ((f"{lists.what}.txt", lists.listed), (f"known-{lists.what}.txt", lists.universe())):
            write_names(folder / path, names)
            print(f"{folder / path}: {len(names):,} names")


def smtp(folder: Path, fpr: float, limit: int | None, rows: Rows) -> None:
    """Sends mail to a real Postfix that asks petal about each sender."""
    if reason := mail_and_dns.no_postfix():
        raise RuntimeError(reason)
    lists = mail_lists(limit)
    names, allow, filter_path = folder / "mail.txt", folder / "allow.txt", folder / "mail.petal"
    write_names(names, lists.listed)
    allow.write_text("# good senders that the filter takes for listed ones\n")
    petal.build(names, filter_path, type="static", fpr=fpr)
    blocklist = Blocklist(filter_path, allow)
    address, name = false_alarm(lists.known, blocklist.filter)
    bad = "mailinator.com" if "mailinator.com" in lists.listed else min(lists.listed)
    senders = [f"ann@{bad}", f"ann@mx.{bad}", passing(lists.known, blocklist.filter), address]

    with mail_and_dns.policy_service(blocklist) as service, mail_and_dns.postfix(service.port) as postfix:
        for sender in senders:
            print(f"MAIL FROM:<{sender}>\n    {mail_and_dns.send(postfix.port, sender)}")
        with open(allow, "a") as file:
            file.write(f"{name}\n")
        print(f"added to the allow list: {name}\nMAIL FROM:<{address}>\n    {mail_and_dns.send(postfix.port, address)}")
    table = mail_and_dns.postfix_table_bytes(lists.listed, folder)
    size = filter_path.stat().st_size
    print(f"{len(lists.listed):,} names: {size:,} bytes in petal's file, {table:,} in a table of Postfix (hash)")
    rows.add("Postfix: petal", len(lists.listed), "file", size, "byte")
    rows.add("Postfix: hash table", len(lists.listed), "file", table, "byte")


def cpu_seconds(pid: int) -> float:
    """Returns the CPU time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def seconds_per_query(resolver: mail_and_dns.Resolver, hosts: list[str]) -> float:
    """Returns the CPU time of a DNS server per query for a blocked host; 64 queries are on the way at a time."""
    queries = [dns.message.make_query(host, "A", use_edns=False).to_wire() for host in hosts]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(10)
        client.connect(("127.0.0.1", resolver.port))
        start = cpu_seconds(resolver.pid)
        for at in range(0, len(queries), 64):
            for query in queries[at : at + 64]:
                client.send(query)
            for query in queries[at : at + 64]:
                if client.recv(4096)[3] & 15 != dns.rcode.NXDOMAIN:
                    raise RuntimeError("a host on the list was not blocked")
        return (cpu_seconds(resolver.pid) - start) / len(queries)


def memory_of_resolver(resolver: mail_and_dns.Resolver) -> int:
    """Returns the resident memory of Unbound after a query, when it has loaded everything."""
    mail_and_dns.ask(resolver.port, "example.org")
    return resident_bytes(resolver.pid)


def resolve(folder: Path, fpr: float, limit: int | None, rows: Rows) -> None:
    """Asks a real Unbound, whose script asks petal; then one with local zones, for their memory and speed."""
    lists = host_lists(limit)
    names, allow, filter_path = folder / "hosts.txt", folder / "allow.txt", folder / "hosts.petal"
    write_names(names, lists.listed)
    allow.write_text("")
    petal.build(names, filter_path, type="static", fpr=fpr)
    filter = petal.open(filter_path)
    host, name = false_alarm(lists.known, filter)
    bad = "doubleclick.net" if "doubleclick.net" in lists.listed else min(lists.listed)
    sample = sorted(lists.listed)[:: max(1, len(lists.listed) // 20_000)]

    cases: list[tuple[str, int, float]] = []
    with mail_and_dns.resolver(folder, filter_path, allow) as resolver:
        for asked in (bad, f"ad.{bad}", passing(lists.known, filter), host):
            print(f"{asked}: {mail_and_dns.ask(resolver.port, asked)}")
        write_names(allow, {name})
        print(f"added to the allow list: {name}\n{host}: {mail_and_dns.ask(resolver.port, host)}")
        cases.append(("petal", memory_of_resolver(resolver), seconds_per_query(resolver, sample)))
    with mail_and_dns.resolver_with_zones(folder, lists.listed) as resolver:
        cases.append(("local zones", memory_of_resolver(resolver), seconds_per_query(resolver, sample)))
    with mail_and_dns.resolver_with_zones(folder, set()) as resolver:
        empty = memory_of_resolver(resolver)
    petal.StaticFilter([bad], fpr).save(filter_path)
    with mail_and_dns.resolver(folder, filter_path, allow) as resolver:
        script = memory_of_resolver(resolver)
    print(f"Unbound without a list: {empty / 2**20:.1f} MiB, with the script and one host {script / 2**20:.1f} MiB;")
    print(f"with {len(lists.listed):,} hosts:")
    rows.add("Unbound: petal", 1, "memory", script, "byte")
    rows.add("Unbound: no list", 0, "memory", empty, "byte")
    for case, memory, seconds in cases:
        print(f"    {case:12} {memory / 2**20:6.1f} MiB, {seconds * 1e6:.0f} µs of CPU time per blocked query")
        rows.add(f"Unbound: {case}", len(lists.listed), "memory", memory, "byte")
        rows.add(f"Unbound: {case}", len(lists.listed), "CPU time per blocked query", seconds, "s")


def serve(filter_path: Path, allow_path: Path | None, port: int) -> None:
    """Serves Postfix' policy requests until Ctrl-C."""
    blocklist = Blocklist(filter_path, allow_path)
    try:
        service = mail_and_dns.PolicyServer(blocklist, port)
    except OSError as error:
        raise RuntimeError(f"port {port} of 127.0.0.1: {error.strerror}; choose another with --port") from error
    with service:
        print(f"smtpd_sender_restrictions = check_policy_service inet:127.0.0.1:{service.port}", flush=True)
        try:
            service.serve_forever()
        except KeyboardInterrupt:
            pass


def rate(text: str) -> float:
    value = float(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a rate; expected a number above 0 and below 1")
    return value


def positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is too small; expected at least 1")
    return value


def parse(args: list[str] | None) -> argparse.Namespace:
    formatter = argparse.RawDescriptionHelpFormatter
    example = "example: cargo x example blocklist smtp --limit 5000 --fpr 0.01"
    parser = argparse.ArgumentParser(description=__doc__, epilog=example, formatter_class=formatter)
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--fpr", type=rate, default=0.001, help="false-positive rate of the filters [default: 0.001]")
    shared.add_argument("--limit", type=positive, metavar="N", help="use at most N names of each list [default: all]")
    shared.add_argument("--rows", type=Path, metavar="FILE", help="append the measured figures to a CSV file")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser("figures", parents=[shared], help="size, speed and false alarms [default]")
    commands.add_parser("smtp", parents=[shared], help="send mail to a real Postfix; needs root")
    commands.add_parser("dns", parents=[shared], help="ask a real Unbound")
    lists = commands.add_parser("lists", parents=[shared], help="write the lists to files")
    lists.add_argument("folder", type=Path, metavar="DIR")
    policy = commands.add_parser("policy", help="serve Postfix' policy requests")
    policy.add_argument("filter", type=Path, metavar="FILTER")
    policy.add_argument("--allow", type=Path, metavar="FILE", help="allow list; read again when it changes")
    policy.add_argument("--port", type=int, default=10040, help="TCP port on the loopback address [default: 10040]")
    args = sys.argv[1:] if args is None else args
    has_command = bool(args) and args[0] in (*commands.choices, "-h", "--help")
    return parser.parse_args(args if has_command else ["figures", *args])


def main(args: list[str] | None = None) -> int:
    options = parse(args)
    try:
        if options.command == "policy":
            serve(options.filter, options.allow, options.port)
            return 0
        rows = Rows(options.rows, "blocklist")
        if options.command == "lists":
            write_lists(options.folder, options.limit)
        elif options.command == "figures":
            for lists in (mail_lists(options.limit), host_lists(options.limit)):
                figures(lists, options.fpr, rows)
        else:
            with tempfile.TemporaryDirectory() as folder:
                run = smtp if options.command == "smtp" else resolve
                run(Path(folder), options.fpr, options.limit, rows)
    except (OSError, RuntimeError, ValueError) as error:
        named = isinstance(error, OSError) and error.filename and error.strerror
        print(f"blocklist: {error.filename}: {error.strerror}" if named else f"blocklist: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
