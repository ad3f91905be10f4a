"""`cargo x figures` on invented rows, and that the docs have the tables and plots of the newest rows."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from figures import __main__ as main
from figures import chinese, draw, filters, lab, line_files, rows

FAMILY = rows.Results(Path(__file__).with_name("fixtures") / "invented-family.csv")
HEADER = (
    "suite,n,filter,target_rate,bits_per_key,measured_rate,absent_keys,keys,form,kernel,operation,threads,ns_median,"
    "ns_by_round"
)


def results(folder: Path, *lines: str) -> rows.Results:
    """Reads these lines below the header."""
    file = folder / "rows.csv"
    file.write_text("\n".join(["# a note", HEADER, *lines]) + "\n")
    return rows.Results(file)


def target(of: rows.Results, work: str, wanted: str) -> filters.Target:
    """Returns the only target with this work and this text."""
    (found,) = (one for one in filters.targets(of) if one.work.startswith(work) and wanted in one.wanted)
    return found


def line(table: str, begin: str) -> str:
    """Returns the only line that begins like this."""
    (found,) = (line for line in table.splitlines() if line.startswith(begin))
    return found


def test_docs_have_the_newest_rows():
    sources = {ending: main.newest(ending) for ending in main.BENCHMARKS}
    assert main.update(sources, check=True) == []


def test_changed_rows_change_page_and_plot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    source = main.newest("-lab")
    pages, plots = ["docs/uses/lab.md", "docs/zh/uses/lab.md"], ["docs/uses/plots/lab.svg", "docs/zh/plots/lab.svg"]
    for name in pages + plots:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((rows.ROOT / name).read_bytes())
    copy = tmp_path / "results/machine" / source.name
    copy.parent.mkdir(parents=True)
    copy.write_text(
        source.read_text().replace("set of MD5 digests,1000000,query,512", "set of MD5 digests,1000000,query,600")
    )
    monkeypatch.setattr(rows, "ROOT", tmp_path)
    assert main.newest("-lab") == copy
    old = [(tmp_path / name).read_text() for name in pages + plots]
    assert main.update({"-lab": copy}, check=True) == pages + plots
    assert [(tmp_path / name).read_text() for name in pages + plots] == old


def test_invalid_rows_are_errors(tmp_path: Path):
    row = "own,1000,petal 1 %,0.01,9.9,0.01,10000,hash,batch,avx2,absent,1,2,2;2"
    for wrong, expected in [
        (row + ",1", "line 4: the number of fields"),
        (row.replace("1000,", "many,", 1), "many"),
        (row.replace("2;2", "2;0"), "not times: 2;0"),
    ]:
        with pytest.raises(ValueError, match=expected):
            results(tmp_path, row, wrong)


def test_ratios_are_medians_of_paired_ratios(tmp_path: Path):
    # Another process slows down two of three rounds for both.
    of = results(
        tmp_path,
        "rivals,1000,a,,,,,u64,single,-,absent,1,40,4;40;42",
        "rivals,1000,b,,,,,u64,single,-,absent,1,14,2;20;14",
        "own,1000,c,,,,,u64,single,-,absent,1,14,2;20;14",
        "rivals,1000,d,,,,,u64,single,-,absent,1,14,2;20",
    )
    ratio = [of.ratio({"filter": "a"}, {"filter": name}) for name in "bcd"]
    assert ratio == [2, None, None], "of other suites, and with other rounds, there is no ratio"


def test_target_names_the_parts_that_decide(tmp_path: Path):
    ours = "rivals,100000,petal 1 %,0.01,9.93,0.01,10000000,hash,batch,avx2"
    rival = "rivals,100000,sbbf-rs-safe,0.01,10.5,0.01,10000000,hash,single,-"

    def found(insert: str) -> filters.Target:
        lines = [f"{ours},insert,1,{insert},{insert};{insert}", f"{rival},insert,1,4,4;4"]
        lines += [f"{ours},absent,1,3,3;3", f"{rival},absent,1,4,4;4"]
        return target(results(tmp_path, *lines), "1 %, n = 10⁵, mixed hashes, batch", "sbbf")

    assert (found("3.2").verdict(), found("3.2").measured()) == ("not met: insert", "insert: 0.800, absent: 0.750")
    # A value equal to the bound meets it; there is no row for present keys.
    assert found("3").verdict() == "not in the CSV: present"


def test_builds_on_two_threads_are_compared_with_one(tmp_path: Path):
    def row(n: int, keys: str, threads: int, rounds: str) -> str:
        return f"own,{n},petal 1 %,0.01,9.93,,,{keys},batch,avx2,build,{threads},4,{rounds}"

    lines = [row(10**7, "hash", 1, "8;9;12"), row(10**7, "hash", 2, "5;5;7")]
    lines += [row(10**7, "u64", 1, "8;9;12"), row(10**7, "u64", 2, "4;4;6")]
    # There is no target below 4 MiB.
    lines += [row(10**6, "hash", 1, "8;9;12"), row(10**6, "hash", 2, "8;9;12")]
    build = target(results(tmp_path, *lines), "build on two threads", "1.85")
    assert build.measured() == "hash, n = 10⁷: 1.714, u64, n = 10⁷: 2.00"
    assert build.verdict() == "not met: hash, n = 10⁷"


def test_random_reads_are_those_of_the_best_distance(tmp_path: Path):
    of = results(
        tmp_path,
        "rivals,400000000,petal 1 %,0.01,10.1,,,hash,batch,avx2,absent,1,3,3;3",
        "rivals,400000000,petal 1 %,0.01,10.1,,,hash,batch,avx2,present,1,3,3;3",
        'rivals,400000000,"random line reads, 16 ahead",,10.1,,,hash,batch,,absent,1,4,4;4',
        'rivals,400000000,"random line reads, 32 ahead",,10.1,,,hash,batch,,absent,1,2,2;2',
    )
    assert of.best_reads(400_000_000) == "random line reads, 32 ahead"
    reads = target(of, "1 %, n = 4·10⁸", rows.RANDOM_READS)
    assert (reads.measured(), reads.verdict()) == ("absent: 1.500", "not met: absent")


def test_measured_rate_is_within_the_upper_bound(tmp_path: Path):
    # The exact binomial bound of 10⁷ tries at 1 % is 100,974.
    assert abs(filters.upper_bound(0.01, 10**7) * 10**7 - 100_974) < 5
    row = "rivals,100000,petal 1 %,0.01,9.93,RATE,10000000,hash,batch,avx2,absent,1,2,2"
    for rate, verdict in [("0.009", "met"), ("0.0101", "met"), ("0.010101", "not met")]:
        measured = target(
            results(tmp_path, row.replace("RATE", rate)), "1 %, n = 10⁵, measured rate", "at most 1.010 %"
        )
        assert measured.verdict() == verdict
    assert measured.measured() == "1.0101 %"


def test_space_is_that_of_the_smallest_row_with_the_target_rate():
    table = filters.space_table(FAMILY)
    assert line(table, "| xorf fuse").endswith("| 9.05 | 0.3900 % | 18.10 | 0.001500 % | 18.10 | 0.001500 % |")
    # A rate above the target is bold; there are no rows for lower rates.
    assert line(table, "| growable-bloom-filter grown").endswith("| 13.20 | **3.700 %** | | | | |")
    # Its target is 3.1 %.
    assert line(table, "| cuckoofilter full").endswith("| 8.40 | 3.000 % | | | | |")


def test_times_are_those_of_the_first_rate():
    table = filters.speed_table(FAMILY)
    assert line(table, "| petal bloom | 10.10 | 2").endswith("| 2.00 (4.00) | 2.00 (4.00) | 2.00 (12.0) |  |")
    assert line(table, "| petal bloom | 10.10 | 1").endswith("| 10.0 |  |  |  |")
    assert line(table, "| petal static").endswith("| 6.90 | 80.0 | 10.0 |  |  |")


def test_short_table_has_batches_at_the_largest_size():
    table = filters.short_table(FAMILY)
    assert line(table, "| petal Bloom") == "| petal Bloom (default) | 10.10 | 10.0 |  |  |"
    assert line(table, "| fastbloom") == "| fastbloom | 9.60 | 90.0 |  |  |"
    # There are no rows of this size.
    assert "qfilter" not in table


def test_ahead_is_decided_by_paired_ratios():
    table = filters.ratio_table(FAMILY)
    # The median of 2/8, 20/80 and 2/4 is a quarter.
    expected = "1.05, 1.09, 1.08 | 0.25 (0.50) | 0.25 (0.50) | 0.25 (1.50) |  | space, present key by key |"
    assert line(table, "| fastbloom foldhash | petal bloom | 10⁶ |").endswith(expected)
    assert line(table, "| qfilter |").endswith("| 10⁶ | 0.50 | 0.50 | 1.25 |  | 0.50 | absent |")
    assert line(table, "| xorf fuse | petal static |").endswith("| 10⁶ | 0.76 | 2.00 | 2.50 |  |  | fill, absent |")
    # Pairs without rows of both are left out.
    assert "petal scalable" not in table


def test_petal_is_first_and_failures_are_named(tmp_path: Path):
    file = tmp_path / "rows.csv"
    lines = ["common,wc,-l,0.1,1,", "common,petal,default,2,104857600,", "common,petal,-m 1G,1,104857600,"]
    lines += ["common,clickhouse,memory,8,1,", "common,clickhouse,128MB,7,1,"]
    lines += ["common,duckdb,128MiB,4,1,out of memory", "common,duckdb,128MiB,3,1,", "common,duckdb,16GB,5,1,"]
    lines += ["common,zet,intersect,9,1,", "dedup,petal,-m 7M,1,1,"]
    header = "lines_per_file,lines_common,line_bytes,work,tool,config,wall_s,peak_rss_bytes,trouble"
    file.write_text("\n".join([header, *(f"10000000,1000000,65,{row}" for row in lines)]))
    plot = line_files.common_plot(file)
    names = [
        "petal common",
        "DuckDB, memory limit 16GB",
        "DuckDB, memory limit 128MiB",
        "ClickHouse, on disk above 128MB",
        "ClickHouse, in memory",
        "zet (all lines in memory)",
    ]
    assert [name for name, *_ in plot["rows"]] == names
    assert plot["rows"][2][2] == "out of memory in 1 of 2 rounds"
    assert "10 million lines of 64 bytes, 10 % in common" in plot["subtitle"]
    assert plot["subtitle"].endswith("medians of 2 rounds, of slow programs 1.")


def test_times_are_medians_and_failures_have_none(tmp_path: Path):
    file = tmp_path / "rows.csv"
    lines = ["common,petal,default,2,104857600,", "common,petal,default,4,104857600,", "dedup,petal,default,1,1048576,"]
    lines += ["common,duckdb,256MB,3,1,", "common,duckdb,256MB,3,1,out of memory", "common,petal,-m 1G,1,1,"]
    file.write_text("\n".join(["work,tool,config,wall_s,peak_rss_bytes,trouble", *lines]))
    table = line_files.times_table(file)
    assert line(table, "| **petal") == "| **petal, no options** | 3.0 s | 100 MiB | 1.0 s | 1 MiB |"
    assert line(table, "| DuckDB, 256 MB") == "| DuckDB, 256 MB | out of memory |  |  |  |"
    assert "1G" not in table


def test_names_of_lines_are_apart_and_in_order():
    assert draw.spread([10, 40, 90], 15) == [10, 40, 90]
    assert draw.spread([10, 12, 90], 15) == [3.5, 18.5, 90]
    # The second pair pushes the first one.
    assert draw.spread([10, 25, 30, 31], 15) == [1.5, 16.5, 31.5, 46.5]


def test_lines_of_texts_break_at_spaces_and_in_chinese():
    assert draw.wrap("one two  three", 7 * draw.LETTER) == ["one two", "three"]
    assert draw.wrap("about 25 % of", 9 * draw.LETTER) == ["about", "25 % of"]
    # A mark stays on the line of its letter.
    assert draw.wrap("两个文件，共同的行", 4) == ["两个文", "件，共同", "的行"]


def test_texts_without_chinese_words_are_errors():
    plot = lab.Lab(main.newest("-lab")).plot()
    assert chinese.in_chinese(plot)["rows"][0][0] == "petal 的默认类型"
    with pytest.raises(ValueError, match="no Chinese for a text of a plot: a new way"):
        chinese.in_chinese(plot | {"rows": [("a new way", [1, 2], "", False)]})


@pytest.mark.parametrize("path", sorted((rows.ROOT / "docs").glob("**/plots/*.svg")), ids=lambda path: path.stem)
def test_plots_take_their_colors_from_the_page(path: Path):
    root = ElementTree.parse(path).getroot()
    rest = path.read_text().replace(draw.STYLE, "")
    assert "prefers-color-scheme:dark" in draw.STYLE
    assert not re.search(r"#[0-9a-f]{3}|fill=|stroke=|background", rest)
    width = float(root.get("viewBox").split()[2])
    assert 12 * 350 / width >= 10, "the smallest letters, in pixels, on a phone"


def test_alt_text_has_the_numbers():
    plot = {
        "title": "Sizes",
        "columns": [{"title": "bits", "write": "{:.1f}".format, "limit": (1, "limit")}, {"title": "s", "write": str}],
        "rows": [("petal", [2.04, 3], "", True), ("Set<T>", [None, None], "out of memory", False)],
    }
    assert draw.alt(plot) == "Sizes (bits, s). petal: 2.0, 3; Set\\<T>: out of memory; limit: 1.0"


def test_only_text_between_markers_is_replaced():
    page, new = (f"a\n<!-- figures: x -->\n{text}<!-- /figures -->\nb\n" for text in ("old\n", "\nnew\n\n"))
    assert main.filled(page, {"x": "new\n"}) == main.filled(new, {"x": "new\n"}) == new
    for wrong in ("a\n", "<!-- figures: x -->\n", "<!-- figures: x -->\n<!-- figures: y -->\n<!-- /figures -->\n"):
        with pytest.raises(ValueError, match="is missing"):
            main.filled(wrong, {"x": "new"})


def test_numbers_have_the_digits_that_they_need():
    sizes = [100_000, 50_000_000, 1_200_000, 123, 0]
    assert [rows.size(n) for n in sizes] == ["10⁵", "5·10⁷", "12·10⁵", "123", "0"]
    assert [rows.percent(rate) for rate in (0.01003, 0.000_998_7, 0)] == ["1.003 %", "0.09987 %", "0 %"]
    assert [rows.figure(value, 10.1) for value in (10.102, 10.1, 10.13, 9.5)] == ["10.102", "10.10", "10.13", "9.50"]
    assert rows.percent(0.010_101_2, 0.010_1) == "1.0101 %"


@pytest.mark.parametrize(
    ("events", "of", "text"),
    [(0, 500_000, "0"), (2, 500_000, "2 of 500,000"), (47, 1e6, "0.005 %"), (182, 1e6, "0.018 %")]
    + [(5052, 500_000, "1.0 %"), (39_712, 4e6, "0.993 %"), (1e6, 1e6, "100 %")],
)
def test_rates_have_the_digits_that_their_events_support(events: float, of: float, text: str):
    assert lab.measured_percent(events / of, of) == text
