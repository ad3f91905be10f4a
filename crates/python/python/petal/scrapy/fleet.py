"""A filter on a Redis or Valkey server with petal's module, shared by all spiders that name it.

`BF.INSERT` asks and marks in one step: of several spiders that come upon a page at once, one alone
hears that it is new. Its `NOCREATE` keeps a filter that was deleted from being made again as the
server thinks fit: it is made again as the settings say, and told. With a window, `BF.EXISTS` asks
first and only what is new is marked, for marking again would make it known for longer; two spiders
that ask at once are told apart by `PETAL.SEEN`, which marks.

Where pending requests are kept, `BF.EXISTS` asks first too. What the server does not know is kept
as an intent before the server is asked to mark it, so that a spider that is killed in between
loses nothing: its next run has the intent, and fetches the page. The intent is withdrawn if another
spider marked the page in the meantime.

While the server does not answer, the spider goes on by itself: what it has not let through itself
counts as new. So nothing is lost and every crawl still ends, and each spider fetches a page at most
once more. With a window the spider forgets, after as long, what it let through by itself; a filter
that begins anew makes it forget too.

A command is sent once and never again: a server that marked a page, and whose answer was lost,
would at the second time say "seen" to the only spider that asked, and the page would be lost.

Cost: one round trip for each request, two for what is new to a window or where pending requests are
kept, and one for the stats each `STEP` that are new, during which the crawl waits.
"""

import logging
import math
import os
import time
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from scrapy import Request

import petal
from petal.scrapy.journal import JobDir, Journal
from petal.scrapy.local import STEP
from petal.scrapy.pending import Intent, Pending
from petal.scrapy.plan import PREFIX, Plan
from petal.scrapy.teller import Teller

# Seconds that a silent server may hold up the crawl, unless the URL says otherwise.
PATIENCE = 5.0
# Seconds until a server that failed is asked again; twice as long each time, up to the longest.
PAUSE, LONGEST_PAUSE = 1.0, 60.0
# Requests that a spider expects to let through while there is no server; more only cost memory.
ALONE = 10_000
# How often the parts of a small window are looked at while one becomes full.
LOOKS, PARTS = 16, 3
# What the server calls the filters that will do.
KINDS = {"scalable": "grow", "redisbloom": "grow", "bloom": "fixed", "windowed": "window"}


