"""Keys in columns of CSV and in JSON lines: same results as Python's `csv` and `json`, same files as the program."""

import csv
import io
import json
import pickle
import random
import subprocess
from pathlib import Path

import petal
import pytest

pytestmark = pytest.mark.filterwarnings("ignore:.*has another header")

FIELDS = ["", "a", "b", "ä", "x,y", "p;q", 'say "hi"', "two\nlines", "cr\r\nlf", " a", "1", "\t"]


def records_of(rng: random.Random, count: int, separator: str) -> list[bytes]:
    """Returns records of three fields, with their line end."""
    records = []
    for _ in range(count):
        text = io.StringIO(newline="")
        quoting = rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
        ends = rng.choice(["\n", "\r\n"])
        csv.writer(text, delimiter=separator, quoting=quoting, lineterminator=ends).writerow(rng.choices(FIELDS, k=3))
        records.append(text.getvalue().encode())
    return records


def keys_of(records: list[bytes], separator: str, numbers: list[int]) -> list[tuple[str, ...]]:
    """Returns the columns of each record as Python's `csv` reads them."""
    keys = []
    for record in records:
        (row,) = csv.reader(io.StringIO(record.decode(), newline=""), delimiter=separator)
        keys.append(tuple(row[number - 1] for number in numbers))
    return keys


def bodies(records: list[bytes]) -> list[bytes]:
    """Returns records as a report has them: without LF."""
    return [record.removesuffix(b"\n") for record in records]


def first_of_each_key(records: list[bytes], keys: list, wanted) -> list[bytes]:
    """Returns the first record of each key that `wanted` accepts."""
    first: dict = {}
    for record, key in zip(records, keys, strict=True):
        first.setdefault(key, record)
    return bodies([record for key, record in first.items() if wanted(key)])


