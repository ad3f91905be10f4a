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


def _connect_by_sentinels(sentinels: list[Any], own: dict[str, Any], settings: BaseSettings) -> Any:
    """Returns a client that asks sentinels for the primary.

    `SENTINEL_KWARGS` are arguments of redis-py for the sentinels, such as `username` and `password`;
    `REDIS_PARAMS` and `REDIS_SENTINEL_PARAMS` are for the primary. The second may have `service_name`,
    as in scrapy-redis-sentinel.
    """
    import redis.sentinel

    no_retries = {"retry": _no_retries()}
    options = own | _options(settings, "REDIS_PARAMS") | _options(settings, "REDIS_SENTINEL_PARAMS") | no_retries
    options.setdefault("db", settings.getint("REDIS_DB"))
    service = options.pop("service_name", None)
    sentinel_options = own | _options(settings, "SENTINEL_KWARGS") | no_retries
    addresses = [_address(one, number) for number, one in enumerate(sentinels)]
    # Its functions have no types.
    connect: Any = redis.sentinel.Sentinel
    try:
        manager = connect(addresses, sentinel_kwargs=sentinel_options, **options)
    except TypeError as error:
        raise ValueError(f"SENTINEL_KWARGS: redis-py refuses an argument: {error}") from None
    _explain_failures(manager)
    return manager.master_for(settings.get("REDIS_SENTINEL_SERVICE") or service or "mymaster")


def _options(settings: BaseSettings, name: str) -> dict[str, Any]:
    """Returns a setting that is a dict; errors do not show it, because it may have a password."""
    try:
        return settings.getdict(name)
    except (TypeError, ValueError):
        raise ValueError(f"{name}: expected a dict, or a text that is one in JSON") from None


def _address(given: Any, number: int) -> tuple[str, int]:
    """Returns host and port of a sentinel: a text with a colon, or a pair.

    Errors do not show it, because it may have a password.
    """
    pair = given if isinstance(given, (list, tuple)) else str(given).strip().rpartition(":")[::2]
    host, port = map(str, pair) if len(pair) == 2 else ("", "")
    name = f"REDIS_SENTINELS[{number}]"
    if "@" in host + port or "/" in host + port:
        raise ValueError(f"{name}: expected host:port without a URL; user and password belong in SENTINEL_KWARGS")
    if not host or not (port.isascii() and port.isdecimal() and 1 <= int(port) <= 65535):
        raise ValueError(f"{name}: expected host:port or a pair of them")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _explain_failures(manager: Any) -> None:
    """Replaces the error of `discover_master` by one line with each sentinel's reason."""
    import redis
    from redis.sentinel import MasterNotFoundError

    discover = manager.discover_master
    reasons: dict[str, str] = {}
    refused: set[str] = set()

    def record(sentinel: Any) -> None:
        ask, place = sentinel.sentinel_masters, location(sentinel)

        def recorded() -> Any:
            try:
                primaries = ask()
            except redis.RedisError as error:
                reasons[place] = str(error)
                if isinstance(error, (redis.AuthenticationError, redis.exceptions.NoPermissionError)):
                    refused.add(place)
                # After other errors redis-py would not query the next sentinel.
                raise redis.ConnectionError(reasons[place]) from error
            refused.discard(place)
            reasons[place] = f"knows {', '.join(sorted(primaries)) or 'none'}"
            return primaries

        sentinel.sentinel_masters = recorded

    def explained(service: str) -> Any:
        try:
            return discover(service)
        except MasterNotFoundError:
            listed = "; ".join(f"{place}: {reason}" for place, reason in reasons.items())
            text = f"REDIS_SENTINELS: no primary {service!r} that is up: {listed}"
            if refused:
                text += "; set username and password of the sentinels in SENTINEL_KWARGS"
            raise MasterNotFoundError(text) from None

    for sentinel in manager.sentinels:
        record(sentinel)
    manager.discover_master = explained


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