class Fleet:
    """The filter that a server has. `seen(fingerprint, request)` asks and marks."""

    def __init__(
        self,
        plan: Plan,
        teller: Teller,
        pending: Pending | None = None,
        jobdir: JobDir | None = None,
    ) -> None:
        """Makes the filter, or joins that which is there; `pending` is told of what is new.

        Raises `petal.IncompatibleError` if that one is of another kind, or the JOBDIR has a filter
        of its own, `redis.RedisError` if there is no server, or it has not petal's module.
        """
        # Only here: a spider without a server needs no redis-py.
        import redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        assert plan.redis_url is not None
        self._plan = plan
        self._teller = teller
        self._pending = pending
        # Of the request that is being asked about; `None` before the server is asked to mark it.
        self._intent: Intent | None = None
        self._keeps_queue = jobdir is not None
        self._error = redis.RedisError
        self._refused = redis.ResponseError
        self._key = plan.key.replace("{spider}", teller.spider_name)
        self._client: Any = redis.Redis.from_url(
            plan.redis_url,
            socket_timeout=PATIENCE,
            # The same, also where the URL has another.
            socket_connect_timeout=None,
            retry=Retry(NoBackoff(), 0),
        )
        self._ask: Callable[..., Any] = self._client.execute_command
        # What this spider let through while there was no server, and when it is to be forgotten.
        self._alone: petal.Filter | None = None
        self._forget = math.inf
        self._away = False
        self._again = 0.0
        self._pause = PAUSE
        self._let_through = 0
        # New requests between two looks: less of a small window, whose parts are soon full.
        self._step = STEP
        if plan.window is not None and plan.capacity is not None:
            self._step = max(1, min(STEP, plan.capacity // (LOOKS * PARTS)))
        journal = _agreed(plan, jobdir) if jobdir is not None else None
        self._join()
        if journal is not None and journal.made is None:
            # There is nothing to save: the folder only tells that its filter is on a server.
            journal.begin(plan.lasting, lambda _: None)
            journal.close()

    def seen(self, fingerprint: bytes, request: Request) -> bool:
        """Whether any spider has asked for it before; it is known from now on."""
        self._intent = None
        seen = self._answer(fingerprint, request)
        if seen:
            if self._pending is not None and self._intent is Intent.KEPT:
                self._pending.withdraw(fingerprint)
            return True
        self._let_through += 1
        if self._pending is not None and self._intent in (None, Intent.WAS_KEPT):
            self._pending.add(fingerprint, request)
        if self._let_through % self._step == 0:
            self._look()
        return False

    def _look(self) -> None:
        if self._pending is not None:
            self._pending.sync()
        if not self._away:
            self._tell()

    def _answer(self, fingerprint: bytes, request: Request) -> bool:
        if self._alone is not None:
            if time.monotonic() >= self._forget:
                self._alone = None
            elif fingerprint in self._alone:
                return True
        if self._away and time.monotonic() < self._again:
            return self._seen_alone(fingerprint)
        try:
            try:
                seen = self._seen_by_any(fingerprint, request)
            except self._refused as error:
                if _reason(error) != "not found":
                    raise
                words = "Duplicate filter is gone from the server (%s); it begins anew"
                self._teller.line(logging.WARNING, words, self._where())
                self._join()
                self._alone = None
                seen = self._seen_by_any(fingerprint, request)
        except (self._error, petal.IncompatibleError) as error:
            self._leave(error)
            return self._seen_alone(fingerprint)
        if self._away:
            self._away = False
            self._pause = PAUSE
            self._teller.line(logging.INFO, "Duplicate filter: the server answers again")
        return seen

    def _seen_by_any(self, fingerprint: bytes, request: Request) -> bool:
        if self._plan.window is not None or self._pending is not None:
            if self._ask("BF.EXISTS", self._key, fingerprint):
                return True
            if self._pending is not None and self._intent is None:
                self._intent = self._pending.intend(fingerprint, request)
        if self._plan.window is None:
            (new,) = self._ask("BF.INSERT", self._key, "NOCREATE", "ITEMS", fingerprint)
            if isinstance(new, Exception):
                if _reason(new) != "non scaling filter is full":
                    raise new
                self._raise_alarm(
                    "it takes no more, and each spider has to know by itself what is new to it"
                )
                return self._seen_alone(fingerprint)
            return not new
        return bool(self._ask("PETAL.SEEN", self._key, fingerprint)[0])

    def _seen_alone(self, fingerprint: bytes) -> bool:
        if self._alone is None:
            self._alone = petal.ScalableBloomFilter(
                ALONE, self._plan.rate, secret=os.urandom(16)
            )
            # All at once: what it forgets too early is fetched once more.
            if self._plan.window is not None:
                self._forget = time.monotonic() + self._plan.window
        self._teller.count("alone")
        return not self._alone.add(fingerprint)

    def _leave(self, error: Exception) -> None:
        self._teller.count("server_errors")
        refused = isinstance(error, (self._refused, petal.IncompatibleError))
        if refused:
            self._pause = PAUSE
        self._again = time.monotonic() + self._pause
        # Each time that it is silent holds up the crawl.
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        if not self._away:
            self._away = True
            words = (
                "Duplicate filter: the server %s (%s); until it answers, this spider counts as"
                " seen only what it let through itself, and may fetch what others have"
            )
            does = "refuses the request" if refused else "does not answer"
            self._teller.line(logging.ERROR, words, does, error)

    def _join(self) -> None:
        """Makes the filter; if another spider was first, looks whether it will do."""
        plan = self._plan
        # The server reads plain decimals only.
        rate = format(Decimal(repr(plan.rate)), "f")
        words = ["NONSCALING"] if plan.kind == "fixed" else []
        if plan.window is not None:
            words = ["WINDOW", f"{plan.window}s"]
        try:
            self._ask("PETAL.RESERVE", self._key, rate, plan.capacity, *words)
        except self._refused as error:
            if _reason(error).startswith("unknown command"):
                raise self._refused(
                    f"{self._where()}: the server has not petal's module; docs/server.md tells how"
                    " it is loaded"
                ) from None
            if _reason(error) != "item exists":
                raise self._refused(f"{self._where()}: {error}") from None
            self._agree()
            return
        words_of = "Duplicate filter made on the server: %s, capacity %d, rate %s"
        self._teller.line(logging.INFO, words_of, self._where(), plan.capacity, rate)

    def _agree(self) -> None:
        info = self._info()
        window = None
        # Of all others, such as one that is still being imported, by the server's own name.
        kind = KINDS.get(info["type"], info["type"])
        if kind == "window":
            window = int(info.get("window-ms", 0)) // 1000
        if (kind, window) != (self._plan.kind, self._plan.window):
            raise petal.IncompatibleError(
                f"{self._where()}: the filter there is of kind {kind}, window {window}; the"
                f" settings say {self._plan.kind}, window {self._plan.window}: set {PREFIX}* as"
                f" they were, or take another {PREFIX}KEY"
            )
        if int(info.get("saturates", 0)):
            raise petal.IncompatibleError(
                f"{self._where()}: the filter there saturates (SATURATE): it adds keys beyond its"
                " capacity and takes ever more new pages for seen ones, which are lost; take"
                f" another {PREFIX}KEY"
            )
        asked = (self._plan.capacity, self._plan.rate)
        # Of one that has grown the capacity is the sum of its layers.
        capacity = int(info["capacity"]) if int(info["layers"]) == 1 else asked[0]
        if (capacity, float(info["error-rate"])) != asked:
            words = (
                "Duplicate filter on the server stays as it was made: capacity %s, rate %s; the"
                " settings say %s, %s"
            )
            found = (info["capacity"], info["error-rate"])
            self._teller.line(logging.WARNING, words, *found, *asked)
        words = "Duplicate filter joined on the server: %s, %s requests in it, capacity %s, rate %s"
        parts = (info["items"], info["capacity"], info["error-rate"])
        self._teller.line(logging.INFO, words, self._where(), *parts)
        if info["items"] and not self._keeps_queue:
            words = (
                "Duplicate filter on the server knows requests already, and there is no JOBDIR: if"
                " a spider ended before it had fetched all of its own, they are lost to all. Set"
                f" JOBDIR, or begin anew with another {PREFIX}KEY"
            )
            self._teller.line(logging.WARNING, words)

    def _info(self) -> dict[str, Any]:
        """What the server knows of the filter, by name."""
        reply = self._ask("PETAL.INFO", self._key)
        pairs = reply.items() if isinstance(reply, dict) else zip(reply[::2], reply[1::2])
        return {_text(name): _text(value) for name, value in pairs}

    def _where(self) -> str:
        """The server and the key, without what is secret in a URL."""
        of = self._client.connection_pool.connection_kwargs
        server = of.get("path") or f"{of.get('host', 'localhost')}:{of.get('port', 6379)}"
        return f"{server}, key {self._key}"

    def _tell(self) -> None:
        """Stats, and the alarm of a window; that of a fixed filter is raised where it refuses.

        Another may have put anything below the key: what is not told is not there.
        """
        try:
            info = self._info()
        except self._error as error:
            self._leave(error)
            return
        self._teller.facts(
            {
                "kind": self._plan.kind,
                "capacity": info.get("capacity"),
                "rate": float(info.get("error-rate", 0)),
                "inserted": info.get("items"),
                "bytes": info.get("memory"),
                "layers": info.get("layers"),
                "let_through": self._let_through,
            }
        )
        # The server counts the new pages of each part of the window, so that a part that had too
        # many is noticed as long as it is there.
        share = int(info.get("generation-capacity", 0))
        if self._plan.window is not None and 0 < share <= int(info.get("fullest-generation", 0)):
            self._raise_alarm(
                "it takes ever more new pages for seen ones, which are lost: a part of the window"
                f" has its share of {share}"
            )

    def _raise_alarm(self, then: str) -> None:
        words = (
            "Duplicate filter on the server is full (%s, planned for %d). From here on %s: begin"
            f" anew with another {PREFIX}KEY and a larger {PREFIX}CAPACITY"
        )
        self._teller.alarm(words, self._where(), self._plan.capacity, then)

    def close(self) -> None:
        """Tells the stats; the filter stays for the others."""
        self._tell()
        self._client.close()


def _agreed(plan: Plan, jobdir: JobDir) -> Journal:
    """The journal of a JOBDIR, if what it has seen is on a server too."""
    journal, stock = Journal(jobdir.folder), jobdir.path / "requests.seen"
    if journal.made is not None:
        plan.agree(journal.made)
    elif stock.exists():
        raise petal.IncompatibleError(
            f"{stock}: what Scrapy's own filter had seen cannot be taken to a server; take another"
            " JOBDIR, or remove the file to fetch all of it again"
        )
    return journal


def _reason(error: Exception) -> str:
    """What the server says is wrong: all of it, for that of a damaged filter quotes other errors."""
    return str(error).removeprefix("ERR ")


def _text(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value
