import os
import shutil
import socket
import sqlite3
import subprocess
import tempfile
import time
from pathlib import Path

import polars as pl
import pytest

from dpmpn.data.sources import sql
from dpmpn.data.sources.base import ReadOptions
from dpmpn.data.sources.sql import SqlSource
from dpmpn.errors import DataError

ALL = "SELECT head, relation, tail FROM facts ORDER BY head"
PASSWORD = "Geheim%41'x"


def facts(url, query=ALL, **options):
    source = SqlSource(url, ReadOptions(query=query, **options))
    return [row for batch in source.batches() for row in batch.rows()], source


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "my facts.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE facts (head, relation TEXT, tail, year INTEGER)")
        rows = [(i, "next", f"n{i + 1}", 1800 + i) for i in range(1, 8)]
        connection.executemany("INSERT INTO facts VALUES (?, ?, ?, ?)", rows)
        connection.execute("CREATE TABLE other (x)")
        connection.execute("CREATE VIEW seen AS SELECT * FROM other")
    connection.close()
    return path


def url_of(path):
    return f"sqlite:///{path}"


EXPECTED = [(str(i), "next", f"n{i + 1}") for i in range(1, 8)]


def test_rows_of_a_query(database):
    rows, source = facts(url_of(database))
    assert rows == EXPECTED
    assert source.account.read == 7
    assert source.position() == (7, None)
    assert source.labels().height == 0


def test_many_rows_come_in_batches(database, monkeypatch):
    monkeypatch.setattr(sql, "_BATCH", 3)
    source = SqlSource(url_of(database), ReadOptions(query=ALL))
    batches = list(source.batches())
    assert [batch.height for batch in batches] == [3, 3, 1]
    assert pl.concat(batches).rows() == EXPECTED


def test_columns_by_name_position_and_time(database):
    rows, _ = facts(
        url_of(database), "SELECT tail, year, relation, head FROM facts LIMIT 1", time_column="year"
    )
    assert rows == [("1", "next", "n2", "1801")]
    rows, _ = facts(url_of(database), "SELECT 'a', 'b', 'c', 'd'", columns=("4", "1", "2"))
    assert rows == [("d", "a", "b")]
    rows, _ = facts(url_of(database), "SELECT 'a' AS x, 'b' AS y, 'c' AS z")
    assert rows == [("a", "b", "c")]
    with pytest.raises(DataError, match=r"has 4 columns .*--columns"):
        facts(url_of(database), "SELECT 1, 2, 3, 4")


def test_percent_signs_and_colons_are_no_parameters(database):
    rows, _ = facts(url_of(database), "SELECT '100%', 'a:b', ':name %s' WHERE 'x%' LIKE '%x%'")
    assert rows == [("100%", "a:b", ":name %s")]


def test_a_query_that_begins_with_a_comment(database):
    assert facts(url_of(database), f"-- my facts\n/* all */ WITH f AS ({ALL}) SELECT * FROM f")[0] == EXPECTED


def test_without_a_query_the_tables_are_listed(database):
    with pytest.raises(DataError, match=r"needs a query; give --query .*\(tables: facts, other, seen\)"):
        facts(url_of(database), None)


@pytest.mark.parametrize("value", ["NULL", "''", "' '"])
def test_rows_without_a_value(database, value):
    query = f"SELECT head, relation, CASE WHEN head = 3 THEN {value} ELSE tail END AS tail FROM facts ORDER BY head"
    with pytest.raises(DataError, match=r"row 3: the tail is empty or not text in '3, next, +'"):
        facts(url_of(database), query)
    rows, source = facts(url_of(database), query, on_error="skip")
    assert rows == EXPECTED[:2] + EXPECTED[3:]
    assert source.account.skipped == {"empty tail": 1}
    assert source.account.read == 7


def test_binary_values_are_no_names(database):
    with pytest.raises(DataError, match=r"row 1: the tail is of type bytes"):
        facts(url_of(database), "SELECT 'a', 'b', x'00ff'")


def test_a_file_that_is_not_there_is_not_made(tmp_path):
    with pytest.raises(DataError, match=r"none\.db: no such database file"):
        facts(url_of(tmp_path / "none.db"))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(DataError, match="names no file"):
        facts("sqlite://")


def test_a_file_that_is_no_database(tmp_path):
    (tmp_path / "a.db").write_text("head,relation,tail\n" * 100)
    with pytest.raises(DataError, match="the database says: file is not a database"):
        facts(url_of(tmp_path / "a.db"))


@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM facts",
        "DROP TABLE facts",
        "/* SELECT */ INSERT INTO other VALUES (1)",
        "",
        "WITH x AS (SELECT 1) DELETE FROM facts",
        "WITH x AS (SELECT 1) INSERT INTO other SELECT 1 RETURNING x, x, x",
    ],
)
def test_nothing_is_written(database, query):
    before = database.read_bytes()
    with pytest.raises(DataError):
        facts(url_of(database), query)
    assert database.read_bytes() == before
    assert [path.name for path in database.parent.iterdir()] == [database.name]


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("not a url", "is not a connection URL"),
        ("postgresql://ada:secret@host:port/x", "is not a connection URL"),
        ("nosuch://ada:secret@host/x", "there is no database driver 'nosuch'"),
        ("postgresql+nosuch://ada:secret@host/x", r"there is no database driver 'postgresql\+nosuch'"),
        ("mysql+pymysql://ada:secret@host/x", "needs the Python package 'pymysql'"),
    ],
)
def test_addresses_that_lead_nowhere(url, message):
    with pytest.raises(DataError, match=message) as raised:
        facts(url)
    assert "secret" not in str(raised.value)


