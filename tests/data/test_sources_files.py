import json
import os
import re

import polars as pl
import pytest

from dpmpn.data.sources import json_lines, parquet, separated
from dpmpn.data.sources.base import LABELS, LONGEST_LINE, ReadOptions, text_chunks
from dpmpn.data.sources.formats import open_source
from dpmpn.data.sources.json_lines import JsonLinesSource
from dpmpn.data.sources.parquet import ParquetSource
from dpmpn.data.sources.separated import SeparatedSource
from dpmpn.errors import DataError

FACTS = [("a", "r", "b"), ("c", "r", "d")]


def write(folder, content, name="facts.tsv"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def rows(source):
    return [row for frame in source.batches() for row in frame.drop("provenance", strict=False).rows()]


def read(path, **options):
    return rows(open_source(str(path), ReadOptions(**options)))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("f.tsv", "a\tr\tb\nc\tr\td\n"),
        ("f.txt", "a\tr\tb\r\nc\tr\td"),
        ("f.txt", "a r b\nc r d\n"),
        ("f.txt", "a  r\tb\nc r d\n"),
        ("f.txt", "a,r,b\nc,r,d\n"),
        ("f", "a|r|b\nc|r|d\n"),
        ("f.csv", "a,r,b\nc,r,d\n"),
        ("f.csv", "a;r;b\nc;r;d\n"),
        ("f.csv", "a\tr\tb\nc\tr\td\n"),
        ("f.csv", '"a","r",b\r\n"c",r,"d"\r\n'),
        ("f.tsv", '"a"\tr\t"b"\n"c"\tr\t"d"\n'),
        ("f.csv", "\ufeffsubject,predicate,object\na,r,b\nc,r,d\n"),
        ("f.tsv", "#head\trelation\ttail\na\tr\tb\nc\tr\td\n"),
        ("f.tsv", "# made by hand\n\nhead\trelation\ttail\na\tr\tb\n\n# more\nc\tr\td\n"),
        ("f.csv", "Target,Type,Source,weight\nb,r,a,1\nd,r,c,\n"),
        (
            "f.jsonl",
            '{"head":"a","relation":"r","tail":"b"}\n\n{"tail":"d","head":"c","relation":"r","x":[1]}\n',
        ),
        ("f.ndjson", '["a","r","b"]\n["c","r","d"]'),
        ("f.json", '[{"s":"a","p":"r","o":"b"},\n {"s":"c","p":"r","o":"d"}]\n'),
        ("f.json", '[["a","r","b"],["c","r","d"]]'),
        ("f", '{"from":"a","edge":"r","to":"b"}\n{"from":"c","edge":"r","to":"d"}\n'),
    ],
)
def test_layouts_found_out(tmp_path, name, content):
    assert read(write(tmp_path, content, name)) == FACTS


@pytest.mark.parametrize(
    ("content", "options"),
    [
        ("b\tr\ta\nd\tr\tc\n", {"columns": ("3", "2", "1")}),
        ("x\ty\tz\na\tr\tb\nc\tr\td\n", {"header": True}),
        ("n,z,y,x\n1,b,r,a\n2,d,r,c\n", {"columns": ("x", "y", "z")}),
        ("a~r~b\nc~r~d\n", {"separator": "~"}),
        ("a\tr\tb\nc\tr\td\n", {"separator": "\\t", "format": "csv"}),
        ("a,r,b,2020\nc,r,d,2021\n", {"columns": ("1", "2", "3"), "format": "csv"}),
    ],
)
def test_layouts_asked_for(tmp_path, content, options):
    assert read(write(tmp_path, content), **options) == FACTS


def test_headers_can_be_facts(tmp_path):
    path = write(tmp_path, "head\trelation\ttail\na\tr\tb\n")
    assert read(path) == [("a", "r", "b")]
    assert read(path, header=False) == [("head", "relation", "tail"), ("a", "r", "b")]


def test_headers_with_other_names(tmp_path):
    for content, columns in {
        "item,property,value\n{h},{r},{t}\n": "hrt",
        "node1,label,node2,id\n{h},{r},{t},1\n": "hrt",
        ":START_ID(Person),:TYPE,:END_ID(Person)\n{h},{r},{t}\n": "hrt",
        "subject,predicate,object,label\n{h},{r},{t},x\n": "hrt",
        "target,link,source\n{t},{r},{h}\n": "hrt",
        "Source, rel name ,Target\n{h},{r},{t}\n": "hrt",
    }.items():
        path = write(tmp_path, content.format(h="h", r="r", t="t"), "f.csv")
        assert read(path) == [tuple(columns)], content


