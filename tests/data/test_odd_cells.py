"""What may stand in a cell, through every format: the same names come out, and the same cells are refused."""

import csv
import datetime
import io
import json
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from dpmpn.data.importer import read_dataset
from dpmpn.data.sources.base import ReadOptions
from dpmpn.data.sources.formats import source_of
from dpmpn.errors import DataError

NAN, INFINITE = float("nan"), float("inf")
REFUSED = None  # no name: its row is left out with --skip-bad
CELLS: dict[str, tuple[Any, str | None]] = {
    "plain": ("x", "x"),
    "empty": ("", REFUSED),
    "null": (None, REFUSED),
    "white space": ("\u3000 ", REFUSED),
    "mark alone": ("\ufeff", REFUSED),
    "nan": (NAN, REFUSED),
    "infinite": (INFINITE, REFUSED),
    "text nan": ("nan", "nan"),
    "whole number": (7, "7"),
    "number": (0.5, "0.5"),
    "yes": (True, "true"),
    "date": (datetime.date(2024, 2, 29), "2024-02-29"),
    "time": (datetime.datetime(2024, 2, 29, 12, 30), "2024-02-29 12:30:00"),
    "bytes": (b"\x89PNG\xff", REFUSED),
    "array": (["a", "b"], REFUSED),
    "space around": (" \u00a0x\t", "x"),
    "decomposed": ("Cafe\u0301", "Caf\u00e9"),
    "byte order mark": ("\ufeffx", "x"),
    "direction": ("\u202ex\u200f", "\u202ex\u200f"),
    "zero width": ("a\u200bb", "a\u200bb"),
    "escape": ("\x1b[31mx\x07", "\x1b[31mx\x07"),
    "NUL": ("a\0b", REFUSED),
    "half a character": ("a\ud800", REFUSED),
    "very long": ("x" * (1 << 20) + "y", REFUSED),
    "long": ("x" * 100_000, "x" * 100_000),
    "formula": ("=1+1", "=1+1"),
}
AS_TEXT = {REFUSED: "", True: "true", 7: "7", 0.5: "0.5"}
UNTYPED = {name: value for name, (value, _) in CELLS.items() if isinstance(value, str)}


def text_of(value: Any) -> bytes:
    text = AS_TEXT.get(value, value) if not isinstance(value, list) else None
    if not isinstance(text, str):
        pytest.skip("separated text has no such cell")
    return text.encode("utf-8", "surrogatepass")


def separated(separator: str) -> Callable[[Path, Any], Any]:
    def write(path: Path, value: Any) -> Path:
        cell = text_of(value)
        if separator.encode() in cell:
            pytest.skip("the cell would be two")
        between = separator.encode()
        rows = [b"head", b"relation", b"tail"], [b"a", b"r", b"b"], [b"c", b"r", cell], [b"d", b"r", b"e"]
        path.write_bytes(b"".join(between.join(row) + b"\n" for row in rows))
        return path

    return write


def rows_of(value: Any) -> list[tuple[Any, Any, Any]]:
    return [("a", "r", "b"), ("c", "r", value), ("d", "r", "e")]


def json_cell(value: Any) -> Any:
    if isinstance(value, float) and not abs(value) < INFINITE:
        pytest.skip("JSON has no such number")
    if isinstance(value, bytes | datetime.date):
        pytest.skip("JSON has no such value")
    return value


def json_lines(path: Path, value: Any) -> Path:
    objects = (dict(zip(("head", "relation", "tail"), row, strict=True)) for row in rows_of(json_cell(value)))
    path.write_text("".join(json.dumps(each) + "\n" for each in objects))
    return path


def json_array(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(rows_of(json_cell(value))))
    return path


