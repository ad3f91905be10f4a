"""A filter on a Redis or Valkey server with petal's module, shared by all spiders with its key.

`BF.INSERT` looks up and adds a fingerprint in one step: if several spiders find a page at once,
only one of them gets the answer "new". With `NOCREATE` the server does not create a deleted filter
with its own defaults; the spider creates it again, with the settings, and logs a warning. With a
window, `BF.EXISTS` looks up first and only a new request is added, because adding it again would
prolong its time in the window. If two spiders look up at once, `PETAL.SEEN` returns "new" to one
of them.

With pending requests, `BF.EXISTS` looks up first too. A request that the server does not have is
stored as an intent before the server is asked to add it. If the spider is killed in between, its
next run has the intent and fetches the page. The intent is withdrawn if another spider has added
the request in the meantime.

While the server does not answer, the spider continues with a filter of its own, in which only its
own requests since then are seen. No page is lost and each crawl ends, and each spider fetches a
page at most once more. With a window that filter is dropped after the time of the window. It is
also dropped when the filter on the server is created again.

A command is never sent twice. If the answer to the first one was lost, the server would answer
"seen" to the second one, and the page would be lost.

Cost: one round trip per request; two for a new request if there is a window or a JOBDIR; one more
for the stats after every `CHECK_INTERVAL` new requests. The crawl waits during a round trip.
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
from petal.scrapy.config import PREFIX, Config
from petal.scrapy.connection import location
from petal.scrapy.local import CHECK_INTERVAL
from petal.scrapy.pending import Intent, PendingRequests
from petal.scrapy.reporter import Reporter
from petal.scrapy.snapshot_log import JobDir, SnapshotLog

# Seconds until a server that failed is tried again; the pause doubles with each failure.
MIN_PAUSE, MAX_PAUSE = 1.0, 60.0
# Capacity of the filter that is used while the server does not answer; it grows.
FALLBACK_CAPACITY = 10_000
# Checks of a small window while one of its parts is filled, and the number of its parts.
CHECKS_PER_PART, PARTS = 16, 3
# Kinds of filters by the server's names of their types.
KINDS = {"scalable": "grow", "redisbloom": "grow", "bloom": "fixed", "windowed": "window"}


class ServerFilter:
    """The filter on a server. `seen(fingerprint, request)` looks up and adds a request.

    `key` is its key on the server of `client`.
    """

    def __init__(
        self,
        config: Config,
        reporter: Reporter,
        client: Any,
        pending: PendingRequests | None = None,
        jobdir: JobDir | None = None,
    ) -> None:
        """Creates the filter on the server of `client`, or joins an existing one.

        Raises `petal.IncompatibleError` if the existing filter is of another kind or the JOBDIR has
        a filter of its own, `redis.RedisError` if there is no server or it lacks petal's module.
        """
        # Imported here, because a spider without a server does not need redis-py.
        import redis

        self._config = config
        self._reporter = reporter
        self._pending = pending
        # Of the current request; `None` before it is stored.
        self._intent: Intent | None = None
        # Whether the queue of a stopped spider is kept.
        self._keeps_queue = jobdir is not None or config.shared_queue
        self._redis_error = redis.RedisError
        self._response_error = redis.ResponseError
        self.key = config.key.replace("{spider}", reporter.spider_name)
        if config.key_transform:
            # Spiders with different lists have different filters.
            self.key += f":{config.key_transform}"
        self.client = client
        self._command: Callable[..., Any] = self.client.execute_command
        # Whether this spider has deleted the filter.
        self._is_cleared = False
        # New requests of this spider while the server is down, and when they are dropped.
        self._fallback: petal.Filter | None = None
        self._fallback_ends = math.inf
        self._is_down = False
        self._retry_at = 0.0
        self._pause = MIN_PAUSE
        self._new_requests = 0
        # New requests between two checks; fewer in a small window, whose parts are soon full.
        self._check_interval = CHECK_INTERVAL
        if config.window is not None and config.capacity is not None:
            per_check = config.capacity // (CHECKS_PER_PART * PARTS)
            self._check_interval = max(1, min(CHECK_INTERVAL, per_check))
        snapshot_log = _checked_snapshot_log(config, jobdir) if jobdir is not None else None
        self._create_or_join()
        if snapshot_log is not None and snapshot_log.saved_settings is None:
            # There is no filter to save, only the fact that it is on a server.
            snapshot_log.create(config.to_saved(), lambda _: None)
            snapshot_log.close()

    # ---- Look-ups --------------------------------------------------------------------------------

    def seen(self, fingerprint: bytes, request: Request) -> bool:
        """Returns whether any spider has had the request, and adds it."""
        self._intent = None
        seen = self._lookup(fingerprint, request)
        if seen:
            if self._pending is not None and self._intent is Intent.ADDED:
                self._pending.withdraw(fingerprint)
            return True
        if self._pending is not None and self._intent in (None, Intent.ALREADY_PENDING):
            self._pending.add(fingerprint, request)
        self.count_new()
        return False

    def count_new(self) -> None:
        """Counts a new request; sets the stats from time to time."""
        self._new_requests += 1
        if self._new_requests % self._check_interval == 0:
            self._check()

    def _check(self) -> None:
        if self._pending is not None:
            self._pending.sync()
        if not self._is_down:
            self._report()

    def _lookup(self, fingerprint: bytes, request: Request) -> bool:
        if self._fallback is not None:
            if time.monotonic() >= self._fallback_ends:
                self._fallback = None
            elif fingerprint in self._fallback:
                return True
        if self._is_down and time.monotonic() < self._retry_at:
            return self._seen_locally(fingerprint)
        try:
            try:
                seen = self._seen_on_server(fingerprint, request)
            except self._response_error as error:
                if _reason(error) != "not found":
                    raise
                self.create_again()
                self._fallback = None
                seen = self._seen_on_server(fingerprint, request)
        except (self._redis_error, petal.IncompatibleError) as error:
            self._report_down(error)
            return self._seen_locally(fingerprint)
        if self._is_down:
            self._is_down = False
            self._pause = MIN_PAUSE
            self._reporter.log(logging.INFO, "Duplicate filter: the server answers again")
        return seen

    def _seen_on_server(self, fingerprint: bytes, request: Request) -> bool:
        if self._config.window is not None or self._pending is not None:
            if self._command("BF.EXISTS", self.key, fingerprint):
                return True
            if self._pending is not None and self._intent is None:
                self._intent = self._pending.add_intent(fingerprint, request)
        if self._config.window is None:
            (new,) = self._command("BF.INSERT", self.key, "NOCREATE", "ITEMS", fingerprint)
            if isinstance(new, Exception):
                if _reason(new) != "non scaling filter is full":
                    raise new
                self._raise_alarm(
                    "It accepts no more requests, so each spider filters only its own new ones"
                )
                return self._seen_locally(fingerprint)
            return not new
        return bool(self._command("PETAL.SEEN", self.key, fingerprint)[0])

    def _seen_locally(self, fingerprint: bytes) -> bool:
        if self._fallback is None:
            self._fallback = petal.ScalableBloomFilter(
                FALLBACK_CAPACITY, self._config.fpr, secret=os.urandom(16)
            )
            # All requests are dropped at once; those dropped too early are fetched once more.
            if self._config.window is not None:
                self._fallback_ends = time.monotonic() + self._config.window
        self._reporter.count("decided_locally")
        return not self._fallback.add(fingerprint)

    def create_again(self) -> None:
        """Creates a filter that was deleted. Logs a warning, unless this spider has deleted it.

        Raises the errors of `__init__`.
        """
        if not self._is_cleared:
            message = "Duplicate filter was deleted from the server (%s); it is created again"
            self._reporter.log(logging.WARNING, message, self._location())
        self._is_cleared = False
        self._create_or_join()

    def _report_down(self, error: Exception) -> None:
        self._reporter.count("server_errors")
        refused = isinstance(error, (self._response_error, petal.IncompatibleError))
        if refused:
            self._pause = MIN_PAUSE
        self._retry_at = time.monotonic() + self._pause
        # Longer each time, because the crawl waits for a server that is silent.
        self._pause = min(2 * self._pause, MAX_PAUSE)
        if not self._is_down:
            self._is_down = True
            message = (
                "Duplicate filter: the server %s (%s); until it answers, this spider filters only"
                " requests of its own, and may fetch pages that others have fetched"
            )
            problem = "refuses the request" if refused else "does not answer"
            self._reporter.log(logging.ERROR, message, problem, error)

    # ---- Create or join --------------------------------------------------------------------------

    def _create_or_join(self) -> None:
        """Creates the filter; if it exists, checks that it is compatible."""
        config = self._config
        # The server does not read exponents.
        fpr = format(Decimal(repr(config.fpr)), "f")
        options = ["NONSCALING"] if config.kind == "fixed" else []
        if config.window is not None:
            options = ["WINDOW", f"{config.window}s"]
        try:
            self._command("PETAL.RESERVE", self.key, fpr, config.capacity, *options)
        except self._response_error as error:
            if _reason(error).startswith("unknown command"):
                raise self._response_error(
                    f"{self._location()}: the server has not loaded petal's module; see"
                    " docs/guides/redis.md"
                ) from None
            if _reason(error) != "item exists":
                raise self._response_error(f"{self._location()}: {error}") from None
            self._join()
            return
        message = "Duplicate filter created on the server: %s, capacity %d, fpr %s"
        self._reporter.log(logging.INFO, message, self._location(), config.capacity, fpr)

    def _join(self) -> None:
        info = self._info()
        window = None
        # A type that is not listed, such as that of an unfinished import, keeps its name.
        kind = KINDS.get(info["type"], info["type"])
        if kind == "window":
            window = int(info.get("window-ms", 0)) // 1000
        if (kind, window) != (self._config.kind, self._config.window):
            raise petal.IncompatibleError(
                f"{self._location()}: the existing filter is of kind {kind}, window {window}; the"
                f" settings have {self._config.kind}, window {self._config.window}: restore the"
                f" {PREFIX}* settings, or use another {PREFIX}KEY"
            )
        if int(info.get("saturates", 0)):
            raise petal.IncompatibleError(
                f"{self._location()}: the existing filter saturates (SATURATE): it adds keys beyond"
                " its capacity, so that more and more new pages would be filtered by mistake; use"
                f" another {PREFIX}KEY"
            )
        wanted = (self._config.capacity, self._config.fpr)
        # The capacity of a filter that has grown is the sum of its layers.
        capacity = int(info["capacity"]) if int(info["layers"]) == 1 else wanted[0]
        if (capacity, float(info["target-fpr"])) != wanted:
            message = (
                "Duplicate filter on the server keeps its size: capacity %s, fpr %s; the settings"
                " have %s, %s"
            )
            found = (info["capacity"], info["target-fpr"])
            self._reporter.log(logging.WARNING, message, *found, *wanted)
        message = "Duplicate filter joined on the server: %s, %s requests, capacity %s, fpr %s"
        values = (info["items"], info["capacity"], info["target-fpr"])
        self._reporter.log(logging.INFO, message, self._location(), *values)
        if info["items"] and not self._keeps_queue:
            message = (
                "Duplicate filter on the server is not empty, and there is no JOBDIR: the pages"
                " that a stopped spider had queued and not fetched will never be fetched. Set"
                f" JOBDIR, or start over with another {PREFIX}KEY"
            )
            self._reporter.log(logging.WARNING, message)

    def _info(self) -> dict[str, Any]:
        """Returns the reply of `PETAL.INFO` as a dictionary."""
        reply = self._command("PETAL.INFO", self.key)
        pairs = reply.items() if isinstance(reply, dict) else zip(reply[::2], reply[1::2])
        return {_decode(name): _decode(value) for name, value in pairs}

    def _location(self) -> str:
        """The server and the key."""
        return f"{location(self.client)}, key {self.key}"

    # ---- Stats -----------------------------------------------------------------------------------

    def _report(self) -> None:
        """Sets the stats, and raises the alarm of a window.

        The alarm of a fixed filter is raised where it refuses a request. Fields may be missing,
        because another client may have replaced the filter.
        """
        try:
            info = self._info()
        except self._redis_error as error:
            # Another spider may have deleted the filter; the next request creates it again.
            if _reason(error) != "not found":
                self._report_down(error)
            return
        self._reporter.set_stats(
            {
                "kind": self._config.kind,
                "capacity": info.get("capacity"),
                "target_fpr": float(info.get("target-fpr", 0)),
                "inserted": info.get("items"),
                "bytes": info.get("memory"),
                "layers": info.get("layers"),
                "new_requests": self._new_requests,
            }
        )
        # The server keeps the largest count of all parts of the window, so an overfull part is
        # noticed until its end.
        share = int(info.get("generation-capacity", 0))
        if self._config.window is not None and 0 < share <= int(info.get("fullest-generation", 0)):
            self._raise_alarm(
                "More and more new requests will be filtered by mistake, because a part of the"
                f" window has its share of {share}"
            )

    def _raise_alarm(self, consequence: str) -> None:
        message = (
            "Duplicate filter on the server is full (%s, capacity %d). %s: start over with another"
            f" {PREFIX}KEY and a larger {PREFIX}CAPACITY"
        )
        self._reporter.alarm(message, self._location(), self._config.capacity, consequence)

    def close(self) -> None:
        """Sets the stats. The filter stays on the server."""
        if not self._is_cleared:
            self._report()
        self.client.close()

    def clear(self) -> None:
        """Deletes the filter for all spiders. The next request creates it again.

        Raises `redis.RedisError` if the server does not answer.
        """
        self._report()
        self._command("DEL", self.key)
        self._fallback = None
        self._is_cleared = True


def _checked_snapshot_log(config: Config, jobdir: JobDir) -> SnapshotLog:
    """Returns the snapshot log of a JOBDIR whose filter is on a server."""
    snapshot_log, requests_seen = SnapshotLog(jobdir.folder), jobdir.path / "requests.seen"
    if snapshot_log.saved_settings is not None:
        config.check_compatible(snapshot_log.saved_settings)
    elif requests_seen.exists():
        raise petal.IncompatibleError(
            f"{requests_seen}: the fingerprints of Scrapy's own filter cannot be copied to a"
            " server; use another JOBDIR, or remove the file to fetch all pages again"
        )
    return snapshot_log


def _reason(error: Exception) -> str:
    """The whole text of a server's error. It is compared as a whole, because the error of a damaged
    filter quotes other errors."""
    return str(error).removeprefix("ERR ")


def _decode(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value