def test_an_unclear_header_is_no_fact(tmp_path):
    path = write(tmp_path, "id,source,relation,target,target_id\n1,a,r,b,x\n2,c,r,d,x\n", "f.csv")
    with pytest.raises(DataError, match=r"is not clear; .* --columns source,relation,target; .* --wide$"):
        read(path)
    for columns in (("2", "3", "4"), ("source", "relation", "target"), ("SOURCE", "Relation", "target")):
        assert read(path, columns=columns) == FACTS
    note = (
        "the first line was read as column names ('id', 'source', 'relation', 'target', 'target_id'); "
        "if it is a fact, give --no-header"
    )
    source = SeparatedSource(path, ReadOptions(columns=("2", "3", "4")))
    assert (rows(source), source.account.notes) == (
        FACTS,
        [note, "kept as provenance of each fact: 'id', 'target_id'"],
    )


def test_words_of_headers_can_be_entities(tmp_path):
    for content in (
        "start\tantonym\tend\nbegin\tantonym\tfinish\n",
        "o\tp\tq\nq\tp\tz\n",
        "start\tantonym\tfinish\nbegin\tsynonym\tstart\n",
    ):
        assert len(read(write(tmp_path, content))) == 2


def test_a_first_line_unlike_the_others_is_noted(tmp_path):
    facts = "".join(f"p{i},works at,c{i % 3}\n" for i in range(9))
    source = SeparatedSource(write(tmp_path, "person,rel name,company\n" + facts, "f.csv"), ReadOptions())
    assert rows(source)[0] == ("p0", "works at", "c0")
    assert source.account.notes == [
        "the first line was read as column names ('person', 'rel name', 'company'); "
        "if it is a fact, give --no-header"
    ]
    source = SeparatedSource(write(tmp_path, "player,predicate,club\n" + facts, "f.csv"), ReadOptions())
    assert len(rows(source)) == 9 and "read as column names" in source.account.notes[0]
    source = SeparatedSource(write(tmp_path, "Ann,is kin of,Bo\n" + facts, "f.csv"), ReadOptions())
    assert rows(source)[0] == ("Ann", "is kin of", "Bo")
    assert source.account.notes == [
        "the first line was read as a fact ('Ann', 'is kin of', 'Bo'); give --header if it names the columns"
    ]
    for content, options in (
        (facts, {}),
        ("person,rel name,company\n" + facts, {"header": False}),
        ("person,works at,company\n" + facts, {}),
        ("".join(f"a{i},r{i},b{i}\n" for i in range(9)), {}),
    ):
        source = SeparatedSource(write(tmp_path, content, "f.csv"), ReadOptions(**options))
        assert len(rows(source)) in (9, 10)
        assert source.account.notes == []


def test_columns_differ_in_case_only(tmp_path):
    path = write(tmp_path, "Subject,subject,Rel,o,n\nx,a,r,b,1\nx,c,r,d,2\n", "f.csv")
    assert read(path, columns=("subject", "REL", "O")) == FACTS
    with pytest.raises(DataError, match="there are 2 columns 'SUBJECT'; give the position"):
        read(path, columns=("SUBJECT", "Rel", "o"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            '{"facts": [{"head": "a", "relation": "r", "tail": "b"}]}',
            "line 1: is one JSON object that holds others",
        ),
        ('{"n": 1, "x": 2, "y": 3, "facts": [["a", "r", "b"]]}\n', "write the array of facts alone"),
        (
            '{\n  "facts": [\n    ["a", "r", "b"]\n  ]\n}\n',
            "write the array of facts alone, or one fact a line",
        ),
        ('{"facts": [\n{"head": "a"}]}\n', "write the array of facts alone"),
        ('{"head": "a"}\n', r"has 1 column \('head'\); a fact has head, relation and tail: give all three$"),
        ("{}\n", "has 0 columns; a fact has head"),
    ],
)
def test_json_that_is_no_list_of_facts(tmp_path, content, message):
    with pytest.raises(DataError, match=message):
        read(write(tmp_path, content, "f.json"))


