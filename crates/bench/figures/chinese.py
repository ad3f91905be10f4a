"""Plots of the Chinese pages: the same numbers with other words."""

from __future__ import annotations

import re
from collections.abc import Callable

from .rows import Plot


def lines_in_wan(found: re.Match) -> str:
    """Returns the description of the files, which counts lines in units of 10,000."""
    million, width, common, rounds, slow = found.groups()
    rest = "，慢的程序 1 轮" if slow else ""
    return (
        f"越短越好，结果都是精确的。两个文件各 {float(million) * 100:g} 万行，每行 {width} 字节，{common} % 相同；双核，"
        f"{rounds} 轮取中位数{rest}。"
    )


PHRASES: list[tuple[str, str | Callable[[re.Match], str]]] = [
    (r"Common lines of two files: time and memory", "两个文件的共同行：耗时与内存"),
    (
        r"Less is better\. Exact results\. Two files of (.+) million lines of (\d+) bytes, (\d+) % in common, two cores, "
        r"medians of (\d+) rounds(, of slow programs 1)?\.",
        lines_in_wan,
    ),
    (r"time", "耗时"),
    (r"peak memory", "内存峰值"),
    (r"wc -l, reading alone", "wc -l，只读一遍"),
    (r"(DuckDB), memory limit (\w+)", r"\1，内存上限 \2"),
    (r"(ClickHouse|polars), in memory", r"\1，全在内存"),
    (r"(ClickHouse|polars), on disk above (\w+)", r"\1，超过 \2 写磁盘"),
    (r"zet \(all lines in memory\)", "zet（全在内存）"),
    (r"(GNU sort -S \w+), and comm", r"\1 加 comm"),
    (r"out of memory in (\d+) of (\d+) rounds", r"\2 轮中 \1 轮内存不足"),
    (r"Remembering a million URLs: space and time", "记住一百万个 URL：空间与时间"),
    (
        r"Less is better\. Log scales\. Bytes in memory, of databases on disk\. .*",
        "越小越好，对数坐标。字节数是内存，数据库是磁盘。误判率 1 % 的过滤器不可能小于下限。",
    ),
    (r"bytes per URL", "每个 URL 的字节数"),
    (r"ns per query", "查询的纳秒数"),
    (r"limit", "下限"),
    (r"PostgreSQL, ([\d,]+) rows? a statement", r"PostgreSQL，一条语句 \1 行"),
    (r"SQLite, ([\d,]+) rows? a transaction", r"SQLite，一个事务 \1 行"),
    (r"set of (.+) digests", r"\1 的集合"),
    (r"hash table of 8-byte fingerprints", "8 字节指纹的哈希表"),
    (r"bitmap, one hash", "位图，一个哈希函数"),
    (r"classic Bloom filter, k = 7", "经典布隆过滤器，k = 7"),
    (r"petal's default", "petal 的默认类型"),
    (r"petal's default, in batches", "petal 的默认类型，成批"),
    (r"petal's static filter", "petal 的静态过滤器"),
    (r"petal common|HashSet<String>|", r"\g<0>"),
]


def chinese(text: str) -> str:
    """Returns a text of a plot in Chinese."""
    for phrase, words in PHRASES:
        if found := re.fullmatch(phrase, text):
            return words(found) if callable(words) else found.expand(words)
    raise ValueError(f"no Chinese for a text of a plot: {text}")


def in_chinese(plot: Plot) -> Plot:
    """Returns a plot of rows in Chinese."""
    columns = []
    for column in plot["columns"]:
        limit = {"limit": (column["limit"][0], chinese(column["limit"][1]))} if "limit" in column else {}
        columns.append(column | {"title": chinese(column["title"])} | limit)
    rows = [(chinese(name), values, chinese(trouble), ours) for name, values, trouble, ours in plot["rows"]]
    texts = {"title": chinese(plot["title"]), "subtitle": chinese(plot["subtitle"])}
    return plot | texts | {"columns": columns, "rows": rows, "marks": ("（", "）。", "：", "；", "、")}
