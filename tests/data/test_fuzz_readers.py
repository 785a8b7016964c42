"""Readers of files against anything at all: facts come out, or a DataError; bodies can be called for longer."""

import csv
import gzip
import io
import json
import os
import re
import sqlite3
import tempfile
import zipfile
from contextlib import closing
from pathlib import Path

import polars as pl
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpmpn.data.importer import dataset_from, load_dataset
from dpmpn.data.labels import read_labels
from dpmpn.data.names import AROUND
from dpmpn.data.sources import separated
from dpmpn.data.sources.base import COLUMNS, LABELS, ReadOptions, text_chunks
from dpmpn.data.sources.formats import open_source
from dpmpn.data.spreadsheets import unmarked_text
from dpmpn.errors import DataError

NAMES = [
    "f.tsv",
    "f.csv",
    "f.txt",
    "f.jsonl",
    "f.json",
    "f.parquet",
    "f.arrow",
    "f",
    "f.tsv.gz",
    "f.zst",
    "f.zip",
    "f.nt",
    "f.nq",
    "f.ttl",
    "f.trig",
    "f.rdf",
    "f.jsonld",
]
FORMATS = [None, "tsv", "csv", "txt", "jsonl", "parquet", "arrow", "nt", "ttl", "rdfxml", "jsonld"]

# Few in the test run; DPMPN_FUZZ_EXAMPLES=100000 tries longer.
quick = settings(
    max_examples=int(os.environ.get("DPMPN_FUZZ_EXAMPLES", "60")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)

STATEMENTS = b'<u:a> _:b "c"@de ^^<u:t> . @prefix : <u:> <rdf:RDF </rdf:RDF> <?xml "@id" <<u:a> sep=;'
MARKS = b'\t , ; | " "" \n \r \r\n \0 \xff \xef\xbb\xbf # { } [ ] : \\'
WORDS = b'a 1 b\xc3\xa9 head relation tail "head" null'
pieces = st.sampled_from([b" ", *MARKS.split(b" "), *WORDS.split(b" "), *STATEMENTS.split(b" ")])
anything = st.one_of(st.binary(max_size=200), st.lists(pieces, max_size=60).map(b"".join))
skipping = st.sampled_from(["stop", "skip"])
text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=6)
name = text.filter(lambda field: field.strip())
plain = st.text(st.sampled_from("abQ1é\t,;|\"'# \n"), min_size=1, max_size=5).filter(
    lambda field: field.strip()
)
rows = st.lists(st.tuples(plain, plain, plain), min_size=1, max_size=6)


def read(path, **options):
    """All facts of a source; frames are checked against what every source promises."""
    source = open_source(str(path), ReadOptions(**options))
    frames = list(source.batches())
    for frame in frames:
        assert frame.schema == dict.fromkeys(COLUMNS, pl.String)
        assert frame.height and not any(column.null_count() for column in frame)
        assert all(field.strip(" \t\n\r") and "\0" not in field for row in frame.rows() for field in row)
    n_facts = sum(frame.height for frame in frames)
    assert source.account.read == n_facts + sum(source.account.skipped.values())
    done, of = source.position()
    assert of is None or done == of
    return [row for frame in frames for row in frame.rows()]


def never_another_error(content: bytes, name: str, format: str | None, on_error: str) -> None:
    """Whatever stands in a file, facts or a DataError come out."""
    with tempfile.TemporaryDirectory() as folder:
        path, train = Path(folder) / name, Path(folder) / name.replace("f", "train", 1)
        for file in (path, train):
            file.write_bytes(content)
        readings = {
            path: lambda: read(path, format=format, on_error=on_error),
            folder: lambda: load_dataset(folder),
        }
        for where, reading in readings.items():
            try:
                reading()
            except DataError as error:
                assert str(where) in str(error) and "\n" not in str(error)


def mutated(content: bytes, changes: list[tuple[int, int, int]]) -> bytes:
    """The content with bytes changed, removed and doubled."""
    for at, kind, byte in changes:
        at %= len(content) or 1
        content = [
            content[:at] + bytes([byte]) + content[at + 1 :],
            content[:at] + content[at + 1 + byte % 16 :],
            content[:at] + content[at : at + byte] * 2 + content[at + byte :],
            content[:at],
        ][kind]
    return content


