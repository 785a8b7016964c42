"""Names that are meant to break a file or a terminal: every format stays well-formed, and CSV comes back as it was."""

import csv
import io
import json
import re
import tempfile
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reasoning import explained

from dpmpn.data.names import normal
from dpmpn.data.sources.formats import facts_of
from dpmpn.data.spreadsheets import csv_of, marked_text, unmarked, unmarked_text
from dpmpn.render.formats import FORMATS
from dpmpn.wording import on_terminal

PIECES = [
    "\x1b[31m", "\x1b]8;;http://x\x07", "\x9b2J", "\x07", "\x7f", "\r", "\n", "\t", "\0", "\x0b", "\x1c", "\x85",
    "\u2028", "\u202e", "\u2066", "\u200b", "\ufeff", "\ufffe", "\uffff", "]]>", "<script>", "</svg>", "&amp;", "--",
    "=cmd|' /C calc'!A0", "+1", "-x", "@SUM(1)", "'", "'=", '"', ",", ";", "\\", "\\N", "%", "{", "}", "[/red]", "a",
    "é", "e\u0301", "א", "😀", "x" * 300,
]  # fmt: skip
hostile = st.one_of(
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=5).map("".join),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12),
)
names = st.lists(
    hostile.map(normal).filter(
        # A caret, or an equals sign alone, means something in moves that are written down.
        lambda name: name not in ("", "=") and name[0] != "^" and "\0" not in name
    ),
    min_size=4,
    max_size=4,
)
DANGEROUS = re.compile(r"[=+\-@\t\r\n]")
NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
quick = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])


class Tags(HTMLParser):
    """Notes what a browser would take for elements."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add(tag)


def tags_of(page: str) -> set[str]:
    parser = Tags()
    parser.feed(page)
    return parser.found


ORDINARY = tags_of(FORMATS["html"].content(explained()).decode())


@given(names)
@quick
def test_every_format_is_well_formed(chosen: list[str]) -> None:
    """Whatever the names are; PNG is drawn from the SVG."""
    rename = dict(zip(("Serbia", "Europe", "Kosovo", "neighbour"), chosen, strict=True))
    if len({*chosen, "Hungary", "Asia", "Budapest"}) < 7:
        return
    explanation = explained(rename=rename)
    check_formats(
        {name: FORMATS[name].files(explanation) for name in ("text", "json", "csv", "svg", "html", "dot")}
    )


def check_formats(files: dict[str, dict[str, bytes]]) -> None:
    """Every file can be read by what reads such files, and nothing in it is more than text."""
    texts = {name: content.decode() for group in files.values() for name, content in group.items()}
    assert on_terminal(texts["explanation.txt"]) == texts["explanation.txt"]
    assert json.loads(texts["explanation.json"])["format"] == "dpmpn explanation"
    assert on_terminal(texts["explanation.json"]) == texts["explanation.json"]
    assert NOT_IN_XML.search(texts["explanation.svg"] + texts["explanation.html"]) is None
    ElementTree.fromstring(texts["explanation.svg"])
    assert tags_of(texts["explanation.html"]) <= ORDINARY | {"wbr"}  # where a long name may be broken
    for name in ("full.dot", "pruned.dot"):
        assert on_terminal(texts[name]) == texts[name]
        bare = re.sub(r'"(?:[^"\\]|\\.)*"', "", texts[name])
        assert '"' not in bare and re.fullmatch(r"[\w\s\[\]{};,=.>-]*", bare), bare
    for name in files["csv"]:
        rows = list(csv.reader(io.StringIO(texts[name], newline="")))
        assert len({len(row) for row in rows}) == 1
        for cell in (cell for row in rows for cell in row):
            assert (
                not DANGEROUS.match(cell)
                or len(cell) == 1
                or re.fullmatch(r"[+-]?[0-9.]+(e[+-]?[0-9]+)?", cell)
            )


@given(names)
@quick
def test_what_is_written_as_csv_is_read_with_the_same_names(chosen: list[str]) -> None:
    """Facts that were shown in a spreadsheet can be added and removed."""
    rename = dict(zip(("Serbia", "Europe", "Kosovo", "region"), chosen, strict=True))
    explanation = explained(rename=rename)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "key_facts.csv"
        path.write_bytes(FORMATS["csv"].files(explanation)["key_facts.csv"])
        read = facts_of(path)
    expected = [(fact["head"], fact["relation"], fact["tail"]) for fact in explanation.to_dict()["key_facts"]]
    assert read.select("head", "relation", "tail").rows() == expected


cells = st.text(st.sampled_from("'=+-@＝\t\r\n1.5eEab,\""), max_size=6)


@given(st.lists(cells, min_size=1))
def test_cells_are_marked_so_that_they_can_be_unmarked(texts: list[str]) -> None:
    frame = pl.DataFrame({"=name": texts, "number": [-0.5] * len(texts)})
    header, *rows = csv.reader(io.StringIO(csv_of(frame), newline=""))
    assert header == ["'=name", "number"]
    assert [row[0] for row in rows] == [marked_text(text) for text in texts]
    assert [row[1] for row in rows] == ["-0.5"] * len(texts)
    assert [unmarked_text(marked_text(text)) for text in texts] == texts
    assert unmarked(pl.Series([row[0] for row in rows], dtype=pl.String)).to_list() == texts


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=1+1", "'=1+1"), ("@x", "'@x"), ("-x", "'-x"), ("+49 30", "'+49 30"), ("'=x", "''=x"), ("\t=x", "'\t=x"),
        ("-0.5", "-0.5"), ("+1e-7", "+1e-7"), ("-", "-"), ("'x", "'x"), ("x=1", "x=1"), ("", ""),
    ],
)  # fmt: skip
def test_what_would_be_a_formula(text: str, cell: str) -> None:
    assert marked_text(text) == cell
    assert unmarked_text(cell) == text
