"""Two Squid caches that exchange digests, read and written by petal.

Cache A has fetched pages. Cache B is its sibling: it asks A for a page only if the page is in the digest of A, and
fetches other pages from the web. This program reads the digest of A and predicts for each request whether B will ask A;
then B answers the requests, and its choices are read from the access logs. It does so with the digest that A makes and
with one that petal makes from the access log of A.
"""

from __future__ import annotations

import argparse
import random
import sys
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import petal  # noqa: E402
import support  # noqa: E402
from caches import FIRST, LogLine, Squid, digest_server, squid, web  # noqa: E402

EXAMPLE = "example:\n  cargo x example squid --cached 3000 --fpr 0.01 0.001"
FROM_A = "A's, fetched from A"
PAGE = b"A page of a web site.\n" * 50


@dataclass
class Choices:
    """What cache B did with its requests."""

    asked: set[str]  # URLs that it asked A for
    hits: int  # pages that A had
    from_web: int  # pages that it fetched from the web

    @property
    def in_vain(self) -> int:
        """Requests to A for a page that A does not have: false positives of the digest."""
        return len(self.asked) - self.hits


def url(number: int) -> str:
    """Returns the URL of a page."""
    return f"http://site-{number % 97}.example/articles/{number}.html"


def cached_urls(log: list[LogLine]) -> list[str]:
    """Returns the URLs that a cache has stored by its access log: all that it answered with a page."""
    return sorted({line.url for line in log if line.result.endswith("/200")})


def write_digest(urls: list[str], fpr: float) -> bytes:
    """Returns a digest of the URLs for Squid."""
    digest = petal.ForeignFilter("squid-digest", len(urls), fpr)
    digest.update(urls)
    return digest.to_bytes()


def choices(a: Squid, web_port: int, from_web: list[str], requests: list[str], digest: bytes | None) -> Choices:
    """Runs a new cache B with sibling A and lets it answer the requests.

    B takes the digest from a server of this program, or without one from A.
    """
    with digest_server(digest) if digest else nullcontext() as digest_url:
        sibling = f"sibling {a.port} 0 name=a" + (f" digest-url={digest_url}" if digest_url else "")
        with squid("cache-b", sibling, f"parent {web_port} 0 no-digest name=web") as b:
            b.wait_for_digest_of_sibling()
            a.new_log_lines()
            before = len(from_web)
            b.fetch(requests)
            asked = {line.url for line in a.new_log_lines() if line.url != FIRST}
            hits = sum(line.source == "CD_SIBLING_HIT" and line.url != FIRST for line in b.new_log_lines())
            return Choices(asked, hits, len(from_web) - before)


def compare(args: argparse.Namespace, rows: support.Rows) -> dict[str, tuple[set[str], Choices]]:
    """Runs the caches and prints a table. Returns for each digest the URLs that petal found in it, and B's choices."""
    results: dict[str, tuple[set[str], Choices]] = {}
    with web(PAGE) as (web_port, from_web), squid("cache-a", f"parent {web_port} 0 no-digest") as a:
        a.fetch([url(number) for number in range(args.cached)])
        urls = cached_urls(a.new_log_lines())
        own = a.digest(len(urls))
        listed = sum(len(url) + 1 for url in urls)
        print(f"cache A has {len(urls):,} pages; the list of their URLs has {listed:,} bytes")

        requests = [url(number) for number in range(2 * args.cached)]
        random.Random(5).shuffle(requests)
        print(f"cache B gets {len(requests):,} requests, half of them for other pages\n")
        print("digest                  bytes  false positives  A asked  in vain  from the web  as petal predicts")
        digests = {FROM_A: own, "A's, served apart": own}
        digests.update((f"petal's at {fpr:.1%}", write_digest(urls, fpr)) for fpr in args.fpr)
        for name, digest in digests.items():
            found = petal.from_bytes(digest).contains_batch(requests)
            predicted = {url for url, is_in in zip(requests, found, strict=True) if is_in}
            chosen = choices(a, web_port, from_web, requests, None if name == FROM_A else digest)
            results[name] = predicted, chosen
            rate = len(predicted.difference(urls)) / (len(requests) - len(urls))
            same = len(requests) - len(predicted ^ chosen.asked)
            print(
                f"{name:20} {len(digest):8,} {rate:16.2%} {len(chosen.asked):8,} {chosen.in_vain:8,}"
                f" {chosen.from_web:13,} {same / len(requests):17.2%}"
            )
            for figure, value, unit in [
                ("digest", len(digest), "byte"),
                ("list of URLs", listed, "byte"),
                ("false positives of the digest", 100 * rate, "%"),
                ("requests to A", len(chosen.asked), "requests"),
                ("requests to A in vain", chosen.in_vain, "requests"),
                ("pages from A", chosen.hits, "requests"),
                ("pages from the web", chosen.from_web, "requests"),
                ("choices that petal predicted", 100 * same / len(requests), "%"),
            ]:
                rows.add(name, args.cached, figure, value, unit)
    return results


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="squid", description=__doc__.split("\n")[0], epilog=EXAMPLE, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--cached", type=int, default=500, help="pages in cache A [default: 500]")
    parser.add_argument(
        "--fpr", type=float, nargs="+", default=[0.01], help="false-positive rates of petal's digests [default: 0.01]"
    )
    parser.add_argument("--rows", type=Path, metavar="FILE", help="append the figures to a CSV file")
    args = parser.parse_args(words)
    if args.cached < 1:
        parser.error(f"--cached: expected a whole number above 0, found {args.cached}")
    for fpr in args.fpr:
        if not 0 < fpr < 1:
            parser.error(f"--fpr: expected a number above 0 and below 1, found {fpr}")
    return args


def main() -> int:
    args = arguments()
    try:
        compare(args, support.Rows(args.rows, "squid"))
    except (petal.PetalError, OSError, RuntimeError) as error:
        print(f"squid: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