def arrow_table(value: Any) -> pa.Table:
    """A table of which the last column is of the cell's type, with no other value."""
    if isinstance(value, str) and value.encode("utf-8", "surrogatepass") != value.encode("utf-8", "replace"):
        # Text that is not Unicode, which other programs may write.
        content = pa.array([b"b", value.encode("utf-8", "surrogatepass"), b"e"], pa.binary())
        tails = pa.StringArray.from_buffers(3, content.buffers()[1], content.buffers()[2])
    elif isinstance(value, list):
        pytest.skip("a column of arrays is refused as a whole")
    else:
        other = (
            "b" if value is None or isinstance(value, str) else b"b" if isinstance(value, bytes) else value
        )
        other = other if other == other and other not in (INFINITE,) else 1.5
        tails = pa.array([other, value, other])
    return pa.table({"head": ["a", "c", "d"], "relation": ["r"] * 3, "tail": tails})


def parquet(path: Path, value: Any) -> Path:
    pyarrow.parquet.write_table(arrow_table(value), path)
    return path


def feather(path: Path, value: Any) -> Path:
    pyarrow.feather.write_feather(arrow_table(value), str(path), compression="uncompressed")
    return path


def sqlite(path: Path, value: Any) -> str:
    if isinstance(value, list | datetime.date) or value is True:
        pytest.skip("SQLite has no such value")
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE facts (head, relation, tail)")
        if isinstance(value, str):
            cell = value.encode("utf-8", "surrogatepass").hex()
            database.execute(
                f"INSERT INTO facts VALUES ('a', 'r', 'b'), ('c', 'r', CAST(x'{cell}' AS TEXT)), ('d', 'r', 'e')"
            )
        else:
            database.executemany("INSERT INTO facts VALUES (?, ?, ?)", rows_of(value))
    database.close()
    return f"sqlite:///{path}"


def polars_frame(path: Path, value: Any) -> pl.DataFrame:
    if isinstance(value, list | bytes) or value == "a\ud800":
        pytest.skip("a column of such values is refused as a whole, or cannot be")
    other = "b" if value is None or isinstance(value, str) else 1.5 if isinstance(value, float) else value
    return pl.DataFrame({"head": ["a", "c", "d"], "relation": ["r"] * 3, "tail": [other, value, other]})


FORMATS: dict[str, Callable[[Path, Any], Any]] = {
    "facts.csv": separated(","),
    "facts.tsv": separated("\t"),
    "facts.jsonl": json_lines,
    "facts.json": json_array,
    "facts.parquet": parquet,
    "facts.arrow": feather,
    "facts.db": sqlite,
    "polars": polars_frame,
    "pandas": lambda _, value: pd.DataFrame(
        rows_of(value), columns=["head", "relation", "tail"], dtype=object
    ),
    "tuples": lambda _, value: rows_of(value),
}
QUERY = "SELECT head, relation, tail FROM facts"


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("cell", CELLS)
def test_a_cell_is_treated_alike_in_every_format(cell: str, format: str, tmp_path: Path) -> None:
    value, expected = CELLS[cell]
    given = FORMATS[format](tmp_path / format, value)
    query = QUERY if format.endswith(".db") else None
    if expected is not REFUSED:
        source = source_of(given, ReadOptions(query=query))
        dataset, _ = read_dataset({"train": [source], "valid": []})
        assert expected in dataset.graph.entities.names and source.account.read == 3
        return
    with pytest.raises(DataError) as caught:
        list(source_of(given, ReadOptions(query=query)).batches())
    if (cell, format) == ("half a character", "facts.arrow"):
        assert "cannot be read (invalid utf" in str(caught.value)
        return  # which row it is cannot be told
    place = r"line 3" if format in ("facts.csv", "facts.tsv") else r"(row|line|item) 2"
    assert re.search(place, str(caught.value)), str(caught.value)
    assert len(str(caught.value)) < 700 and "\n" not in str(caught.value)
    if cell == "very long" and format in ("facts.csv", "facts.tsv", "facts.jsonl"):
        return  # no text has such lines: it is refused
    source = source_of(given, ReadOptions(query=query, on_error="skip"))
    facts = pl.concat(source.batches())
    assert facts["head"].to_list() == ["a", "d"]
    assert source.account.read == 3 and sum(source.account.skipped.values()) == 1
    assert source.numbers() is not None


