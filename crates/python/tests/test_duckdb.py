"""Look-ups in DuckDB's SQL return what the filter returns for the same keys."""

import subprocess
from pathlib import Path

import duckdb
import petal
import petal.duckdb
import pyarrow as pa
import pytest


@pytest.fixture
def connection():
    with duckdb.connect() as made:
        yield made


def found(connection, query):
    return [row[0] for row in connection.sql(query).fetchall()]


def test_filter_of_the_program_is_queried_with_strings(connection, program, tmp_path):
    lines = [f"https://example.com/ü/{n}" for n in range(5000)] + ["", " a\r", "a" * 5000]
    (tmp_path / "urls.txt").write_bytes("".join(f"{line}\n" for line in lines).encode())
    subprocess.run([program, "build", "urls.txt", "-o", "urls.petal", "--fpr", "1e-9"], cwd=tmp_path, check=True)
    petal.duckdb.register(connection, "is_known", tmp_path / "urls.petal")
    connection.execute("CREATE TABLE keys (key VARCHAR, expected BOOLEAN)")
    absent = [f"https://example.org/{n}" for n in range(5000)]
    rows = pa.table({"key": lines + absent, "expected": [True] * len(lines) + [False] * len(absent)})
    connection.register("rows", rows)
    connection.execute("INSERT INTO keys SELECT key, expected FROM rows")
    assert found(connection, "SELECT count(*) FROM keys WHERE is_known(key) = expected") == [len(lines) + 5000]


@pytest.mark.parametrize(
    ("column_type", "keys", "absent"),
    [
        ("VARCHAR", ["a", "", "ü\0x"], "b"),
        ("BLOB", [b"a", b"", b"\xff\0"], b"b"),
        ("BIGINT", [0, 5, 2**63 - 1], 6),
        ("UBIGINT", [0, 5, 2**64 - 1], 6),
    ],
)
def test_keys_are_those_of_python(connection, column_type, keys, absent):
    filter = petal.BloomFilter(100, 1e-9)
    filter.update(keys)
    petal.duckdb.register(connection, "has", filter, column_type=column_type)
    connection.execute(f"CREATE TABLE t (n INTEGER, k {column_type})")
    connection.executemany("INSERT INTO t VALUES (?, ?)", list(enumerate([*keys, absent, None])))
    results = found(connection, "SELECT has(k) FROM t ORDER BY n")
    assert results == [True] * len(keys) + [False, None]
    # Text and bytes are the same keys, text and numbers are not.
    assert [key in filter for key in keys] == [True] * len(keys)
    # Constants, nulls alone and no rows.
    assert found(connection, "SELECT has(k) FROM t WHERE k IS NULL") == [None]
    assert found(connection, "SELECT has(NULL)") == [None]
    assert found(connection, "SELECT has(k) FROM t WHERE n < 0") == []
    assert found(connection, "SELECT has(k) FROM (SELECT k FROM t WHERE n = 1), range(3000)") == [True] * 3000


def test_results_follow_their_rows_in_large_tables(connection):
    filter = petal.BloomFilter(200_000, 1e-9)
    filter.update(range(0, 300_000, 3))
    petal.duckdb.register(connection, "has", filter, column_type="BIGINT")
    connection.execute("CREATE TABLE t AS SELECT if(range % 7 = 2, NULL, range) k, range n FROM range(300000)")
    wrong = "SELECT n FROM t WHERE has(k) IS DISTINCT FROM if(n % 7 = 2, NULL, n % 3 = 0)"
    assert found(connection, wrong) == []


def test_filter_of_a_query_and_set_difference(connection):
    connection.execute("CREATE TABLE old AS SELECT 'key ' || range AS k FROM range(2000)")
    connection.execute("CREATE TABLE new AS SELECT 'key ' || range AS k FROM range(1500, 3000)")
    filter = petal.BloomFilter(2000, 1e-9)
    assert filter.update(connection.sql("SELECT k FROM old")) == 2000
    petal.duckdb.register(connection, "in_old", filter)
    expected = sorted(found(connection, "SELECT k FROM new ANTI JOIN old USING (k)"))
    assert sorted(found(connection, "SELECT k FROM new WHERE NOT in_old(k)")) == expected
    assert len(expected) == 1000


def test_every_kind_of_filter_is_accepted(connection, tmp_path):
    keys = ["a", "b"]
    filters = [petal.StaticFilter(keys, 1e-6), petal.CountingBloomFilter(100), petal.QuotientFilter(100)]
    filters += [petal.ScalableBloomFilter(100), petal.ForeignFilter("guava", 100, fpr=1e-6)]
    for number, filter in enumerate(filters):
        if not isinstance(filter, petal.StaticFilter):
            filter.update(keys)
        petal.duckdb.register(connection, f"has{number}", filter)
        assert found(connection, f"SELECT has{number}(k) FROM (VALUES ('a'), ('b'), (NULL)) t(k)") == [True, True, None]


