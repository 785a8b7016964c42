"""CSV that people open in a spreadsheet: a text that would be run there as a formula gets an apostrophe before it.

A spreadsheet takes the apostrophe for "this is text". What is read here loses it again: names survive the way there and
back, also those that began with an apostrophe of their own. Numbers, such as -0.5, stay as they are.
"""

import re

import polars as pl

MARK = "'"
# A spreadsheet may take wide signs for the others.
_FORMULA = r"(?s)^'*[=+\-@\t\r\n＝＋－＠]."
_NUMBER = r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?"


def marked_text(text: str) -> str:
    """A text as a cell; with an apostrophe if it would be a formula."""
    return MARK + text if _would_run(text) else text


def unmarked_text(cell: str) -> str:
    """The text of a cell, as it was before it was marked."""
    return cell[len(MARK) :] if cell.startswith(MARK) and _would_run(cell[len(MARK) :]) else cell


def _would_run(text: str) -> bool:
    return re.match(_FORMULA, text) is not None and re.fullmatch(_NUMBER, text) is None


def unmarked(cells: pl.Series) -> pl.Series:
    """The texts of many cells."""
    marked = cells.str.starts_with(MARK).arg_true()
    if not len(marked):
        return cells
    return cells.scatter(marked, [unmarked_text(cell) for cell in cells.gather(marked)])


def csv_of(frame: pl.DataFrame, separator: str = ",", header: bool = True) -> str:
    """A table of texts, numbers and truth values as CSV, the names of its columns too."""
    texts = pl.col(pl.String)
    would_run = texts.str.contains(_FORMULA) & ~texts.str.contains(f"^{_NUMBER}$")
    cells = frame.with_columns(pl.when(would_run).then(MARK + texts).otherwise(texts).name.keep())
    cells.columns = [marked_text(column) for column in frame.columns]
    return cells.write_csv(separator=separator, include_header=header)