def test_lists_beside_a_fact_do_no_harm(tmp_path):
    content = '{"tags": [{"x": 1}], "head": "a", "relation": "r", "tail": "b"}\n'
    assert read(write(tmp_path, content, "f.jsonl")) == FACTS[:1]


@pytest.mark.parametrize(
    ("name", "content", "n_read"),
    [
        ("f.tsv", "\n# one\nhead\trelation\ttail\na\tr\tb\n\nc\tr\n", 5),
        ("f.csv", 'head,relation,tail\na,r,b\n\n"c",r,\n', 3),
        ("f.jsonl", '\n["a","r","b"]\n["c"]\n', 3),
        ("f.json", '[["a","r","b"],["c"]]', 2),
        ("f.nt", "# one\n\n<a:a> <a:r> <a:b> .\n<a:a> <a:r> 1\n", None),
    ],
)
def test_all_that_is_read_is_a_fact_or_counted(tmp_path, name, content, n_read):
    source = open_source(str(write(tmp_path, content, name)), ReadOptions(on_error="skip"))
    n_facts = len(rows(source))
    assert n_facts == 1
    assert source.account.read == n_facts + sum(source.account.skipped.values())
    assert n_read in (None, source.account.read)


def test_names_are_kept_as_they_are(tmp_path):
    tabs = '"a\tNA\t#b"\n1\tnull\t2\n'
    assert read(write(tmp_path, tabs)) == [('"a', "NA", '#b"'), ("1", "null", "2")]
    commas = 'x,5" disk,"a ""b"", c"\n"one\ntwo\r\nthree",r,d\n'
    expected = [("x", '5" disk', 'a "b", c'), ("one\ntwo\r\nthree", "r", "d")]
    assert read(write(tmp_path, commas, "f.csv")) == expected
    numbers = '{"head":12345678901234567890,"relation":1.50,"tail":"\\u00e9 "}\n'
    assert read(write(tmp_path, numbers, "f.jsonl")) == [("12345678901234567890", "1.50", "é ")]


