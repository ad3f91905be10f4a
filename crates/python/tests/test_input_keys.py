"""Inputs whose paths say what their keys are, rows of Parquet and Arrow, plans and explanations."""

import csv
import io
import json
import random
import subprocess
from pathlib import Path

import petal
import pytest

KEYS = ["", "a", "b,c", 'say "hi"', "x;y", "ä🌸", " a ", "#", "http://a/?b=c&d"]


def write(path: Path, kind: str, keys: list[str]) -> tuple[str, list[bytes]]:
    """Writes records with these keys. Returns the path with its fragment, and the records."""
    rows = [(str(number), key) for number, key in enumerate(keys)]
    if kind == "lines":
        records, fragment, head = keys, "#", ""
    elif kind == "json":
        records = [json.dumps({"n": number, "v": [{"k/": key}]}) for number, key in rows]
        fragment, head = "#/v/0/k~1", ""
    else:
        separator = ";" if kind == "numbers" else ","
        records = []
        for row in rows:
            text = io.StringIO(newline="")
            csv.writer(text, delimiter=separator, lineterminator="").writerow(row)
            records.append(text.getvalue())
        fragment, head = ("#2&header=no&separator=;", "") if kind == "numbers" else ("#k%26y", "n,k&y\n")
    path.write_text(head + "".join(record + "\n" for record in records))
    return f"{path}{fragment}", [record.encode() for record in records]


