"""Keys of requests whose URLs are changed before they are compared, or that bring a key of their own.

For changed URLs, the key is a hash of the method, the changed URL and the body. Headers do not count, as in Scrapy's own
fingerprint. Cost: about a tenth of Scrapy's own fingerprint, for `url-surt` and a `strip-query`.
"""

import hashlib
from collections.abc import Callable

from scrapy import Request

from petal._petal import _transform_key

SIZE = 20
"""Bytes of a key, as of Scrapy's fingerprint."""


def fingerprinter(names: str) -> Callable[[Request], bytes]:
    """Returns the function that makes the key of a request. `names` are separated by commas.

    Raises `ValueError` if a name is unknown.
    """
    _transform_key(b"", names)

    def fingerprint(request: Request) -> bytes:
        key = hashlib.blake2b(digest_size=SIZE)
        url = _transform_key(request.url.encode(), names)
        for part in request.method.encode(), url, request.body:
            key.update(len(part).to_bytes(4, "little"))
            key.update(part)
        return key.digest()

    return fingerprint


KEY_IN_META = "petal_dupefilter_key"
"""The name in `Request.meta` of a key that replaces the fingerprint."""


def with_keys_in_meta(fingerprint: Callable[[Request], bytes]) -> Callable[[Request], bytes]:
    """Returns a function that prefers the key in `meta`: requests with equal keys are the same.

    A redirect inherits the key of its request, which was seen. So it is compared by the key
    together with its own fingerprint.

    The function raises `TypeError` if the key is neither `str` nor `bytes`.
    """

    def chosen(request: Request) -> bytes:
        key = request.meta.get(KEY_IN_META)
        if key is None:
            return fingerprint(request)
        if isinstance(key, str):
            key = key.encode()
        if not isinstance(key, bytes):
            raise TypeError(
                f"meta[{KEY_IN_META!r}]: expected str or bytes, found {key!r}: {request}"
            )
        # The purpose keeps these hashes apart from fingerprints.
        hash = hashlib.blake2b(key, digest_size=SIZE, person=b"petal key")
        if request.meta.get("redirect_times"):
            hash.update(b"\0" + fingerprint(request))
        return hash.digest()

    return chosen