@pytest.mark.parametrize(
    ("name", "content", "n_stripped"),
    [
        ("f.csv", "a, r, b\nc,r,d\n", 2),
        ("f.csv", "a, r, b\n\nc,r ,\u00a0d\n", 4),
        ("f.csv", '"a", "r", "b"\n"c", "r", "d"\n', 0),
        ("f.csv", '"a", "r", "b"\r\n"c","r",d \r\n', 1),
        ("f.csv", '" a","r","b\n"\n"c","r","d"\n', 2),
        ("f.tsv", "a\tr\tb \n c\tr\td\n", 2),
        ("f.tsv", "#head\t relation\ttail\na\tr\tb\n# more\nc\tr\td\t\n", 0),
        ("f.txt", "a | r | b\nc | r | d\n", 6),
    ],
)
def test_white_space_around_names_is_left_out_and_counted(tmp_path, name, content, n_stripped):
    source = open_source(str(write(tmp_path, content, name)), ReadOptions(on_error="skip"))
    assert rows(source) == (FACTS if "\t\n" not in content else FACTS[:1])
    names = "1 name" if n_stripped == 1 else f"{n_stripped} names"
    expected = [f"{names} had white space around, which was left out"] if n_stripped else []
    assert source.account.notes == expected


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("f.tsv", "2020\ta\tr\tb\n2021\tc\tr\td\n"),
        ("f.jsonl", '["2020","a","r","b"]\n["2021","c","r","d"]\n'),
    ],
)
def test_a_time_column(tmp_path, name, content):
    source = open_source(str(write(tmp_path, content, name)), ReadOptions(time_column="1"))
    (frame,) = source.batches()
    assert frame.columns == ["head", "relation", "tail", "time"]
    assert frame.rows() == [("a", "r", "b", "2020"), ("c", "r", "d", "2021")]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "f.tsv",
            b"a\tr\tb\nc\tr\t\xff\n",
            "line 2: byte 0xff at position 5 is not UTF-8 in 'c\tr\t�'; save the",
        ),
        ("f.tsv", b"a\tr\tb\nc\tr\t\0\n", "line 2: byte 0x00 at position 5 in 'c\tr\t\\x00'"),
        (
            "f.tsv",
            b"a\tr\tb\nc\tr\nd\tr\te\n",
            "line 2: 2 columns instead of 3 in 'c\tr'; write head, relation",
        ),
        ("f.tsv", b"a\tr\tb\nc\tr\nd\tr\te\tf\n", "line 2: 2 columns instead of 3"),
        ("f.tsv", b"a\tr\tb\n\nc\tr\t \n", "line 3: empty tail in 'c\tr\t '; give it a name"),
        ("f.csv", b'a,r,b\n"c",r,"d\ne,r,f\n', 'line 2: a quote is not closed in \'"c",r,"d\'; close quotes'),
        ("f.csv", b'a,r,b\n"c"x,r,d\ne,r,f\n', "line 2: ',' expected after '\"'"),
        ("f.csv", b'a,r,b\n"c\nd",r,""\n', "line 2: empty tail"),
        ("f.csv", b'a,r,b\n"c\nd",r,"x",y\n', "line 2: 4 columns instead of 3"),
        ("f.jsonl", b'["a","r","b"]\n["c","r"]\n', 'line 2: \'["c","r"]\' has 2 values, not 3'),
        (
            "f.jsonl",
            b'{"s":"a","p":"r","o":"b"}\n{"s":"c","p":"r"}\n',
            'line 2: \'{"s":"c","p":"r"}\' has an empty',
        ),
        (
            "f.jsonl",
            b'{"s":"a","p":"r","o":"b"}\n{"s":{},"p":"r","o":"b"}\n',
            "has an array or object as head",
        ),
        (
            "f.jsonl",
            b'{"s":"a","p":"r","o":"b"}\n{"s":"c","p":"r","o":{}}\n',
            "has an array or object as tail",
        ),
        (
            "f.jsonl",
            b'{"s":"a","p":"r","o":"b"}\n{"s":"c","p":"r","o":"\\ud800"}\n',
            "has a tail that is not text",
        ),
        (
            "f.jsonl",
            b'{"s":"a","p":"r","o":"b"}\n{"s":"c","p":"r","o":NaN}\n',
            "line 2: not JSON (NaN is not JSON)",
        ),
        ("f.jsonl", b'{"s":"a","p":"r","o":"b"}\n{"s":"c",\n', "line 2: not JSON at position 10"),
        (
            "f.jsonl",
            b'["a","r","b"]\n' + b"[" * 100_000 + b"\n",
            "line 2: values within values, too deep in '[[",
        ),
        (
            "f.json",
            b'[["a","r","b"],["a","r",[]]]',
            'item 2: \'["a", "r", []]\' has an array or object as tail',
        ),
    ],
)
def test_a_bad_line_is_named_or_counted(tmp_path, name, content, message):
    path = write(tmp_path, content, name)
    with pytest.raises(DataError, match=re.escape(message)) as caught:
        read(path)
    assert re.fullmatch(
        rf"{re.escape(str(path))}, (line|item) \d: .*, or leave such \1s out with --skip-bad",
        str(caught.value),
    )
    source = open_source(str(path), ReadOptions(on_error="skip"))
    good = rows(source)
    assert good[0] == ("a", "r", "b")
    assert source.account.read == len(good) + sum(source.account.skipped.values())
    assert any(str(caught.value).startswith(example) for example in source.account.examples.values())