@pytest.mark.parametrize("seed", range(12))
def test_keys_of_inputs_equal_a_model(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    kinds = ["lines", "json", "names", "numbers"]
    lists = [[rng.choice(KEYS) + str(rng.choice(["", 1, 2, 3])) for _ in range(rng.randrange(200))] for _ in range(3)]
    names, records = [], []
    for number, keys in enumerate(lists):
        name, written = write(tmp_path / f"f{number}", rng.choice(kinds), keys)
        names.append(name)
        records.append(written)
    first = {}
    for key, record in zip(lists[0], records[0], strict=True):
        first.setdefault(key, record)
    others = [set(keys) for keys in lists[1:]]
    common = [record for key, record in first.items() if all(key in other for other in others)]
    options = rng.choice([{}, {"column": "nothing"}, {"json_key": "/nothing"}])
    assert list(petal.common(*names, memory_limit="9M", **options)) == common
    diff = [record for key, record in first.items() if not any(key in other for other in others)]
    assert list(petal.diff(*names, memory_limit="9M", **options)) == diff
    assert petal.dedup(*names, count=True).kept == len(set().union(*lists))


@pytest.fixture
def named(tmp_path: Path) -> Path:
    (tmp_path / "a.csv").write_text("id,url\n1,x\n2,y\n3,x\n")
    (tmp_path / "c.jsonl").write_text('{"u":"x"}\n{"u":"w"}\n')
    (tmp_path / "d").write_text("y\nw\n")
    return tmp_path


def test_every_function_takes_keys_of_inputs(named: Path) -> None:
    a, c, d = f"{named}/a.csv#url", named / "c.jsonl#/u", f"{named}/d"
    counted = petal.count(a)
    assert list(counted) == [(b"1,x", 2), (b"2,y", 1)] and counted.header == b"id,url"
    petal.build([a, d], named / "f", fpr=1e-9)
    assert list(petal.check(named / "f", c)) == [b'{"u":"x"}', b'{"u":"w"}']
    assert '"keys":["column \\"url\\" of CSV with a header","lines as bytes' in petal.load(named / "f").metadata
    assert list(petal.check(named / "f", c, allow=d)) == [b'{"u":"x"}']
    assert list(petal.seen(named / "s", a, capacity=100)) == [b"1,x", b"2,y"]
    assert list(petal.seen(named / "s", c)) == [b'{"u":"w"}']
    (named / "a.csv#url").write_text("whole\n")
    assert list(petal.dedup(a)) == [b"whole"]


@pytest.mark.parametrize(("arguments", "options", "text"), [
    (["a.csv#url", "d"], {}, "d: has lines, which cannot follow the records of CSV"),
    (["a.csv#url&colour=red"], {}, '"colour" is not a setting, expected separator, header or format'),
    (["c.jsonl#/u&format=csv"], {}, "has format=csv, but its key is a value in JSON"),
    (["a.csv#url"], {"delimiter": b"\0"}, 'which end with LF; leave out delimiter='),
    (["a.csv#id,url", "d#"], {"count": True}, "never equal those of"),
    (["a.csv#url", "a.csv#1"], {"keys_only": True}, "its keys are at another place than those of .*; leave out keys_only="),
])  # fmt: skip
def test_contradictions_are_errors(named: Path, arguments: list[str], options: dict, text: str) -> None:
    with pytest.raises(petal.InputError, match=text):
        petal.dedup(*(named / name for name in arguments), **options)


def test_rows_of_tables_are_compared_and_written(named: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import feather, parquet

    table = pa.table({"id": [1, 2, 3, 4], "url": ["x", None, "y", "x"]})
    parquet.write_table(table, named / "t.parquet")
    feather.write_feather(table, named / "t.arrow")
    petal.common(named / "t.parquet", named / "a.csv", out=named / "out.parquet", column="url")
    assert parquet.read_table(named / "out.parquet").to_pydict() == {"id": [1, 3], "url": ["x", "y"]}
    petal.diff(f"{named}/t.arrow#url", f"{named}/d", out=named / "out.arrow")
    assert feather.read_table(named / "out.arrow").to_pydict() == {"id": [1, 2], "url": ["x", None]}
    assert list(petal.common(f"{named}/c.jsonl#/u", f"{named}/t.parquet#url")) == [b'{"u":"x"}']
    keys = petal.dedup(named / "t.parquet", column="url", keys_only=True)
    assert list(keys) == [b"x", b"\xff", b"y"] and keys.header is None
    pairs = petal.dedup(named / "t.parquet", column=["url", "id"], keys_only=True)
    assert list(pairs) == [b"x,1", b"\xff,2", b"y,3", b"x,4"] and pairs.header is None
    assert list(petal.count(f"{named}/t.arrow#url", keys_only=True))[0] == (b"x", 2)
    with pytest.raises(petal.PetalError, match="its rows are binary data in Parquet, not text; specify out=, or pass keys_only=True"):
        petal.dedup(named / "t.parquet", column="url")
    assert petal.dedup(named / "t.parquet", column="url", count=True).kept == 3
    buffer = io.BytesIO()
    petal.dedup(named / "t.parquet", column="url", out=buffer)
    assert parquet.read_table(io.BytesIO(buffer.getvalue())).num_rows == 3


def test_file_of_bad_records_is_no_other_output(named: Path) -> None:
    (named / "bad").write_text("u,v\n1\n")
    new = named / "new"
    for job in (
        lambda: petal.dedup(named / "bad", column=2, out=new, bad_records=new),
        lambda: petal.diff(named / "bad", named / "d", column=2, rest=new, bad_records=new),
        lambda: petal.count(named / "bad", column=2, out=new, bad_records=f"{named}/./new"),
        lambda: petal.build(named / "bad", new, column=2, bad_records=new),
        lambda: petal.seen(new, named / "bad", column=2, capacity=9, bad_records=new),
        lambda: petal.seen(new, named / "bad", column=2, capacity=9, exact=True, bad_records=f"{new}.exact"),
    ):
        with pytest.raises(ValueError, match="is given for two outputs; choose another for bad_records="):
            job()
    assert not new.exists() and sorted(path.name for path in named.iterdir()) == ["a.csv", "bad", "c.jsonl", "d"]


def run(program: Path, named: Path, *arguments: str) -> dict:
    found = subprocess.run([program, *arguments], cwd=named, capture_output=True, check=True)
    return json.loads(found.stdout)


@pytest.mark.parametrize(("options", "flags"), [
    ({"capacity": 1_000_000}, "-n 1e6"),
    ({"capacity": 1_000_000, "fpr": 1e-3, "type": "classic"}, "-n 1e6 -p 1e-3 --type classic"),
    ({"fpr": 0.01, "size": "1M"}, "-p 0.01 --size 1M --type bloom"),
    ({"capacity": 1000, "fpr": 0.01, "type": "static"}, "-n 1000 -p 0.01 --type static"),
    ({"bits": 100_000, "probes": 7}, "--bits 1e5 -k 7 --type bloom"),
    ({"capacity": 5_000, "fpr": 0.02, "least_space": True}, "-n 5000 -p 0.02 --least-space --type bloom"),
])  # fmt: skip
def test_plan_of_a_filter_is_that_of_the_program(program: Path, tmp_path: Path, options: dict, flags: str) -> None:
    plans = run(program, tmp_path, "plan", "--json", *flags.split())["plans"]
    assert petal.plan(**options) == plans[0]


def without_seconds(plan: dict) -> dict:
    """Returns a plan without its time, which is that of the machine at the moment."""
    low, high = plan.pop("seconds")
    assert 0 < low <= high
    return plan


def test_plan_of_a_job_is_that_of_the_program(program: Path, named: Path) -> None:
    for operation, names, options, flags in [
        ("common", ["a.csv#url", "c.jsonl#/u"], {}, []),
        ("common", ["a.csv#url", "d", "c.jsonl#/u"], {"at_least": 1}, ["--at-least", "1"]),
        ("diff", ["d", "d"], {"count": True, "full_scan": True}, ["-c", "--full-scan"]),
        ("symdiff", ["a.csv", "a.csv"], {"column": "id"}, ["--column", "id"]),
        ("dedup", ["c.jsonl", "c.jsonl"], {"json_key": "/u"}, ["--json-key", "/u"]),
    ]:
        expected = run(program, named, "plan", "--json", "-m", "64M", "-j", "2", operation, *names, *flags)
        inputs = [named / name for name in names]
        found = petal.plan(operation, *inputs, memory_limit="64M", jobs=2, **options)
        assert without_seconds(found) == without_seconds(expected), operation
    assert petal.plan("unique", named / "d")["kept"] == 2


def test_last_of_equal_lines_is_planned(program: Path, named: Path) -> None:
    flags = ["plan", "--json", "-m", "64M", "-j", "2", "dedup", "--keep", "last", "d"]
    found = petal.plan("last", named / "d", memory_limit="64M", jobs=2)
    assert without_seconds(found) == without_seconds(run(program, named, *flags))


def test_options_for_columns_need_an_input_with_columns(named: Path) -> None:
    (named / "q").write_text("'a;b';1\n'c';2\n")
    (named / "keys").write_text("a;b\n")
    q, keys = f"{named}/q#1", f"{named}/keys#"
    assert list(petal.common(q, keys, quote="'", separator=";")) == [b"'a;b';1"]
    assert list(petal.common(q, keys, quote="'", separator=";", json_key="/u")) == [b"'a;b';1"]
    assert petal.plan("common", q, keys, quote="'", separator=";")["kept"] == 1
    with pytest.raises(ValueError, match="only for CSV; add column=, or name columns after #"):
        petal.plan("dedup", keys, quote="'")


def test_wrong_plans_are_errors(named: Path) -> None:
    for arguments, options, error, text in [
        ((), {}, ValueError, "the size of the filter is missing"),
        ((), {"capacity": 10**9, "fpr": 0.01, "size": "1M"}, petal.MemoryLimitError, "size=: the filter takes"),
        ((), {"capacity": 9, "jobs": 2}, ValueError, "name one, such as 'dedup'"),
        (("dedup", named / "d"), {"capacity": 9}, ValueError, "need no operation"),
        (("sort", named / "d"), {}, ValueError, "expected an operation such as 'common', found 'sort'"),
        (("common", named / "d"), {}, TypeError, "expected at least 2 for 'common', found 1"),
        (("dedup", named / "d"), {"bad_records": "x"}, ValueError, "plan writes no records"),
        (("dedup", named / "none"), {}, petal.InputError, "no such file"),
    ]:
        with pytest.raises(error, match=text):
            petal.plan(*arguments, **options)


def test_explanation_is_that_of_the_program(program: Path, named: Path) -> None:
    for number, options in enumerate([
        {}, {"type": "counting"}, {"type": "quotient"}, {"type": "static"},
        {"type": "classic", "key_transform": ["lowercase", "trim"]},
    ]):  # fmt: skip
        file = named / f"f{number}"
        petal.build([f"{named}/a.csv#url", named / "d"], file, **options)
        for key in ("x", "absent", " Y"):
            expected = run(program, named, "explain", "--json", file.name, key)
            assert petal.explain(file, key) == expected
            assert petal.explain(petal.load(file), key.encode()) == expected
            assert expected["contains"] or key != "x"
    with pytest.raises(TypeError, match="explain: expected bytes or text, found 1"):
        petal.explain(petal.BloomFilter(9), 1)
    with pytest.raises(petal.UnsupportedError, match="only for petal's own filters"):
        petal.explain(petal.ForeignFilter("guava", 100, fpr=1e-6), "x")
    with pytest.raises(petal.MissingFileError):
        petal.explain(named / "none", "x")
