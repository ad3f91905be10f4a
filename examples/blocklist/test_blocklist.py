"""Listed names are always blocked, known good ones never: in Python, in `petal check`, in Postfix and in Unbound."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import mail_and_dns
import petal
import pytest
from name_filter import (
    Blocklist,
    blocked,
    false_alarm,
    false_alarms,
    listed_name,
    names_looked_up,
    passing,
    write_names,
)
from public_lists import Lists, disposable_mail_domains, host_lists, mail_lists, tracking_hosts
from support import wait_until

FPR = 0.01
LIMIT = 3000


@pytest.fixture(scope="module")
def mail() -> Lists:
    return mail_lists(LIMIT)


@pytest.fixture(scope="module")
def hosts() -> Lists:
    return host_lists(LIMIT)


@pytest.fixture(params=["mail", "hosts"])
def lists(request: pytest.FixtureRequest) -> Lists:
    return request.getfixturevalue(request.param)


@pytest.fixture
def files(lists: Lists, tmp_path: Path) -> tuple[Path, Path]:
    """A filter file of the names to block, and an allow list that is still empty."""
    write_names(tmp_path / "bad.txt", lists.listed)
    petal.build(tmp_path / "bad.txt", tmp_path / "bad.petal", type="static", fpr=FPR)
    write_names(tmp_path / "allow.txt", [])
    return tmp_path / "bad.petal", tmp_path / "allow.txt"


def test_real_lists_are_long():
    domains, hosts = disposable_mail_domains(), tracking_hosts()
    assert len(domains) > 50_000 and "mailinator.com" in domains
    assert len(hosts) > 50_000 and "doubleclick.net" in hosts


def test_names_are_the_address_its_domain_and_the_domains_above():
    assert list(names_looked_up("Ann@MX.Example.org.")) == ["ann@mx.example.org", "mx.example.org", "example.org"]
    assert list(names_looked_up("bücher.example")) == ["xn--bcher-kva.example"]
    assert list(names_looked_up("")) == list(names_looked_up("localhost")) == []


def test_listed_names_are_blocked_in_every_form(lists: Lists):
    filter = petal.StaticFilter(sorted(lists.listed), FPR)
    for name in lists.listed:
        for address in (name, f"www.{name.upper()}", f"ann@{name}", f"ann@mx.{name}", f"{name}."):
            assert listed_name(address, filter), address


def test_allow_list_lets_all_known_addresses_pass_and_blocks_what_the_set_blocks(lists: Lists):
    universe = lists.universe()
    filter = petal.StaticFilter(sorted(lists.listed), FPR)
    alarms = false_alarms(filter, universe)
    assert 0 < len(alarms) < 3 * FPR * len(universe)
    assert blocked(lists.known, filter) > 0
    for address in [*lists.known, *lists.listed]:
        expected = listed_name(address, lists.listed)
        assert (listed_name(address, filter, frozenset(alarms)) is None) == (expected is None), address


def test_cascade_is_exact_in_its_universe(lists: Lists):
    universe = lists.universe()
    cascade = petal.FilterCascade(sorted(lists.listed), sorted(universe), FPR)
    assert false_alarms(cascade, universe) == []
    assert all(name in cascade for name in lists.listed)


def test_check_with_allow_decides_like_the_allow_list(lists: Lists, files: tuple[Path, Path], tmp_path: Path):
    universe, (filter_path, allow) = lists.universe(), files
    write_names(tmp_path / "universe.txt", universe)
    alarms = false_alarms(petal.load(filter_path), universe)
    check = ["petal", "check", "-q", "--allow", allow, filter_path, tmp_path / "universe.txt"]
    assert subprocess.run(check, capture_output=True, text=True).stdout.split() == alarms
    write_names(allow, alarms)
    assert subprocess.run(check, capture_output=True, text=True).stdout == ""


def test_changed_files_are_read_again_and_bad_ones_ignored(mail: Lists, tmp_path: Path, capsys):
    petal.StaticFilter(["bad.example"], FPR).save(tmp_path / "f")
    write_names(tmp_path / "allow", [])
    blocklist = Blocklist(tmp_path / "f", tmp_path / "allow")
    assert blocklist.listed_name("ann@bad.example") == "bad.example"
    (tmp_path / "allow").write_text("# reported today\nBad.example\n")
    blocklist.refresh()
    assert blocklist.listed_name("ann@bad.example") is None
    (tmp_path / "f").write_bytes(b"not a filter")
    blocklist.refresh()
    assert "f: " in capsys.readouterr().err
    assert "bad.example" in blocklist.filter


def answers(port: int, request: bytes) -> bytes:
    """Sends bytes to the policy service, and returns all that it answers until the connection ends."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        client.sendall(request)
        client.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: client.recv(4096), b""))


