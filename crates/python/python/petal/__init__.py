"""Bloom filters and related filters, and exact set operations on files larger than memory.

    >>> import petal
    >>> seen = petal.BloomFilter(1_000_000, fpr=0.01)
    >>> seen.add("https://example.com/")
    True
    >>> "https://example.com/" in seen, "https://example.org/" in seen
    (True, False)
"""

from pathlib import Path as _Path

from petal import _other_package
from petal._decorators import seen_before
from petal._line_filters import build, check, merge, seen
from petal._plans import explain, plan
from petal._set_operations import (
    CountReport,
    Phase,
    Report,
    common,
    count,
    dedup,
    diff,
    symdiff,
    transform_key,
)
from petal._petal import (
    BloomFilter,
    ClassicBloomFilter,
    ClassicCountingBloomFilter,
    CountingBloomFilter,
    Filter,
    FilterCascade,
    ForeignFilter,
    FormatError,
    FullError,
    IncompatibleError,
    InputError,
    Mask,
    MemoryLimitError,
    MissingFileError,
    PetalError,
    QuotientFilter,
    ScalableBloomFilter,
    StaticFilter,
    UnsupportedError,
    VectorQuotientFilter,
    WindowedBloomFilter,
    __version__,
    from_bytes,
    load,
    open,
)

__all__ = [
    "BloomFilter",
    "ClassicBloomFilter",
    "ClassicCountingBloomFilter",
    "CountReport",
    "CountingBloomFilter",
    "Filter",
    "FilterCascade",
    "ForeignFilter",
    "FormatError",
    "FullError",
    "IncompatibleError",
    "InputError",
    "Mask",
    "MemoryLimitError",
    "MissingFileError",
    "PetalError",
    "Phase",
    "QuotientFilter",
    "Report",
    "ScalableBloomFilter",
    "StaticFilter",
    "UnsupportedError",
    "VectorQuotientFilter",
    "WindowedBloomFilter",
    "__version__",
    "build",
    "check",
    "common",
    "count",
    "dedup",
    "diff",
    "explain",
    "from_bytes",
    "load",
    "merge",
    "open",
    "plan",
    "seen",
    "seen_before",
    "symdiff",
    "transform_key",
]

_other_package.warn_if_installed(_Path(__file__).parent)
