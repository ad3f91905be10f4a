"""The queue of `Scheduler` on a Redis or Valkey server, from which a killed process loses nothing.

| key | contents |
|---|---|
| `QUEUE` | a sorted set of pickled requests by priority, as in scrapy-redis |
| `QUEUE:working` | a hash of the requests that processes work on, with process and priority |
| `QUEUE:workers` | a sorted set of the processes, with the times at which their leases end |
| `QUEUE:not_restored` | a set of requests that could not be read |

Each change is one script, so the server makes it completely or not at all:

- A request is added to the filter and to the queue at once. Sending that again does no harm.
- A request that is taken is in `working` until its process has finished it, after all requests of
  its callback were added.
- If the lease of a process ends, another process returns its requests to the queue.

So at every moment each request that is in the filter is finished, or in the queue, or in `working`. A
replica, or a log file that was cut off, has the state of an earlier moment, in which the same holds.
A process notices by an error of its connection that the state may have gone back. It then returns the
requests that it works on to the queue when it has finished them: what they added may be gone.

While the server does not answer, changes are kept in memory in their order, and nothing is taken.

Cost: one round trip to add, to take and to finish a request. The crawl waits during a round trip.
"""

import logging
import time
from collections import deque
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import petal
from petal.scrapy.reporter import Reporter

# Seconds until a server that failed is tried again.
PAUSE = 1.0

# All scripts have the same keys and begin with the same arguments.
_HEAD = """
local queue, working, workers, parked, filter = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local worker, lease = ARGV[1], ARGV[2]
local function extend_lease()
    local time = redis.call('TIME')
    local now = time[1] * 1000 + math.floor(time[2] / 1000)
    redis.call('ZADD', workers, now + lease, worker)
    return now
end
local function remove_own(data)
    local owner = redis.call('HGET', working, data)
    if owner and string.match(owner, '^%S+') == worker then redis.call('HDEL', working, data) end
end
"""
_ADD = """
if ARGV[5] ~= '' then
    local reply = redis.pcall('BF.INSERT', filter, 'NOCREATE', 'ITEMS', ARGV[5])
    if reply.err then return reply end
    if type(reply[1]) == 'table' then return reply[1] end
    if reply[1] == 0 then return 0 end
end
redis.call('ZADD', queue, ARGV[4], ARGV[3])
return 1
"""
_TAKE = """
extend_lease()
local found = redis.call('ZRANGE', queue, 0, 0, 'WITHSCORES')
if #found > 0 then
    redis.call('ZREM', queue, found[1])
    redis.call('HSET', working, found[1], worker .. ' ' .. found[2])
end
return found
"""
_FINISH = "remove_own(ARGV[3]) return 1"
_RETURN = "remove_own(ARGV[3]) redis.call('ZADD', queue, ARGV[4], ARGV[3]) return 1"
_PARK = "remove_own(ARGV[3]) redis.call('SADD', parked, ARGV[3]) return 1"
_CHECK = """
local now = extend_lease()
local entries, returned = redis.call('HGETALL', working), 0
for at = 1, #entries, 2 do
    local owner, score = string.match(entries[at + 1], '^(%S+) (%S+)$')
    local is_lost = tonumber(redis.call('ZSCORE', workers, owner) or 0) < now
    if owner == worker then is_lost = ARGV[3] == 'idle' end
    if is_lost then
        redis.call('HDEL', working, entries[at])
        redis.call('ZADD', queue, score, entries[at])
        returned = returned + 1
    end
end
redis.call('ZREMRANGEBYSCORE', workers, '-inf', now - 1)
return {redis.call('ZCARD', queue), redis.call('HLEN', working), returned}
"""
_LEAVE = "redis.call('ZREM', workers, worker) return 1"


