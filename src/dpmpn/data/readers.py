"""Files of triples: UTF-8, `head<TAB>relation<TAB>tail`, plain or packed, with errors that name the line."""

from pathlib import Path

import polars as pl

from dpmpn.data.sources.base import COLUMNS, FACTS
from dpmpn.data.sources.layout import Layout
from dpmpn.data.sources.lines import encoding_problem, text_chunks
from dpmpn.data.sources.separated import check_fields, read_literal, select_facts
from dpmpn.data.sources.unpack import open_unpacked
from dpmpn.errors import DataError

_LAYOUT = Layout(separator="\t", quoted=False, n_columns=3, positions=(0, 1, 2), names=COLUMNS)


def read_triples(path: str | Path) -> pl.DataFrame:
    """Triples of a file as text columns head, relation, tail; row i is line i + 1."""
    path = Path(path)
    content = read_content(path)
    columns = read_literal(content, b"\t", _LAYOUT.n_columns)
    frame = None if columns is None else select_facts(columns, _LAYOUT)
    return _read_exact(path, content) if frame is None else frame


def read_content(path: Path) -> bytes:
    """Bytes of a text file, unpacked, line ends as LF, no trailing empty lines."""
    with open_unpacked(path) as stream:
        content = b"".join(chunk.content for chunk in text_chunks(stream))
    if b"\r" in content:
        content = content.replace(b"\r\n", b"\n")
    content = content.rstrip(b"\n")
    if not content:
        raise DataError(f"{path}: is empty; write one triple a line, or delete the file")
    return content


def decode_line(where: str, line: bytes) -> str:
    """Text of a line."""
    if problem := encoding_problem(line):
        raise DataError(f"{where}: {problem.text}; {problem.advice}")
    return line.decode("utf-8")


def _read_exact(path: Path, content: bytes) -> pl.DataFrame:
    """The triples line by line, the slow way that says which line is wrong."""
    rows = []
    for number, line in enumerate(content.split(b"\n"), start=1):
        where = f"{path}, line {number:,}"
        fields = decode_line(where, line).split("\t")
        if problem := check_fields(line, fields, _LAYOUT):
            raise DataError(f"{where}: {problem.text}; {problem.advice}")
        rows.append(fields)
    return pl.DataFrame(rows, schema=FACTS, orient="row")