def test_keys_are_changed_as_the_filter_records(connection, tmp_path):
    (tmp_path / "urls.txt").write_text("http://www.Example.com/?b=1&a=2\n")
    petal.build(tmp_path / "urls.txt", tmp_path / "urls.petal", key_transform=["url-surt"], fpr=1e-9)
    petal.duckdb.register(connection, "has", tmp_path / "urls.petal")
    petal.duckdb.register(connection, "has_blob", tmp_path / "urls.petal", column_type="BLOB")
    rows = "(VALUES ('https://example.com/?a=2&b=1#top'), (NULL), ('https://example.com/')) t(u)"
    assert found(connection, f"SELECT has(u) FROM {rows}") == [True, None, False]
    assert found(connection, f"SELECT has_blob(u::BLOB) FROM {rows}") == [True, None, False]
    with pytest.raises(petal.IncompatibleError, match="changed by 'url-surt', not by 'trim'"):
        petal.duckdb.register(connection, "has", tmp_path / "urls.petal", key_transform=["trim"])
    filter = petal.BloomFilter(10)
    filter.add("a")
    petal.duckdb.register(connection, "trimmed", filter, key_transform=["trim"])
    assert found(connection, "SELECT trimmed(' a ')") == [True]


def test_function_is_replaced_and_filter_may_change(connection):
    filter, other = petal.BloomFilter(10, 1e-9), petal.BloomFilter(10, 1e-9)
    petal.duckdb.register(connection, "has", filter)
    assert found(connection, "SELECT has('a')") == [False]
    filter.add("a")
    assert found(connection, "SELECT has('a')") == [True]
    petal.duckdb.register(connection, "has", other)
    assert found(connection, "SELECT has('a')") == [False]
    petal.duckdb.register(connection, "has", other, column_type="BIGINT")
    assert found(connection, "SELECT has(1)") == [False]


def test_prepared_statements_see_changes_of_the_filter(connection):
    filter = petal.BloomFilter(10, 1e-9)
    petal.duckdb.register(connection, "has", filter)
    connection.execute("PREPARE constant AS SELECT has('a')")
    connection.execute("PREPARE parameter AS SELECT has($1)")
    for expected in False, True:
        assert connection.execute("EXECUTE constant").fetchall() == [(expected,)]
        assert connection.execute("EXECUTE parameter('a')").fetchall() == [(expected,)]
        filter.add("a")


def test_name_of_a_function_that_was_rolled_back_is_refused(connection):
    filter = petal.BloomFilter(10)
    connection.execute("BEGIN")
    petal.duckdb.register(connection, "has", filter)
    connection.execute("ROLLBACK")
    with pytest.raises(ValueError, match="name: DuckDB refuses 'has'; choose another name or connection"):
        petal.duckdb.register(connection, "has", filter)
    petal.duckdb.register(connection, "contains_key", filter)


def test_columns_of_other_types_are_refused(connection):
    petal.duckdb.register(connection, "has", petal.BloomFilter(10))
    for value in "1", "1.5", "uuid()", "DATE '2024-02-29'", "true", "'a'::BLOB", "['a']":
        with pytest.raises(duckdb.BinderException, match="No function matches"):
            connection.sql(f"SELECT has({value})")
    petal.duckdb.register(connection, "has", petal.BloomFilter(10), column_type="BIGINT")
    for value in "1.5", "1::UBIGINT", "1::HUGEINT", "[1]", "'a'::VARCHAR":
        with pytest.raises(duckdb.BinderException, match="No function matches"):
            connection.sql(f"SELECT has(x) FROM (SELECT {value} x)")
    with pytest.raises(duckdb.InvalidInputException, match="key -1: an int must be from 0"):
        connection.sql("SELECT has(-1)").fetchall()


def test_bad_arguments(connection, tmp_path):
    filter = petal.BloomFilter(10)
    with pytest.raises(TypeError, match="connection: expected a connection of DuckDB, found str"):
        petal.duckdb.register("db", "f", filter)
    with pytest.raises(ValueError, match="name: expected the name of an SQL function, found 'a b'"):
        petal.duckdb.register(connection, "a b", filter)
    with pytest.raises(ValueError, match="column_type: expected one of VARCHAR, BLOB, BIGINT, UBIGINT, found 'DATE'"):
        petal.duckdb.register(connection, "f", filter, column_type="DATE")
    with pytest.raises(TypeError, match="filter: expected a filter or the path of its file, found int"):
        petal.duckdb.register(connection, "f", 1)
    with pytest.raises(petal.MissingFileError, match="none.petal"):
        petal.duckdb.register(connection, "f", tmp_path / "none.petal")
    (tmp_path / "bad").write_bytes(b"not a filter")
    with pytest.raises(petal.FormatError, match="bad"):
        petal.duckdb.register(connection, "f", Path(tmp_path / "bad"))
    connection.execute("CREATE MACRO twice(x) AS 2 * x")
    for name in "lower", "LOWER", "twice":
        with pytest.raises(ValueError, match=f"name: the database has another function '{name}'; choose another"):
            petal.duckdb.register(connection, name, filter)
    assert connection.sql("SELECT lower('A'), twice(2)").fetchall() == [("a", 4)]
    for name in "coalesce", "IN", "interval", "ifnull", "select":
        with pytest.raises(ValueError, match=f"name: '{name}' is a keyword of SQL; choose another name"):
            petal.duckdb.register(connection, name, filter)
    with pytest.raises(ValueError, match="key_transform: keys of column_type 'BIGINT' cannot be changed"):
        petal.duckdb.register(connection, "f", filter, column_type="BIGINT", key_transform=["trim"])


def test_cursors_have_the_function(connection):
    filter = petal.BloomFilter(10)
    filter.add("a")
    petal.duckdb.register(connection, "has", filter)
    assert found(connection.cursor(), "SELECT has('a')") == [True]
    with pytest.raises(ValueError, match="name: the database has another function 'has'"):
        petal.duckdb.register(connection.cursor(), "has", filter)
