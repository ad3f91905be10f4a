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
    """Returns a client for the server of scrapy-redis' queue: `REDIS_URL`, `REDIS_HOST` and so on."""
    from scrapy_redis.connection import get_redis_from_settings

    own = {"socket_timeout": TIMEOUT, "socket_connect_timeout": TIMEOUT}
    # Its settings are read-only.
    changed = BaseSettings({name: settings[name] for name in settings if name.startswith("REDIS_")})
    changed.set("REDIS_PARAMS", own | settings.getdict("REDIS_PARAMS") | {"retry": _no_retries()})
    return get_redis_from_settings(changed)


def location(client: Any) -> str:
    """The server of a client, without the password."""
    options = client.connection_pool.connection_kwargs
    server = options.get("path")
    return server or f"{options.get('host', 'localhost')}:{options.get('port', 6379)}"
