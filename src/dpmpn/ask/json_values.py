"""Columns of JSON lines: which keys there are in any line, and the one type that holds all values of a key."""

import json
from collections.abc import Iterable
from typing import Any

import polars as pl


def json_schema(objects: Iterable[tuple[int, dict[str, Any]]]) -> dict[str, Any]:
    """Keys in the order they first come, with their types: numbers, truth values, and text for all else."""
    found: dict[str, set[Any]] = {}
    for _, values in objects:
        for key, value in values.items():
            kinds = found.setdefault(key, set())
            if value is not None:
                kinds.add(_kind(value))
    return {key: _common(kinds) for key, kinds in found.items()}


def json_value(value: Any, dtype: Any) -> Any:
    """The value as its column holds it; what is not text is JSON where the column is text."""
    if dtype == pl.Float64 and value is not None:
        return float(value)
    if dtype != pl.String or value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def _kind(value: Any) -> Any:
    if isinstance(value, bool):
        return pl.Boolean
    if isinstance(value, int):
        return pl.Int64 if value.bit_length() < 64 else pl.String
    return pl.Float64 if isinstance(value, float) else pl.String


def _common(kinds: set[Any]) -> Any:
    """The type of a column with values of these kinds."""
    if kinds == {pl.Int64, pl.Float64}:
        return pl.Float64
    return next(iter(kinds)) if len(kinds) == 1 else pl.String