def test_policy_service_answers_each_request_of_a_connection(tmp_path: Path, capsys):
    petal.StaticFilter(["bad.example"], 1e-6).save(tmp_path / "f")
    request = b"request=smtpd_access_policy\nsender=%s\nsize=1\n\n"
    with mail_and_dns.policy_service(Blocklist(tmp_path / "f")) as service:
        senders = (b"ann@bad.example", b"ann@good.example", b"", b"a=b@bad.example")
        assert answers(service.port, b"".join(request % sender for sender in senders)) == (
            b"action=REJECT bad.example is on the blocklist\n\naction=DUNNO\n\naction=DUNNO\n\n"
            b"action=REJECT bad.example is on the blocklist\n\n"
        )
        assert answers(service.port, b"GET / HTTP/1.1\r\n\r\n" + request % b"ann@bad.example") == b""
        assert answers(service.port, b"\n") == b""
    assert "not a line of a policy request" in capsys.readouterr().err


@pytest.mark.parametrize("lists", ["mail"], indirect=True)
@pytest.mark.skipif(mail_and_dns.no_postfix() is not None, reason=str(mail_and_dns.no_postfix()))
def test_postfix_rejects_listed_senders_and_accepts_others(lists: Lists, files: tuple[Path, Path]):
    blocklist = Blocklist(*files)
    universe = lists.universe()
    alarm, name = false_alarm(lists.known, blocklist.filter)
    good = passing(lists.known, blocklist.filter)
    bad = sorted(lists.listed)[:20]
    with mail_and_dns.policy_service(blocklist) as service, mail_and_dns.postfix(service.port) as postfix:
        for domain in bad:
            assert mail_and_dns.send(postfix.port, f"ann@{domain}").startswith("554 "), domain
        assert mail_and_dns.send(postfix.port, good).startswith("250 ")
        assert mail_and_dns.send(postfix.port, "").startswith("250 "), "a bounce has no sender"
        assert mail_and_dns.send(postfix.port, alarm) == (
            f"554 5.7.1 <{alarm}>: Sender address rejected: {name} is on the blocklist"
        )
        write_names(files[1], false_alarms(blocklist.filter, universe))
        assert mail_and_dns.send(postfix.port, alarm).startswith("250 ")
        assert mail_and_dns.send(postfix.port, f"ann@{bad[0]}").startswith("554 ")
        delivered = lambda: len(list(postfix.inbox.glob("*")))  # noqa: E731
        wait_until(lambda: delivered() == 3, "three messages are delivered")


@pytest.mark.skipif(mail_and_dns.no_postfix() is not None, reason=str(mail_and_dns.no_postfix()))
def test_postfix_defers_mail_without_the_policy_service():
    with mail_and_dns.postfix(policy_port=mail_and_dns.free_port()) as postfix:
        assert mail_and_dns.send(postfix.port, "ann@good.example").startswith("451 ")


@pytest.mark.parametrize("lists", ["hosts"], indirect=True)
def test_unbound_answers_nxdomain_for_listed_hosts_only(lists: Lists, files: tuple[Path, Path], tmp_path: Path):
    filter_path, allow = files
    filter = petal.load(filter_path)
    alarm, name = false_alarm(lists.known, filter)
    with mail_and_dns.resolver(tmp_path, filter_path, allow) as resolver:
        for host in sorted(lists.listed)[:50]:
            assert mail_and_dns.ask(resolver.port, host) == mail_and_dns.ask(resolver.port, f"www.{host}") == "NXDOMAIN", host
        for host in lists.known[:200]:
            expected = "NXDOMAIN" if listed_name(host, filter) else "192.0.2.1"
            assert mail_and_dns.ask(resolver.port, host) == expected, host
        assert mail_and_dns.ask(resolver.port, alarm) == "NXDOMAIN"
        write_names(allow, [name])
        assert mail_and_dns.ask(resolver.port, alarm) == "192.0.2.1"


def run(*args: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, mail_and_dns.HERE / "main.py", *args]
    return subprocess.run(command, capture_output=True, text=True)


def test_figures_have_no_known_address_blocked_behind_allow_list_and_cascade(tmp_path: Path):
    ran = run("--limit", "2000", "--fpr", "0.02", "--rows", tmp_path / "rows.csv")
    assert ran.returncode == 0, ran.stderr
    rows = [line.split(",") for line in (tmp_path / "rows.csv").read_text().splitlines()]
    measured = {row[-6]: int(row[-3]) for row in rows if "known good addresses blocked" in row}
    assert measured["mail: filter"] > 0
    assert measured["mail: allow list"] == measured["mail: cascade"] == 0
    assert measured["hosts: allow list"] == measured["hosts: cascade"] == 0


@pytest.mark.skipif(mail_and_dns.no_postfix() is not None, reason=str(mail_and_dns.no_postfix()))
def test_smtp_shows_a_false_alarm_that_passes_after_the_allow_list():
    ran = run("smtp", "--limit", "3000", "--fpr", "0.01")
    replies = [line.split()[0] for line in ran.stdout.splitlines() if line.startswith("    ")]
    assert replies == ["554", "554", "250", "554", "250"], ran.stdout + ran.stderr


def test_missing_filter_is_one_line_and_exit_code_2(tmp_path: Path):
    ran = run("policy", tmp_path / "none.petal")
    assert ran.returncode == 2
    assert ran.stderr.count("\n") == 1 and "none.petal" in ran.stderr