def test_lines_after_a_stray_quote_are_not_lost(tmp_path):
    path = write(tmp_path, 'a,r,b\n"c,r,d\n' + "e,r,f\n" * 1000, "f.csv")
    source = SeparatedSource(path, ReadOptions(on_error="skip"))
    assert rows(source) == [("a", "r", "b")] + [("e", "r", "f")] * 1000
    assert source.account.skipped == {"broken quotes": 1}
    path = write(tmp_path, 'a,r,b\n"c,r,d\n' + "e,r,f\n" * (LONGEST_LINE // 5), "f.csv")
    with pytest.raises(DataError, match=r"f\.csv, line 2: a quote is not closed"):
        read(path)
    assert len(read(path, on_error="skip")) == 1 + LONGEST_LINE // 5


def test_blank_lines_and_comments_are_counted(tmp_path):
    content = "\n# one\n" + "a\tr\tb\n" + "\n# two\n#c\tr\td\n\n"
    source = SeparatedSource(write(tmp_path, content), ReadOptions())
    assert rows(source) == [("a", "r", "b"), ("#c", "r", "d")]
    assert source.account.skipped == {"blank line": 3, "comment": 2}
    assert source.account.read == 7
    assert source.account.examples["comment"].endswith("facts.tsv, line 2: '# one'")


def test_line_numbers_go_on_over_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(separated, "text_chunks", lambda stream: text_chunks(stream, 64))
    content = "head,relation,tail\n" + 'a,r,"b\nc"\n' * 600 + "d,r\n"
    with pytest.raises(DataError, match=r"line 1,202: 2 columns instead of 3 in 'd,r'"):
        read(write(tmp_path, content, "f.csv"))


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (
            "a\tr\tb\t2020\nc\tr\td\t2021\n",
            {},
            r"line 1: has 4 columns \('a', 'r', 'b', '2020'\).*--columns 1,2,3",
        ),
        ("id\tx\ty\tz\n1\ta\tr\tb\n", {"header": True}, r"has 4 columns \('id', 'x', 'y', 'z'\)"),
        ("a\tb\nc\td\n", {}, r"has 2 columns \('a', 'b'\); write head, relation and tail on each line"),
        ("a\tr\tb\n", {"columns": ("1", "2", "4")}, "there is no column 4 in 3 columns"),
        ("a\tr\tb\n", {"columns": ("x", "y", "z")}, r"there is no column 'x' \('a', 'r', 'b'\)"),
        (
            "a\tr\tb\n",
            {"columns": ("x", "y", "z"), "header": False},
            "it has no header; give their positions",
        ),
        ("a\tr\tb\n", {"columns": ("1", "2", "1")}, "names a column twice"),
        ("x\tx\ty\tz\n1\t2\t3\t4\n", {"columns": ("x", "y", "z")}, "there are 2 columns 'x'"),
        ("a\tr\tb\n", {"separator": "::"}, "--separator '::' is not one ASCII character"),
        ("a\tr\tb\n", {"time_column": "when"}, "there is no column 'when'"),
        ("a\tr\tb\n", {"format": "doc"}, "unknown format 'doc'; give one of tsv"),
        ("a\tr\tb\n", {"query": "x"}, "is a file and takes no --query"),
    ],
)
def test_a_layout_that_is_not_clear_is_refused(tmp_path, content, options, message):
    with pytest.raises(DataError, match=message):
        read(write(tmp_path, content), **options)


def test_the_fast_way_of_json_sees_joined_and_broken_lines(tmp_path):
    good = '["a","r","b"]\n'
    for bad in ('["a","r","b"],["c","r","d"]\n', '["a","r"\n,"b"]\n', '["a","r","b\nc"]\n', '"abc"\n'):
        path = write(tmp_path, good * 3 + bad, "f.jsonl")
        with pytest.raises(DataError, match="line 4: "):
            read(path)


def test_one_array_of_json_is_bounded_and_checked(tmp_path, monkeypatch):
    with pytest.raises(DataError, match=r"line 2: not JSON after 2 items"):
        read(write(tmp_path, '[["a","r","b"],\n["a",', "f.json"))
    with pytest.raises(DataError, match=r"not JSON after 1 items \(the file is cut off\)"):
        read(write(tmp_path, '[["a","r","b"]\n', "f.json"))
    with pytest.raises(DataError, match="not JSON after 1 items"):
        read(write(tmp_path, "[" * 100_000, "f.json"))
    assert read(write(tmp_path, "[ ]", "f.json")) == []
    monkeypatch.setattr(json_lines, "LARGEST_ARRAY", 20)
    with pytest.raises(DataError, match="write one object a line instead"):
        read(write(tmp_path, '[["a","r","b"],["a","r","b"]]', "f.json"))


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "feather"])
def test_tables(tmp_path, suffix, monkeypatch):
    monkeypatch.setattr(parquet, "ROWS", 4)
    path = tmp_path / f"facts[1].{suffix}"
    frame = pl.DataFrame({"to": [f"é{i}" for i in range(10)], "from": range(10), "type": ["r"] * 10})
    frame = frame.with_columns(pl.col("type").cast(pl.Categorical))
    frame.write_parquet(path) if suffix == "parquet" else frame.write_ipc(path)
    source = open_source(str(path), ReadOptions())
    assert source.position() == (0, None)
    assert rows(source) == [(str(i), "r", f"é{i}") for i in range(10)]
    assert source.position() == (10, 10)
    assert source.labels().schema == LABELS