LINES = "head,relation,tail\nCafé,r,b\nc,r,d\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be"])
@pytest.mark.parametrize("line", ["", "sep=;\n", '"sep=;"\r\n', "SEP=;\n"])
@pytest.mark.parametrize("name", ["facts.csv", "facts.txt"])
def test_tables_as_excel_writes_them(encoding: str, line: str, name: str, tmp_path: Path) -> None:
    """UTF-16 with a mark, the separator in the first line: neither becomes a fact."""
    text = line + (LINES.replace(",", ";") if line else LINES)
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    (tmp_path / name).write_bytes((mark + text).encode(encoding))
    source = source_of(tmp_path / name)
    assert pl.concat(source.batches()).rows() == [("Café", "r", "b"), ("c", "r", "d")]
    assert list(source.numbers()) == ([3, 4] if line else [2, 3])


def test_a_separator_that_is_given_goes_before_the_one_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "facts.csv").write_text("sep=;\na|r|b\n")
    assert pl.concat(source_of(tmp_path / "facts.csv", ReadOptions(separator="|")).batches()).rows() == [
        ("a", "r", "b")
    ]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_files_that_were_put_together(packed: bool, encoding: str, tmp_path: Path) -> None:
    """The marks and headers of later ones are no facts."""
    import gzip

    content = LINES.encode(encoding) + 'head,relation,tail\n"e",r,f\n'.encode(encoding)
    path = tmp_path / ("facts.csv.gz" if packed else "facts.csv")
    path.write_bytes(gzip.compress(content) if packed else content)
    source = source_of(path)
    assert pl.concat(source.batches()).rows() == [("Café", "r", "b"), ("c", "r", "d"), ("e", "r", "f")]
    assert source.account.skipped == {"header again": 1}
    assert source.account.examples["header again"].endswith("line 4")


def test_marks_in_lines_of_json_and_statements(tmp_path: Path) -> None:
    (tmp_path / "f.jsonl").write_text('\ufeff["a","r","b"]\n\ufeff["c","r","d"]\n', "utf-8")
    assert pl.concat(source_of(tmp_path / "f.jsonl").batches()).rows() == [("a", "r", "b"), ("c", "r", "d")]
    (tmp_path / "f.nt").write_text("<u:a> <u:r> <u:b> .\n\ufeff<u:c> <u:r> <u:d> .\n", "utf-8")
    assert pl.concat(source_of(tmp_path / "f.nt").batches()).rows()[1] == ("u:c", "u:r", "u:d")


@pytest.mark.parametrize("cut", [1, 3])
def test_half_a_character_of_utf_16_is_a_matter_of_its_line(cut: int, tmp_path: Path) -> None:
    lines = (
        "a,r,b\n".encode("utf-16")
        + "c,r,".encode("utf-16-le")
        + b"\x00\xd8"
        + "\nd,r,e\n".encode("utf-16-le")
    )
    (tmp_path / "f.csv").write_bytes(lines)
    with pytest.raises(DataError, match=r"line 2: byte 0xed .* is not UTF-8"):
        list(source_of(tmp_path / "f.csv").batches())
    source = source_of(tmp_path / "f.csv", ReadOptions(on_error="skip"))
    assert pl.concat(source.batches())["head"].to_list() == ["a", "d"]
    (tmp_path / "f.csv").write_bytes(lines[:-cut])
    with pytest.raises(DataError, match="cut off"):
        list(source_of(tmp_path / "f.csv", ReadOptions(on_error="skip")).batches())


def test_numbers_of_facts_in_quoted_text(tmp_path: Path) -> None:
    file = io.StringIO(newline="")
    csv.writer(file, lineterminator="\n").writerows(
        [("a\nb\nc", "r", "d"), ("e", "r", "f"), ("g", "r\n", "h"), ("i", "r", "j")]
    )
    (tmp_path / "f.csv").write_text(file.getvalue())
    source = source_of(tmp_path / "f.csv")
    assert len(pl.concat(source.batches())) == 4
    assert list(source.numbers()) == [1, 4, 5, 7]
