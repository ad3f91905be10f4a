"""The names that arguments accept, for type checkers; the extension module checks them."""

from typing import Literal, TypeAlias

#: Types of filters that are built from lines.
FilterType: TypeAlias = Literal[
    "bloom",
    "classic",
    "counting",
    "counting-classic",
    "quotient",
    "vector-quotient",
    "scalable",
    "windowed",
    "static",
    "static-fuse",
    "cascade",
]

#: Formats of other programs' filters.
Format: TypeAlias = Literal[
    "parquet",
    "guava",
    "guava-32",
    "spark-v1",
    "spark-v2",
    "redisbloom",
    "dcso",
    "poppy",
    "go-bloom",
    "squid-digest",
    "datasketches",
    "rbloom",
    "hadoop-jenkins",
    "hadoop-murmur",
    "pybloom",
    "filter-cascade",
]

#: How other programs encode their keys.
KeyType: TypeAlias = Literal[
    "text",
    "utf16",
    "int64",
    "int32",
    "uint64",
    "uint32",
    "text-crlf",
    "python-bytes",
    "rust-str",
    "rust-slice",
]