def test_nulls_in_tables_are_named_or_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "ROWS", 2)
    path = tmp_path / "facts.parquet"
    columns = {"h": ["a", "b", "c", "d"], "r": ["r", "r", None, "r"], "t": ["x", "y", "z", " "]}
    pl.DataFrame(columns).write_parquet(path)
    with pytest.raises(
        DataError, match=r"facts\.parquet, row 3: the relation is empty or not text in '.*'; give it a name"
    ):
        read(path)
    source = ParquetSource(path, ReadOptions(on_error="skip"))
    assert rows(source) == [("a", "r", "x"), ("b", "r", "y")]
    assert source.account.skipped == {"empty relation": 1, "empty tail": 1}


def test_broken_and_strange_tables_are_refused(tmp_path):
    path = tmp_path / "facts.parquet"
    pl.DataFrame({"h": ["a"], "r": ["r"], "t": [["x"]]}).write_parquet(path)
    with pytest.raises(DataError, match=r"column 't' holds List\(String\), not names"):
        read(path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match=r"facts\.parquet: cannot be read"):
        read(path)
    with pytest.raises(DataError, match="is named like a parquet file and is none; give its --format"):
        read(write(tmp_path, "a\tr\tb\n", "facts.parquet"))
    with pytest.raises(DataError, match="looks like a PNG image"):
        read(write(tmp_path, b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "facts.tsv"))


def bomb(path, columns, n_rows=5_000_000):
    """A small file of many equal rows."""
    frame = pl.DataFrame({column: pl.repeat("x", n_rows, eager=True) for column in columns})
    frame.write_parquet(path, row_group_size=n_rows)
    assert path.stat().st_size < 50_000


def test_a_table_of_too_many_rows_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    path = tmp_path / "facts.parquet"
    bomb(path, ("head", "relation", "tail"))
    monkeypatch.setattr(pl.LazyFrame, "slice", None)
    with pytest.raises(
        DataError, match=r"it says it has 5,000,000 rows, which unpack to more than 250 times"
    ):
        read(path)


def test_a_table_named_like_text_is_a_table(tmp_path):
    path = tmp_path / "facts.csv"
    pl.DataFrame({"h": ["a"], "r": ["r"], "t": ["x"]}).write_parquet(path)
    assert read(path) == [("a", "r", "x")]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("https://example.org/sparql", "needs a --query if it is a SPARQL endpoint; else download the file"),
        ("file:///facts.tsv", "without 'file://'"),
        ("missing.tsv", "no such file"),
        (".", "is a folder; name the files in it"),
        (os.devnull, "is a pipe or a device"),
    ],
)
def test_sources_that_cannot_be_opened(source, message):
    with pytest.raises(DataError, match=message):
        open_source(source, ReadOptions())


def test_progress_moves(tmp_path, monkeypatch):
    monkeypatch.setattr(json_lines, "CHUNK", 1 << 20)
    content = "".join(json.dumps([f"a{i}", "r", "b" * 30]) + "\n" for i in range(50_000))
    source = JsonLinesSource(write(tmp_path, content, "f.jsonl"), ReadOptions())
    size = len(content)
    assert source.position() == (0, size)
    done = [source.position()[0] for _ in source.batches()]
    assert 0 < done[0] < size == done[-1]


def test_the_right_line_is_named_in_a_large_piece(tmp_path):
    content = "a\tr\tb\n" * 50_000 + "c\tr\n" + "a\tr\tb\n" * 50_000 + "\tr\td\n"
    source = SeparatedSource(write(tmp_path, content), ReadOptions(on_error="skip"))
    assert len(rows(source)) == 100_000
    assert source.account.read == 100_002
    assert [example.split("facts.tsv, ")[1] for example in source.account.examples.values()] == [
        "line 50,001: 2 columns instead of 3 in 'c\tr'",
        "line 100,002: empty head in '\tr\td'",
    ]