def test_a_wrong_query(database):
    with pytest.raises(DataError, match="the database says: no such table: fax"):
        facts(url_of(database), "SELECT * FROM fax")


# PostgreSQL


def programs() -> Path | None:
    folders = [
        Path(found).resolve().parent for name in ("postgres", "initdb") if (found := shutil.which(name))
    ]
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((f for f in folders if (f / "postgres").exists() and (f / "initdb").exists()), None)


def unprivileged(command: list[str]) -> list[str]:
    """The command as the user postgres where we are root, which the server refuses to run as."""
    return ["runuser", "-u", "postgres", "--", *command] if os.geteuid() == 0 else command


@pytest.fixture(scope="module")
def server():
    found = programs()
    if found is None:
        pytest.skip("there is no PostgreSQL server installed")
    if os.geteuid() == 0 and shutil.which("runuser") is None:
        pytest.skip("PostgreSQL does not run as root, and there is no runuser")
    folder = Path(tempfile.mkdtemp(prefix="dpmpn-postgres-"))  # short: the path of a socket is limited
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres")
        password = folder / "password"
        password.write_text(PASSWORD)
        password.chmod(0o644)
        data = str(folder / "data")
        make = [
            str(found / "initdb"),
            "-D",
            data,
            "-U",
            "ada",
            "-A",
            "scram-sha-256",
            "-E",
            "UTF8",
            "--no-sync",
        ]
        subprocess.run(
            unprivileged([*make, "--locale=C", f"--pwfile={password}"]),
            check=True,
            cwd=folder,
            capture_output=True,
        )
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        settings = [
            "-c",
            "listen_addresses=127.0.0.1",
            "-c",
            f"unix_socket_directories={folder}",
            "-c",
            "fsync=off",
        ]
        start = [str(found / "postgres"), "-D", data, "-p", str(port), *settings]
        process = subprocess.Popen(
            unprivileged(start), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            fill(wait_until_ready(port, process))
            yield port
        finally:
            process.terminate()
            process.wait(30)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def wait_until_ready(port, process):
    import psycopg

    for _ in range(300):
        assert process.poll() is None, "PostgreSQL does not start"
        try:
            return psycopg.connect(
                host="127.0.0.1", port=port, user="ada", password=PASSWORD, dbname="postgres", autocommit=True
            )
        except psycopg.OperationalError:
            time.sleep(0.1)
    raise AssertionError("PostgreSQL does not answer")


def fill(connection):
    with connection:
        connection.execute("CREATE TABLE facts (head int, relation text, tail text, day date)")
        connection.execute(
            "INSERT INTO facts SELECT i, 'next', 'n' || i + 1, date '2020-01-01' + i % 365 "
            "FROM generate_series(1, 120000) i"
        )
        connection.execute("CREATE SEQUENCE counter")


def address(port, password=PASSWORD, user="ada"):
    from urllib.parse import quote

    return f"postgresql://{user}:{quote(password, safe='')}@127.0.0.1:{port}/postgres"


def test_rows_of_postgres_are_streamed(server):
    source = SqlSource(address(server), ReadOptions(query=ALL))
    batches = list(source.batches())
    assert [batch.height for batch in batches] == [50_000, 50_000, 20_000]
    assert batches[0].row(0) == ("1", "next", "n2")
    assert batches[2].row(-1) == ("120000", "next", "n120001")
    assert PASSWORD not in source.account.source


def test_a_reader_that_stops_early_leaves_nothing_open(server):
    batches = SqlSource(address(server), ReadOptions(query=ALL)).batches()
    next(batches)
    batches.close()
    count = "SELECT 'a', 'b', count(*) FROM pg_stat_activity WHERE query LIKE '%FETCH%' AND state <> 'idle'"
    for _ in range(50):
        rows, _ = facts(address(server), count.replace("count(*)", "(count(*) - 1)::text"))
        if int(rows[0][2]) <= 0:
            break
        time.sleep(0.1)
    assert int(rows[0][2]) <= 0


def test_time_and_percent_signs_in_postgres(server):
    query = (
        "SELECT head, relation, tail, day FROM facts WHERE tail LIKE '%n3' AND head % 2 = 0 AND ':x' <> '%s'"
    )
    rows, _ = facts(address(server), query, time_column="day")
    assert rows == [("2", "next", "n3", "2020-01-03")]


def test_postgres_lists_its_tables(server):
    with pytest.raises(DataError, match=r"\(tables: facts\)"):
        facts(address(server), None)


def test_postgres_is_read_only(server):
    with pytest.raises(DataError, match="in a read-only transaction"):
        facts(address(server), "SELECT 'a', 'b', nextval('counter')")
    with pytest.raises(DataError, match="data-modifying"):
        facts(
            address(server),
            "WITH gone AS (DELETE FROM facts RETURNING *) SELECT head, relation, tail FROM gone",
        )
    rows, _ = facts(address(server), "SELECT 'a', 'b', count(*) FROM facts")
    assert rows == [("a", "b", "120000")]


def test_what_postgres_says(server):
    with pytest.raises(DataError, match=r'the database says: relation "fax" does not exist') as raised:
        facts(address(server), "SELECT * FROM fax")
    assert "\n" not in str(raised.value)
    with pytest.raises(DataError, match=r"the database says: .*password authentication failed") as raised:
        facts(address(server, password="wrong-Geheimnis"))
    assert "Geheimnis" not in str(raised.value)


def test_a_host_that_does_not_answer():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(DataError, match=r"the database says: .*refused") as raised:
        facts(address(port))
    assert PASSWORD not in str(raised.value)


def test_a_host_whose_name_is_unknown():
    with pytest.raises(DataError, match="the database says: "):
        facts("postgresql://ada@no-such-host.invalid/x")
