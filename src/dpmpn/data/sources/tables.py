"""Rows of tables as facts: values as text, rows that lack one refused or counted."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from dpmpn.data.sources.base import Account, ReadOptions
from dpmpn.data.sources.columns import output_names
from dpmpn.data.sources.lines import short
from dpmpn.data.sources.records import no_text
from dpmpn.errors import DataError


def facts_of_columns(
    columns: Sequence[pl.Series], account: Account, options: ReadOptions, first: int
) -> pl.DataFrame:
    """Facts of the columns head, relation, tail (and time); `first` is the number of the first row, from 1."""
    names = output_names(options)
    texts = [_text(column, name, account) for name, column in zip(names, columns, strict=True)]
    facts = pl.DataFrame(texts)
    account.read += facts.height
    wrong = facts.select(no_text(name).fill_null(True) for name in names)
    lacking = wrong.select(pl.any_horizontal(pl.all())).to_series()
    if not lacking.any():
        return facts
    rest = lacking
    for name in names:
        here = rest & wrong.get_column(name)
        rest = rest & ~here
        if here.any():
            at = int(here.arg_max() or 0)
            shown = short(", ".join("" if value is None else value for value in facts.row(at)))
            problem = f"the {name} is empty or not text in '{shown}'"
            refuse_rows(f"empty {name}", int(here.sum()), f"row {first + at:,}: {problem}", account, options)
    return facts.filter(~lacking)


def refuse_rows(reason: str, count: int, example: str, account: Account, options: ReadOptions) -> None:
    """Stop at a row without one of its values, or count it and those like it."""
    if options.on_error == "stop":
        raise DataError(f"{account.source}, {example}; correct it, or leave such rows out with --skip-bad")
    account.skip(reason, count, f"{account.source}, {example}")


def texts_of_values(values: Sequence[Any], name: str, account: Account, first: int) -> pl.Series:
    """A column of any values as text; None and NaN stay empty, what cannot be a name is refused."""
    texts = [value if type(value) is str else _text_of_value(value) for value in values]
    if False in texts:
        at = texts.index(False)
        kind = type(values[at]).__name__
        raise DataError(
            f"{account.source}, row {first + at:,}: the {name} is of type {kind}; give texts or numbers"
        )
    try:
        return pl.Series(name, texts, dtype=pl.String)
    except UnicodeEncodeError as error:  # half of a surrogate pair, which Python text may hold
        at = texts.index(error.object)
        raise DataError(
            f"{account.source}, row {first + at:,}: the {name} {error.object!a} is not Unicode; rename it"
        ) from error


def _text_of_value(value: Any) -> str | bool | None:
    """The text of a value, None where there is none, False where the value is neither text nor number."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, (bytes, bytearray, memoryview, list, tuple, dict, set)):
        return False
    # Only NaN is not equal to itself.
    return None if isinstance(value, float) and value != value else str(value)


def _text(series: pl.Series, name: str, account: Account) -> pl.Series:
    """A column as text; whole numbers that a gap in the column made floats are whole again: 7.0 is the id 7."""
    dtype = series.dtype
    if dtype.is_float():
        series = series.fill_nan(None)
        whole = (series == series.floor()) & (series.abs() < 2.0**53)
        series = series.cast(pl.Int64) if whole.fill_null(True).all() else series
    if dtype == pl.Null:
        return pl.Series(name, [None] * len(series), dtype=pl.String)
    if dtype == pl.Binary or dtype == pl.Object or dtype.is_nested():
        raise DataError(f"{account.source}: column '{series.name}' holds {dtype}; give texts or numbers")
    return series.cast(pl.String).alias(name)
