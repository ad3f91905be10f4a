"""Connections to the server that a filter is on.

A command must not be sent twice: if the answer to the first one was lost, the server would answer
"seen" to the second one, and the page would be lost. So redis-py's retries are off; `server` repeats
what only reads.
"""

from typing import Any

from scrapy.settings import BaseSettings

# Seconds to wait for an answer, unless the settings have `socket_timeout`.
TIMEOUT = 5.0


def _no_retries() -> Any:
    # Imported here, because a spider without a server does not need redis-py.
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    return Retry(NoBackoff(), 0)


def connect(url: str) -> Any:
    """Returns a client for a URL of redis-py. It connects with its first command.

    Raises `ValueError` if redis-py cannot read the URL.
    """
    import redis

    return redis.Redis.from_url(
        url,
        socket_timeout=TIMEOUT,
        # `None` uses `socket_timeout`, also one in the URL.
        socket_connect_timeout=None,
        retry=_no_retries(),
    )


def connect_like_scrapy_redis(settings: BaseSettings) -> Any:
    """Returns a client for the server of scrapy-redis' queue: `REDIS_URL`, `REDIS_HOST` and so on.

    With `REDIS_SENTINELS`, the client asks them for the address of the primary when it connects.
    Raises `ValueError` if an address has no port.
    """
    own = {"socket_timeout": TIMEOUT, "socket_connect_timeout": TIMEOUT}
    if sentinels := settings.getlist("REDIS_SENTINELS"):
        return _connect_by_sentinels(sentinels, own, settings)
    from scrapy_redis.connection import get_redis_from_settings

    # Its settings are read-only.
    changed = BaseSettings({name: settings[name] for name in settings if name.startswith("REDIS_")})
    changed.set("REDIS_PARAMS", own | settings.getdict("REDIS_PARAMS") | {"retry": _no_retries()})
    return get_redis_from_settings(changed)


def _connect_by_sentinels(sentinels: list[str], own: dict[str, float], settings: BaseSettings) -> Any:
    import redis.sentinel

    addresses = []
    for address in sentinels:
        host, _, port = str(address).strip().rpartition(":")
        if not host or not port.isdigit():
            raise ValueError(f"REDIS_SENTINELS: expected host:port, found {address!r}")
        addresses.append((host, int(port)))
    options = own | settings.getdict("REDIS_PARAMS") | {"retry": _no_retries()}
    options.setdefault("db", settings.getint("REDIS_DB"))
    # Its functions have no types.
    connect: Any = redis.sentinel.Sentinel
    found = connect(addresses, sentinel_kwargs=own | {"retry": _no_retries()}, **options)
    return found.master_for(settings.get("REDIS_SENTINEL_SERVICE") or "mymaster")


def single_connection(client: Any) -> Any:
    """Returns a client with one connection to the server of `client`.

    redis-py replaces a broken connection of a pool without an error, but not this one. Raises
    `redis.RedisError` if the server does not answer.
    """
    import redis

    return redis.Redis(connection_pool=client.connection_pool, single_connection_client=True)


def location(client: Any) -> str:
    """The server of a client, without the password."""
    options = client.connection_pool.connection_kwargs
    if service := getattr(client.connection_pool, "service_name", None):
        return f"{service} of REDIS_SENTINELS"
    server = options.get("path")
    return server or f"{options.get('host', 'localhost')}:{options.get('port', 6379)}"