@pytest.mark.parametrize("seed", range(8))
def test_operations_on_columns_equal_pythons_csv(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    separator, numbers = rng.choice(",;\t"), rng.choice([[1], [3], [2, 1], [1, 2, 3]])
    a, b = (records_of(rng, count, separator) for count in (400, 150))
    for name, records in (("a", a), ("b", b)):
        (tmp_path / name).write_bytes(b"".join(records))
    keys_a, keys_b = (keys_of(records, separator, numbers) for records in (a, b))
    options = {"column": numbers, "separator": separator, "quote": '"', "text": True}
    one, two = tmp_path / "a", tmp_path / "b"
    in_a, in_b = set(keys_a), set(keys_b)
    assert list(petal.common(one, two, **options)) == first_of_each_key(a, keys_a, in_b.__contains__)
    left = first_of_each_key(a, keys_a, lambda key: key not in in_b)
    assert list(petal.diff(one, two, **options)) == left
    right = first_of_each_key(b, keys_b, lambda key: key not in in_a)
    assert list(petal.symdiff(one, two, **options)) == left + right
    keys = keys_a + keys_b
    assert list(petal.dedup(one, two, **options)) == first_of_each_key(a + b, keys, lambda _: True)
    counted = petal.count(one, two, **options)
    assert [line for line, _ in counted] == first_of_each_key(a + b, keys, lambda _: True)
    assert [number for _, number in counted] == [keys.count(key) for key in dict.fromkeys(keys)]
    petal.build(two, tmp_path / "f", fpr=1e-9, **options)
    found = petal.check(tmp_path / "f", one, **options)
    assert list(found) == bodies([record for record, key in zip(a, keys_a, strict=True) if key in in_b])


def test_long_records_with_line_ends_are_complete(tmp_path: Path) -> None:
    records = [b'%d,"%s"' % (n, b"line\n" * n * n * 50) for n in range(60)]
    (tmp_path / "a").write_bytes(b"\n".join(records))
    assert list(petal.dedup(tmp_path / "a", column=1)) == records
    assert list(petal.count(tmp_path / "a", column=1)) == [(record, 1) for record in records]


NAMED = b'id,url,lang\n1,http://a/,en\n2,"http://b/?q=x,y",de\n3,http://a/,fr\n'
OTHER = b'lang;url\nxx;"http://b/?q=x,y"\nyy;http://c/\n'


@pytest.fixture
def named(tmp_path: Path) -> Path:
    (tmp_path / "a.csv").write_bytes(NAMED)
    (tmp_path / "b.csv").write_bytes(OTHER)
    (tmp_path / "a.tsv").write_bytes(b"id\turl\tlang\n1\thttp://a/\ten\n9\thttp://b/?q=x,y\tde\n4\thttp://a/\tfr\n")
    (tmp_path / "keys").write_bytes(b"http://a/\n")
    return tmp_path


def test_header_is_no_record(named: Path) -> None:
    report = petal.dedup(named / "a.csv", column="url")
    assert len(report) == report.kept == 2
    assert list(report) == [b"1,http://a/,en", b'2,"http://b/?q=x,y",de']
    assert report.header == b"id,url,lang"
    rows = csv.DictReader(line.decode() for line in [report.header, *report])
    assert [row["url"] for row in rows] == ["http://a/", "http://b/?q=x,y"]
    counted = petal.count(named / "a.csv", column=["url"], sort="count")
    assert counted.header == b"id,url,lang"
    assert list(counted) == [(b"1,http://a/,en", 2), (b'2,"http://b/?q=x,y",de', 1)]
    # A byte order mark belongs to the header, or to nothing.
    (named / "m.csv").write_bytes(b"\xef\xbb\xbf" + NAMED)
    assert petal.dedup(named / "m.csv", column="url").header == b"\xef\xbb\xbfid,url,lang"
    marked = petal.count(named / "m.csv", column="url")
    assert (marked.header, list(marked)[0]) == (b"\xef\xbb\xbfid,url,lang", (b"1,http://a/,en", 2))
    assert list(petal.dedup(named / "m.csv", column=2))[0] == b"id,url,lang"
    assert list(petal.count(named / "m.csv", column=2))[0] == (b"id,url,lang", 1)
    tabs = petal.count(named / "a.tsv", column="url")
    assert (tabs.header, list(tabs)[0]) == (b"id\turl\tlang", (b"1\thttp://a/\ten", 2))
    # By number, the first record is a header only on request.
    assert petal.dedup(named / "a.csv", column=2).header is None
    assert petal.dedup(named / "a.csv", column=2, count=True).kept == 3
    assert petal.dedup(named / "a.csv", column=2, count=True, header=True).kept == 2
    (named / "empty").touch()
    assert petal.dedup(named / "empty", column="url").header is None
    with pytest.raises(petal.UnsupportedError, match="because of count= or out="):
        _ = petal.dedup(named / "a.csv", column="url", count=True).header
    with pytest.raises(petal.UnsupportedError, match="only in the process that ran the job"):
        list(pickle.loads(pickle.dumps(report)))


def test_files_equal_those_of_the_program(named: Path, program: Path) -> None:
    for function, command, options, flags in [
        ("dedup", ["dedup", "a.csv"], {"column": "url"}, ["--column", "url"]),
        ("dedup", ["dedup", "a.csv"], {"column": ["url", 3]}, ["--column", "url,3"]),
        ("dedup", ["dedup", "a.csv"], {"column": 2, "header": True}, ["--column", "2", "--header"]),
        ("dedup", ["dedup", "a.tsv"], {"column": "url", "only_duplicates": True}, ["--column", "url", "-d"]),
        ("dedup", ["dedup", "a.tsv"], {"column": "url", "only_unique": True}, ["--column", "url", "-u"]),
        ("common", ["common", "a.csv", "a.tsv"], {"column": "url"}, ["--column", "url"]),
        ("diff", ["diff", "b.csv", "b.csv"], {"column": "url", "separator": b";"},
         ["--column", "url", "--separator", ";"]),
        ("symdiff", ["symdiff", "a.csv", "a.tsv"], {"column": "lang", "key_transform": ["host"]},
         ["--column", "lang", "--key-transform", "host"]),
        ("count", ["count", "a.csv"], {"column": "url"}, ["--column", "url"]),
        ("count", ["count", "a.csv"], {"column": "url", "top": 1}, ["--column", "url", "--top", "1"]),
    ]:  # fmt: skip
        expected = subprocess.run([program, *command, *flags], cwd=named, capture_output=True, check=True)
        inputs = [named / name for name in command[1:]]
        getattr(petal, function)(*inputs, out=named / "out", **options)
        assert (named / "out").read_bytes() == expected.stdout, (command, flags)
        assert expected.stdout
        buffer = io.BytesIO()
        getattr(petal, function)(*inputs, out=buffer, **options)
        assert buffer.getvalue() == expected.stdout
    petal.dedup(named / "a.csv", column="url", rest=named / "rest")
    assert (named / "rest").read_bytes() == b"id,url,lang\n3,http://a/,fr\n"


def test_filters_of_columns_equal_those_of_the_program(named: Path, program: Path) -> None:
    for options, flags in [
        ({"column": "url"}, ["--column", "url"]),
        ({"column": ["lang", "url"], "separator": ","}, ["--column", "lang,url", "--separator", ","]),
    ]:
        petal.build(named / "a.csv", named / "ours", **options)
        subprocess.run([program, "build", "a.csv", "-o", "theirs", *flags], cwd=named, check=True)
        assert (named / "ours").read_bytes() == (named / "theirs").read_bytes()
    petal.build(named / "a.csv", named / "f", column="url")
    assert "http://b/?q=x,y" in petal.load(named / "f")
    found = petal.check(named / "f", named / "b.csv", column="url", separator=";")
    assert list(found) == [b'xx;"http://b/?q=x,y"'] and found.header == b"lang;url"
    # An allow list has keys, one per line.
    found = petal.check(named / "f", named / "a.csv", column="url", allow=named / "keys")
    assert list(found) == [b'2,"http://b/?q=x,y",de']
    key = b"".join(len(field).to_bytes(4, "little") + field for field in (b"en", b"http://a/"))
    assert key in petal.load(named / "ours")


def test_json_lines_equal_pythons_json(tmp_path: Path, program: Path) -> None:
    rng = random.Random(1)
    values = ["a", "b", "é", 'q"', 1, 2.5, True, None, {"n": 1}, [1, 2]]
    rows = [{"page": {"url": rng.choice(values)}, "n": number % 3} for number in range(200)]
    lines = [json.dumps(row, ensure_ascii=rng.random() < 0.5).encode() for row in rows]
    (tmp_path / "a").write_bytes(b"\n".join(lines))
    for pointers, key in [
        ("/page/url", lambda row: json.dumps(row["page"]["url"])),
        (["/page/url", "/n"], lambda row: (json.dumps(row["page"]["url"]), row["n"])),
    ]:
        expected = first_of_each_key(lines, [key(row) for row in rows], lambda _: True)
        assert list(petal.dedup(tmp_path / "a", json_key=pointers)) == expected
        flags = [f"--json-key={pointer}" for pointer in ([pointers] if isinstance(pointers, str) else pointers)]
        run = [program, "count", "a", *flags]
        petal.count(tmp_path / "a", json_key=pointers, out=tmp_path / "out")
        assert (tmp_path / "out").read_bytes() == subprocess.run(run, cwd=tmp_path, capture_output=True).stdout


def test_records_without_the_key_are_errors(named: Path) -> None:
    with pytest.raises(petal.InputError, match='a.csv: has no column "urls", but 3 columns'):
        petal.dedup(named / "a.csv", column="urls")
    with pytest.raises(petal.InputError, match=r"the record at byte 0 \(line 1\): has 3 fields, but the key is in field 4"):
        petal.dedup(named / "a.csv", column=4)
    with pytest.raises(petal.InputError, match="a.csv: the record at byte 0"):
        petal.dedup(named / "a.csv", json_key="/a")


def test_advice_for_tables_is_possible_in_python(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1\x15\x04\x15\0PAR1")
    with pytest.raises(petal.InputError, match="is a Parquet file, expected lines; specify column=, or pass text=True"):
        petal.dedup(tmp_path / "a.parquet")
    with pytest.raises(petal.InputError, match="a.parquet: "):
        petal.dedup(tmp_path / "a.parquet", column="url")


def test_files_with_different_separators_need_an_output(named: Path) -> None:
    with pytest.raises(ValueError, match="a.tsv: has another separator than .*a.csv, .*out=, or specify separator="):
        petal.dedup(named / "a.csv", named / "a.tsv", column="url")
    assert petal.dedup(named / "a.csv", named / "a.tsv", column="url", count=True).kept == 2
    # Only the first one is in the result.
    assert len(petal.common(named / "a.csv", named / "a.tsv", column="url")) == 2


def test_records_follow_the_quote_and_the_escape(tmp_path: Path) -> None:
    tsv, plain, escaped = tmp_path / "t.tsv", tmp_path / "t", tmp_path / "e.csv"
    records = [b'1\t"Heroes', b"2\tFilm", b'3\t"X']
    for path in (tsv, plain):
        path.write_bytes(b"".join(record + b"\n" for record in records + records[:1]))
    assert list(petal.dedup(tsv, column=1)) == records
    with pytest.warns(UserWarning, match=r"t: the first records are separated by '\\t'"):
        assert list(petal.dedup(plain, column=1)) == records
    with pytest.warns(UserWarning, match="separated by"):
        assert list(petal.count(plain, column=1)) == list(zip(records, (2, 1, 1), strict=True))
    escaped.write_bytes(b"a\\\nb,1\na\\\nb,2\n'c,d',3\n")
    options = {"column": 1, "escape": "\\", "quote": "'"}
    assert list(petal.dedup(escaped, **options)) == [b"a\\\nb,1", b"'c,d',3"]
    assert petal.dedup(escaped, column=1, quote="none", escape=b"\\", count=True).kept == 2


def test_fields_that_may_be_meant_otherwise_are_warned_about(tmp_path: Path) -> None:
    quoted, other, cr = tmp_path / "q.tsv", tmp_path / "o.csv", tmp_path / "cr.csv"
    quoted.write_bytes(b'"a"\t1\n')
    other.write_bytes(b"a;1\nb;2\n")
    cr.write_bytes(b"id,x\r1,2\r")
    long = tmp_path / "long.csv"
    long.write_bytes(b'1,"' + b"\n" * 100 + b'"\n')
    for path, text in [
        (quoted, "begin and end with a quote"),
        (other, "some records have no ',', but all have a ';'"),
        (cr, "has CR between lines, but no LF"),
        (long, "the record at byte 0 has 101 lines in quotes"),
    ]:
        with pytest.warns(UserWarning, match=text):
            petal.dedup(path, column=1, count=True)


def test_guessed_separators_that_differ_need_an_output(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    a.write_bytes(b"1;2\n")
    b.write_bytes(b"1|2\n")
    with pytest.warns(UserWarning, match="separated by"), pytest.raises(
        ValueError, match="b: has another separator than .*a, .*out=, or specify separator="
    ):
        petal.seen(tmp_path / "f", a, b, column=1, capacity=9)
    assert not (tmp_path / "f").exists()


@pytest.mark.parametrize(("arguments", "error", "text"), [
    ({"column": []}, ValueError, "column=: expected at least one column"),
    ({"column": 0}, ValueError, "column=: columns are counted from 1"),
    ({"column": ""}, ValueError, "column=: expected a name, found an empty one"),
    ({"column": b"a"}, TypeError, "column=: expected names or numbers"),
    ({"column": [1.5]}, TypeError, "column=: expected names or numbers"),
    ({"column": [True]}, TypeError, "column=: expected names or numbers"),
    ({"column": 1, "separator": ";;"}, ValueError, "separator=: expected one byte"),
    ({"column": 1, "separator": '"'}, ValueError, "cannot separate fields and quote"),
    ({"column": 1, "separator": "é"}, ValueError, "separator=: expected one byte"),
    ({"column": 1, "separator": 59}, TypeError, "separator=: expected one byte"),
    ({"column": 1, "quote": "''"}, ValueError, "quote=: expected one byte that is no line end"),
    ({"column": 1, "escape": 1}, TypeError, "escape=: expected one byte"),
    ({"column": 1, "separator": ";", "escape": ";"}, ValueError, "cannot separate fields and quote or escape"),
    ({"column": 1, "quote": "|"}, ValueError, "may separate fields; specify the separator"),
    ({"separator": ";"}, ValueError, "only for CSV; add column=, or name columns"),
    ({"quote": "none"}, ValueError, "only for CSV; add column=, or name columns"),
    ({"escape": "x"}, ValueError, "only for CSV; add column=, or name columns"),
    ({"header": True}, ValueError, "only for CSV; add column=, or name columns"),
    ({"column": 1, "header": 1}, TypeError, "header=: expected True or False"),
    ({"column": 1, "json_key": "/a"}, ValueError, "leave out one of them"),
    ({"column": 1, "delimiter": b"\0"}, ValueError, "column=: records of CSV and of JSON end with LF"),
    ({"json_key": "/a", "delimiter": b"\0"}, ValueError, "json_key=: records of CSV and of JSON end with LF"),
    ({"json_key": "a"}, ValueError, "json_key=: expected a JSON pointer, such as /a"),
    ({"json_key": []}, ValueError, "json_key=: expected at least one JSON pointer"),
    ({"json_key": b"/a"}, TypeError, "json_key=: expected JSON pointers"),
    ({"json_key": [1]}, TypeError, "json_key=: expected JSON pointers"),
    ({"nulls": "none"}, ValueError, "nulls=: expected 'one', 'distinct' or 'drop'"),
    ({"empty": 1}, ValueError, "empty=: expected 'one', 'distinct' or 'drop'"),
    ({"comment": ""}, TypeError, "comment=: expected the start of a line"),
    ({"skip_lines": -1}, ValueError, "skip_lines=: expected an integer from 0"),
    ({"bad_records": 1}, TypeError, "bad_records=: expected a path"),
])  # fmt: skip
def test_wrong_arguments_are_refused(named: Path, arguments: dict, error: type, text: str) -> None:
    with pytest.raises(error, match=text):
        petal.dedup(named / "a.csv", **arguments)


def test_records_that_are_left_out_are_counted_in_a_warning(tmp_path: Path) -> None:
    path, bad = tmp_path / "a", tmp_path / "bad"
    path.write_text('title\n# note\n{"u":"a"}\nbad\n{}\n{"u":null}\n{"u":"a"}\n{"u":""}\n')
    options = {"json_key": "/u", "skip_lines": 1, "comment": "#", "bad_records": bad}
    with pytest.warns(UserWarning, match=r"left out 1 record without a key \(at .* line 4: is no JSON"):
        report = petal.dedup(path, nulls="distinct", **options)
    assert list(report) == [b'{"u":"a"}', b"{}", b'{"u":null}', b'{"u":""}']
    assert bad.read_bytes() == b"bad\n"
    with pytest.raises(petal.PetalError, match="exists already; change bad_records=, or remove it"):
        petal.dedup(path, nulls="distinct", **options)
    bad.unlink()
    with pytest.warns(UserWarning, match="2 records with a null value, 1 record with an empty key"):
        report = petal.dedup(path, nulls="drop", empty="drop", **options)
    assert list(report) == [b'{"u":"a"}']
    with pytest.raises(petal.PetalError, match="is an input, too; change bad_records="):
        petal.dedup(path, json_key="/u", bad_records=path)
    with pytest.raises(petal.InputError, match="line 4"):
        petal.dedup(path, json_key="/u", skip_lines=1, comment=b"#")
    with pytest.raises(ValueError, match="nulls=: a filter cannot tell a key from equal ones"):
        petal.build(path, tmp_path / "f", json_key="/u", nulls="distinct", skip_lines=2)
