"""Labels from files in the shapes people have them."""

import gzip
import json

import polars as pl
import pytest

from dpmpn.data.labels import read_labels
from dpmpn.errors import DataError


def written(path, text):
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return read_labels(path).rows()


def test_tabs_without_a_header(tmp_path):
    assert written(tmp_path / "n.tsv", 'Q1\tBerlin "x"\r\nQ2\tÜ\n\n') == [
        ("Q1", 'Berlin "x"', None, None),
        ("Q2", "Ü", None, None),
    ]


def test_csv_with_a_header_in_any_order(tmp_path):
    text = 'label,ID,ignored,comment\n"Berlin",Q1,x,"a city,\ncapital"\n'
    assert written(tmp_path / "n.csv.gz", text) == [("Q1", "Berlin", "a city,\ncapital", None)]


def test_json_mapping_list_and_lines(tmp_path):
    assert written(tmp_path / "a.json", '{"Q1": "Berlin", "Q2": {"label": "Ulm", "type": ["a", "b"]}}') == [
        ("Q1", "Berlin", None, None),
        ("Q2", "Ulm", None, "a | b"),
    ]
    rows = [{"id": "Q1", "name": "Berlin", "description": "x"}]
    expected = [("Q1", "Berlin", "x", None)]
    assert written(tmp_path / "b.json", json.dumps(rows)) == expected
    assert written(tmp_path / "c.jsonl", json.dumps(rows[0]) + "\n") == expected


def test_parquet(tmp_path):
    pl.DataFrame({"name": ["Berlin"], "id": [7]}).write_parquet(tmp_path / "n.parquet")
    assert read_labels(tmp_path / "n.parquet").rows() == [("7", "Berlin", None, None)]


def test_ids_have_no_white_space_around(tmp_path):
    expected = [("Q1", "Berlin", None, None)]
    assert written(tmp_path / "n.csv", "id, name\n Q1 , Berlin\n") == expected
    assert written(tmp_path / "n.csv", 'id, name\n"Q1", "Berlin"\n') == expected
    assert written(tmp_path / "n.tsv", "Q1 \tBerlin\n") == expected
    assert written(tmp_path / "n.jsonl", '{"id": " Q1", "name": "Berlin"}\n') == expected
    pl.DataFrame({"id": [" Q1 "], "name": ["Berlin"]}).write_parquet(tmp_path / "n.parquet")
    assert read_labels(tmp_path / "n.parquet").rows() == expected


def test_quoted_text_with_tabs(tmp_path):
    text = '"id"\t"name"\n"Q1"\t"Berlin ""x"""\n"Q2"\t"a\tb"\n'
    assert written(tmp_path / "n.tsv", text) == [
        ("Q1", 'Berlin "x"', None, None),
        ("Q2", "a\tb", None, None),
    ]


def test_of_two_columns_of_one_meaning_the_first_that_is_not_empty_counts(tmp_path):
    rows = [("Q1", "", "Berlin", "x"), ("Q2", "Ulm", "", "x"), ("Q3", "a", "b", "x"), ("Q4", None, None, "x")]
    expected = [
        ("Q1", "Berlin", None, "x"),
        ("Q2", "Ulm", None, "x"),
        ("Q3", "a", None, "x"),
        ("Q4", None, None, "x"),
    ]
    columns = ["id", "name", "label", "type"]
    lines = "".join(",".join(field or "" for field in row) + "\n" for row in rows)
    assert written(tmp_path / "n.csv", ",".join(columns) + "\n" + lines) == expected
    objects = [dict(zip(columns, row, strict=True)) for row in rows]
    assert written(tmp_path / "n.json", json.dumps(objects)) == expected
    pl.DataFrame(objects).write_parquet(tmp_path / "n.parquet")
    assert read_labels(tmp_path / "n.parquet").rows() == expected


def test_types_of_a_table_can_be_lists(tmp_path):
    pl.DataFrame({"id": ["Q1"], "type": [["a", "b"]]}).write_parquet(tmp_path / "n.parquet")
    assert read_labels(tmp_path / "n.parquet").rows() == [("Q1", None, None, "a | b")]


def test_a_table_of_too_many_rows_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    path = tmp_path / "n.parquet"
    frame = pl.DataFrame({name: pl.repeat("x", 5_000_000, eager=True) for name in ("id", "name")})
    frame.write_parquet(path)
    monkeypatch.setattr(pl.LazyFrame, "slice", None)
    monkeypatch.setattr(pl, "read_parquet", None)
    with pytest.raises(DataError, match=r"n\.parquet: cannot be read \(it says it has 5,000,000 rows"):
        read_labels(path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("n.tsv", b"Q1\tBerlin\nQ2\n", r"n\.tsv, line 2: 1 columns instead of 2"),
        ("n.tsv", b"Q1\tBerlin\nQ2\t\xff\n", r"n\.tsv, line 2: byte 0xff at position 4 is not UTF-8"),
        ("n.csv", b"a,b,c,d,e\n", "5 columns and no header"),
        ("n.csv", b'id,name\n"Q1', "unexpected end|columns instead"),
        ("n.json", b"[" * 100_000, "not valid JSON"),
        ("n.json", b'{"Q1": [1', "not valid JSON"),
        ("n.json", b"[3]", "is not an object"),
        ("n.json", b'[{"name": "x"}]', "has no 'id'"),
        ("n.tsv", b"", "is empty"),
        ("n.parquet", b"PAR1 and no more", "cannot be read"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_labels(tmp_path / name)


def test_labels_as_excel_writes_them(tmp_path):
    (tmp_path / "l.csv").write_bytes("sep=;\r\nid;name\r\nQ1;'=Équipe\r\n".encode("utf-16"))
    assert read_labels(tmp_path / "l.csv").rows() == [("Q1", "=Équipe", None, None)]