class FleetQueue:
    """The queue as one process sees it."""

    def __init__(
        self,
        connect: Callable[[], Any],
        names: tuple[str, str],
        lease: float,
        create_filter: Callable[[], None],
        reporter: Reporter,
    ) -> None:
        """Uses the keys `names` of the queue and of the filter, with a lease in seconds.

        `connect` must return a client with one connection, so that no break of it is missed.
        Raises the errors of `connect`.
        """
        # Imported here, because a spider without a server does not need redis-py.
        import redis

        self._redis_error = redis.RedisError
        self._connect = connect
        self._client = connect()
        queue, filter_key = names
        self._keys = [queue, f"{queue}:working", f"{queue}:workers", f"{queue}:not_restored", filter_key]
        self._create_filter = create_filter
        self._reporter = reporter
        self._arguments: list[str | int] = [uuid4().hex, int(lease * 1000)]
        self._scripts: dict[str, Any] = {}
        # Changes that the server has not confirmed: a script and its arguments.
        self._changes: deque[tuple[str, list[Any]]] = deque()
        # The scores of requests in progress, and those whose own requests may be lost.
        self._taken: dict[bytes, bytes] = {}
        self._doubtful: set[bytes] = set()
        self._is_down = False
        self._retry_at = 0.0

    # ---- Requests --------------------------------------------------------------------------------

    def add(self, fingerprint: bytes | None, score: float, data: bytes) -> bool:
        """Adds a request. Returns false if the filter has its fingerprint.

        Returns true while the server does not answer. Without a fingerprint it is always added.
        """
        self._changes.append((_ADD, [data, score, fingerprint or b""]))
        return self._send_changes() != 0

    def take(self) -> bytes | None:
        """Takes a request; `None` if there is none, or if the server does not answer."""
        if self._send_changes() is None:
            return None
        found = self._run(_TAKE, [])
        if not found:
            return None
        data, score = found
        self._taken[data] = score
        return bytes(data)

    def finish(self, data: bytes) -> None:
        """Removes a request that was taken, or returns it to the queue if it is doubtful."""
        score = self._taken.pop(data, b"0")
        is_doubtful = data in self._doubtful
        self._doubtful.discard(data)
        self._changes.append((_RETURN if is_doubtful else _FINISH, [data, score]))
        self._send_changes()

    def park(self, data: bytes) -> None:
        """Moves a request that cannot be read to `not_restored`."""
        self._taken.pop(data, None)
        self._doubtful.discard(data)
        self._changes.append((_PARK, [data]))
        self._send_changes()

    def is_finished(self) -> bool:
        """Returns whether no process has a request. Must be called only if this process has none."""
        if self._send_changes() is None:
            return False
        counts = self._check("idle")
        return counts is not None and counts[:2] == [0, 0]

    def extend_lease(self) -> None:
        """Extends the lease, and returns requests of processes whose leases have ended."""
        if self._send_changes() is not None:
            self._check("")

    def _check(self, state: str) -> Any:
        counts = self._run(_CHECK, [state])
        if counts is not None and counts[2]:
            self._reporter.count("returned", counts[2])
            message = "%d requests of processes that were killed, or of a broken connection, are fetched again"
            self._reporter.log(logging.WARNING, message, counts[2])
        return counts

    def clear(self) -> None:
        """Deletes the queue. Raises `redis.RedisError` if the server does not answer."""
        self._client.delete(*self._keys[:4])

    def close(self) -> None:
        """Returns unfinished requests, and ends the lease."""
        self._retry_at = 0.0
        if self._send_changes() is not None and self._check("idle") is not None:
            self._run(_LEAVE, [])
        if self._client is not None:
            self._client.close()

    # ---- The server ------------------------------------------------------------------------------

    def _send_changes(self) -> int | None:
        """Sends all changes. Returns the last reply, or `None` if the server does not answer."""
        reply = 1
        while self._changes:
            answer = self._run(*self._changes[0])
            if answer is None:
                return None
            reply = answer
            self._changes.popleft()
        return reply

    def _run(self, script: str, more: list[Any]) -> Any:
        """Runs a script. Returns `None` if the server does not answer."""
        if time.monotonic() < self._retry_at:
            return None
        try:
            reply = self._call(script, [*self._arguments, *more])
        except (self._redis_error, petal.IncompatibleError) as error:
            self._report_down(error)
            return None
        if self._is_down:
            self._is_down = False
            self._reporter.log(logging.INFO, "Scheduler: the server answers again")
        return reply

    def _call(self, script: str, arguments: list[Any]) -> Any:
        if self._client is None:
            self._client = self._connect()
        if script not in self._scripts:
            self._scripts[script] = self._client.register_script(_HEAD + script)
        call = self._scripts[script]
        try:
            return call(keys=self._keys, args=arguments)
        except self._redis_error as error:
            if str(error).removeprefix("ERR ") != "not found":
                raise
        self._create_filter()
        return call(keys=self._keys, args=arguments)

    def _report_down(self, error: Exception) -> None:
        self._retry_at = time.monotonic() + PAUSE
        # A new connection asks for the address of the primary again.
        self._scripts.clear()
        if self._client is not None:
            self._client.close()
        self._client = None
        # Changes that the server had confirmed may be gone.
        self._doubtful.update(self._taken)
        for at, (script, arguments) in enumerate(self._changes):
            if script == _FINISH:
                self._changes[at] = (_RETURN, arguments)
        self._reporter.count("server_errors")
        if not self._is_down:
            self._is_down = True
            message = (
                "Scheduler: the server does not answer (%s); the spider waits for it, and then fetches"
                " the pages that it was working on again"
            )
            self._reporter.log(logging.ERROR, message, error)
