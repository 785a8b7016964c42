"""Tables hold what was put into them, whatever their format."""

import gzip
import json
import tempfile
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmpn.ask.tables import table_format, write_table
from dpmpn.data.spreadsheets import unmarked
from dpmpn.errors import DataError, RunError

FRAME = pl.DataFrame(
    {
        "head": ["a,b", 'say "hi"', "two\nlines", "ünï"],
        "probability": [0.25, 1e-9, 1.0, None],
        "known": [True, False, None, True],
        "why": [[{"facts": [["a", "r", "b"]], "share": 0.5}], [], None, [{"facts": [], "share": 1.0}]],
    }
)
# Line ends within a field: a reader of CSV may take CR LF for LF.
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), min_size=1)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.CSV.gz"])
def test_separated_text_has_one_header_and_nested_columns_as_json(tmp_path: Path, name: str) -> None:
    write_table(tmp_path / name, [FRAME, FRAME])
    content = (tmp_path / name).read_bytes()
    content = gzip.decompress(content) if name.endswith(".gz") else content
    separator = "\t" if "tsv" in name else ","
    read = pl.read_csv(content, separator=separator)
    assert read.drop("why").equals(pl.concat([FRAME, FRAME]).drop("why"))
    why = [text and json.loads(text) for text in read["why"]]
    assert why == FRAME["why"].to_list() * 2


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson", "a.jsonl.gz"])
def test_json_lines(tmp_path: Path, name: str) -> None:
    write_table(tmp_path / name, [FRAME, FRAME])
    content = (tmp_path / name).read_bytes()
    content = gzip.decompress(content) if name.endswith(".gz") else content
    assert [json.loads(line) for line in content.split(b"\n")[:-1]] == FRAME.to_dicts() * 2


def test_parquet_keeps_types_and_order(tmp_path: Path) -> None:
    frames = [FRAME.with_columns(number=pl.lit(i)) for i in range(300)]
    write_table(tmp_path / "a.parquet", iter(frames))
    assert pl.read_parquet(tmp_path / "a.parquet").equals(pl.concat(frames))


@pytest.mark.parametrize("name", ["a.csv.gz", "a.parquet", "a.jsonl"])
def test_the_same_rows_are_the_same_bytes(tmp_path: Path, name: str) -> None:
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
        write_table(tmp_path / folder / name, [FRAME] * 50)
    assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(st.tuples(TEXT, st.integers(-9, 9)), max_size=4), min_size=1, max_size=4))
def test_texts_come_back(frames: list[list[tuple[str, int]]]) -> None:
    made = [pl.DataFrame(rows, {"text": pl.String, "n": pl.Int64}, orient="row") for rows in frames]
    with tempfile.TemporaryDirectory() as folder:
        for name in ("a.csv", "a.tsv", "a.jsonl", "a.parquet"):
            path = Path(folder) / name
            write_table(path, made)
            read = {
                "csv": lambda path=path: pl.read_csv(path, schema=made[0].schema),
                "tsv": lambda path=path: pl.read_csv(path, schema=made[0].schema, separator="\t"),
                "jsonl": lambda path=path: pl.DataFrame(
                    [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]], made[0].schema
                ),
                "parquet": lambda path=path: pl.read_parquet(path),
            }[table_format(path)]()
            if name in ("a.csv", "a.tsv"):
                read = read.with_columns(unmarked(read["text"]))
            assert read.equals(pl.concat(made))


def test_frames_are_not_gathered_in_memory(tmp_path: Path) -> None:
    alive = []

    def frames():
        for _ in range(5):
            alive.append(next(tmp_path.glob(".*.partial")).stat().st_size)
            yield pl.DataFrame({"text": ["x" * 1000] * 100})

    write_table(tmp_path / "a.csv", frames())
    assert alive == sorted(alive) and alive[-1] > 300_000  # earlier frames were on the disk


def test_a_table_without_rows_has_its_columns(tmp_path: Path) -> None:
    for name in ("a.csv", "a.parquet"):
        write_table(tmp_path / name, [FRAME.clear()])
    assert (tmp_path / "a.csv").read_text() == "head,probability,known,why\n"
    assert pl.read_parquet(tmp_path / "a.parquet").schema == FRAME.schema


@pytest.mark.parametrize("name", ["a", "a.txt", "a.xlsx", "a.parquet.gz", "a.gz", ".csv"])
def test_other_names_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match=r"\.csv, \.tsv, \.jsonl"):
        write_table(tmp_path / name, [FRAME])


def test_a_table_that_fails_is_not_there(tmp_path: Path) -> None:
    def frames():
        yield FRAME
        raise RunError("a part is broken")

    for name in ("a.csv", "a.parquet"):
        with pytest.raises(RunError, match="a part is broken"):
            write_table(tmp_path / name, frames())
    assert not list(tmp_path.iterdir())