def same_as_csv_module(content: str, separator: str, chunk: int) -> None:
    """Separated text is read as the csv module reads it, in however small pieces."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "facts.csv"
        path.write_bytes(content.encode())
        options = ReadOptions(separator=separator, header=False, columns=("1", "2", "3"))
        before = separated.text_chunks
        separated.text_chunks = lambda stream: text_chunks(stream, chunk)
        try:
            source = separated.SeparatedSource(path, options)
            got = [row for frame in source.batches() for row in frame.rows()]
        except DataError:
            return
        finally:
            separated.text_chunks = before
    expected = [
        row
        for row in csv.reader(io.StringIO(content, newline=""), delimiter=separator, skipinitialspace=True)
        if "".join(row).strip()
    ]
    comments = source.account.skipped.get("comment", 0)
    expected = [
        tuple(row[:3]) for row in expected if not (comments and row[0].startswith("#") and len(row) < 3)
    ]
    assert got == [
        tuple(unmarked_text(field.strip(AROUND)) for field in row) for row in expected if len(row) == 3
    ]


def written_and_read(facts: list[tuple[str, str, str]], separator: str, line_end: str, chunk: int) -> None:
    """What the csv module writes comes back without white space around, all of it quoted or what needs it."""
    for quoting in (csv.QUOTE_ALL, csv.QUOTE_MINIMAL):
        file = io.StringIO(newline="")
        writer = csv.writer(file, delimiter=separator, lineterminator=line_end, quoting=quoting)
        writer.writerow(COLUMNS)
        writer.writerows(facts)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "facts.csv"
            path.write_bytes(file.getvalue().encode())
            before = separated.text_chunks
            separated.text_chunks = lambda stream: text_chunks(stream, chunk)
            try:
                expected = [tuple(unmarked_text(field.strip(AROUND)) for field in fact) for fact in facts]
                assert read(path, separator=separator) == expected
            finally:
                separated.text_chunks = before


def valid_files() -> dict[str, bytes]:
    """A good file of each kind."""
    facts = [(f"Q{i}", f"P{i % 3}", f"é{i * i}") for i in range(40)]
    tsv = "".join("\t".join(row) + "\n" for row in facts).encode()
    quoted = "".join(",".join(f'"{field}"' for field in row) + "\r\n" for row in facts).encode()
    objects = [dict(zip(COLUMNS, row, strict=True)) for row in facts]
    frame = pl.DataFrame(objects)
    parquet, arrow, archive = io.BytesIO(), io.BytesIO(), io.BytesIO()
    frame.write_parquet(parquet)
    frame.write_ipc(arrow)
    statements = [(f"<u:{head}>", f"<u:{relation}>", f"<u:{tail}>") for head, relation, tail in facts]
    lines = "".join(f"{' '.join(row)} .\n" for row in statements).encode()
    linked = [{"@id": f"u:{h}", f"u:{r}": [{"@id": f"u:{t}"}]} for h, r, t in facts]
    namespace = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
    described = "".join(
        f'<rdf:Description rdf:about="u:{h}"><u:{r} rdf:resource="u:{t}"/></rdf:Description>\n'
        for h, r, t in facts
    )
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("facts.tsv", tsv)
    return {
        "f.tsv": tsv,
        "f.csv": quoted,
        "f.jsonl": "".join(json.dumps(item) + "\n" for item in objects).encode(),
        "f.json": json.dumps(objects).encode(),
        "f.parquet": parquet.getvalue(),
        "f.arrow": arrow.getvalue(),
        "f.tsv.gz": gzip.compress(tsv, mtime=0),
        "f.tsv.zst": zstandard.ZstdCompressor().compress(tsv),
        "f.zip": archive.getvalue(),
        "f.txt": b"\xff\xfe" + b"sep=\t\n".decode().encode("utf-16-le") + tsv.decode().encode("utf-16-le"),
        "f.nt": lines,
        "f.trig": b"<u:g> {\n" + lines + b"}\n",
        "f.ttl": b"@prefix u: <u:> .\n" + re.sub(rb"<u:(\w+)>", rb"u:\1", lines),
        "f.jsonld": json.dumps(linked).encode(),
        "f.rdf": f'<rdf:RDF xmlns:rdf="{namespace}" xmlns:u="u:">{described}</rdf:RDF>'.encode(),
    }


VALID = valid_files()
changes = st.lists(
    st.tuples(st.integers(0, 1 << 16), st.integers(0, 3), st.integers(0, 255)), min_size=1, max_size=4
)


@quick
@given(anything, st.sampled_from(NAMES), st.sampled_from(FORMATS), skipping)
def test_anything_gives_facts_or_a_data_error(content, name, format, on_error):
    never_another_error(content, name, format, on_error)


@quick
@given(st.sampled_from(sorted(set(VALID) - {"f.parquet", "f.arrow"})), changes, skipping)
def test_a_damaged_file_gives_facts_or_a_data_error(name, changes, on_error):
    never_another_error(mutated(VALID[name], changes), name, None, on_error)


@quick
@given(st.sampled_from(["f.parquet", "f.arrow"]), changes, skipping)
def test_a_damaged_table_gives_facts_or_a_data_error(name, changes, on_error):
    never_another_error(mutated(VALID[name], changes), name, None, on_error)


def test_the_undamaged_files_are_read():
    with tempfile.TemporaryDirectory() as folder:
        for name, content in VALID.items():
            path = Path(folder) / name
            path.write_bytes(content)
            assert len(read(path)) == 40


@quick
@given(
    st.lists(
        st.sampled_from(["a", "é", " ", "\t", ",", ";", '"', '""', '"b"', "\n", "\r\n", "\r", "#"]),
        max_size=40,
    ),
    st.sampled_from(",;|"),
    st.sampled_from([4, 16, 1 << 20]),
)
def test_separated_text_is_read_as_the_csv_module_does(parts, separator, chunk):
    same_as_csv_module("".join(parts), separator, chunk)


@quick
@given(rows, st.sampled_from(",;|"), st.sampled_from(["\n", "\r\n"]), st.sampled_from([16, 1 << 20]))
def test_what_the_csv_module_writes_is_read(facts, separator, line_end, chunk):
    written_and_read(facts, separator, line_end, chunk)


@quick
@given(st.lists(st.tuples(name, name, name), min_size=1, max_size=12), st.booleans(), st.booleans())
def test_json_comes_back(facts, as_arrays, ascii_only):
    lines = [
        json.dumps(row if as_arrays else dict(zip("spo", row, strict=True)), ensure_ascii=ascii_only)
        for row in facts
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "facts.jsonl"
        path.write_text("\n".join(lines), "utf-8", newline="\n")
        assert read(path) == facts
        path.write_text("[" + ",\n".join(lines) + "]", "utf-8", newline="\n")
        assert read(path) == facts


def sqlite_file() -> bytes:
    """A good database."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "f.db"
        with closing(sqlite3.connect(path)) as database:
            database.execute("CREATE TABLE facts (head, relation, tail)")
            rows = ((f"Q{i}", "P", [i / 2, None, b"x", f"é{i}"][i % 4]) for i in range(40))
            database.executemany("INSERT INTO facts VALUES (?, ?, ?)", rows)
            database.commit()
        return path.read_bytes()


DATABASE = sqlite_file()


@quick
@given(changes, skipping)
def test_a_damaged_database_gives_facts_or_a_data_error(changes, on_error):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "f.db"
        path.write_bytes(mutated(DATABASE, changes))
        try:
            query = "SELECT head, relation, tail FROM facts"
            list(open_source(f"sqlite:///{path}", ReadOptions(query=query, on_error=on_error)).batches())
        except DataError as error:
            assert str(path) in str(error) and "\n" not in str(error)


@quick
@given(anything, st.sampled_from(["l.csv", "l.tsv", "l.json", "l.jsonl", "l.txt.gz", "l.parquet"]))
def test_labels_are_read_or_refused(content, name):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        try:
            labels = read_labels(path)
        except DataError as error:
            assert str(path) in str(error) and "\n" not in str(error)
        else:
            assert labels.schema == LABELS and labels.height
            dataset_from([("a", "r", "b")], valid=[], labels=labels)
