"""Tables on the disk, written frame by frame in the format of the file's suffix."""

import gzip
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import IO, Any

import polars as pl
from polars.io.plugins import register_io_source

from dpmpn.bulk.parts import check_place
from dpmpn.data.spreadsheets import csv_of
from dpmpn.errors import DataError
from dpmpn.files import write_whole

_FORMATS = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}
_PACKED = ".gz"
_ROW_GROUP = 100_000  # rows of a Parquet file that are in memory together


def table_format(path: Path) -> str:
    """The format that a table's suffix stands for: csv, tsv, jsonl or parquet."""
    name = path.name.lower()
    packed = name.endswith(_PACKED)
    suffix = Path(name.removesuffix(_PACKED)).suffix
    if suffix not in _FORMATS or (packed and suffix == ".parquet"):
        raise DataError(
            f"{path}: the name says no known format; end it in .csv, .tsv, .jsonl (also with .gz) or .parquet"
        )
    return _FORMATS[suffix]


def write_table(path: Path, frames: Iterable[pl.DataFrame]) -> None:
    """Write frames of the same columns one after the other; only one of them is in memory at a time.

    Nested columns are written as JSON text where the format knows no others.
    """
    format = table_format(path)
    if format == "parquet":
        write_whole(path, lambda file: _write_parquet(file, iter(frames)))
    else:
        packed = path.name.lower().endswith(_PACKED)
        write_whole(path, lambda file: _write_text(file, format, frames, packed))


def _write_text(file: IO[bytes] | Any, format: str, frames: Iterable[pl.DataFrame], packed: bool) -> None:
    with ExitStack() as opened:
        if packed:  # without name and time the same table is the same bytes
            file = opened.enter_context(gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0))
        for number, frame in enumerate(frames):
            if format == "jsonl":
                frame.write_ndjson(file)
            else:
                separator = "\t" if format == "tsv" else ","
                file.write(csv_of(_flat(frame), separator, header=number == 0).encode())


def _write_parquet(file: IO[bytes], frames: Iterator[pl.DataFrame]) -> None:
    first = next(frames, pl.DataFrame())

    def source(*_: object) -> Iterator[pl.DataFrame]:
        return chain([first], frames)

    # Eager polars writes a file at once; its streaming engine takes frames as they come and keeps 200 MB at most.
    stream = register_io_source(source, schema=first.schema)
    stream.sink_parquet(file, compression="zstd", row_group_size=_ROW_GROUP, maintain_order=True)


def _flat(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with nested columns as JSON text."""
    nested = [name for name, dtype in frame.schema.items() if dtype.is_nested()]
    return frame.with_columns(_as_json(name) for name in nested)


def _as_json(name: str) -> pl.Expr:
    """Column as JSON; polars encodes structs only, so it is encoded as the single field of one."""
    wrapped = pl.struct(pl.col(name).alias("")).struct.json_encode()  # {"":...}
    text = wrapped.str.slice(4, wrapped.str.len_chars() - 5)
    return pl.when(pl.col(name).is_not_null()).then(text).alias(name)


def check_table(out: Path) -> None:
    """Refuse early a table that could not be written, or is there already; what a kill left of it goes."""
    table_format(out)
    check_place(out)
