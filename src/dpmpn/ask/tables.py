"""Tables on the disk: written frame by frame in the format of the file's suffix, whole or not at all."""

import gzip
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import polars as pl
from polars.io.plugins import register_io_source

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
            f"{path}: a table cannot be named so; end the name in .csv, .tsv, .jsonl (also with .gz) or .parquet"
        )
    return _FORMATS[suffix]


def write_table(path: Path, frames: Iterable[pl.DataFrame]) -> None:
    """Write frames of the same columns one after the other; only one of them is in memory at a time.

    Nested columns are written as JSON text where the format knows no others.
    """
    format = table_format(path)
    if format == "parquet":
        write_whole(path, lambda temporary: _write_parquet(temporary, iter(frames)))
    else:
        packed = path.name.lower().endswith(_PACKED)
        write_whole(path, lambda temporary: _write_text(temporary, format, frames, packed))


def _write_text(path: Path, format: str, frames: Iterable[pl.DataFrame], packed: bool) -> None:
    with _opened(path, packed) as file:
        for number, frame in enumerate(frames):
            if format == "jsonl":
                frame.write_ndjson(file)
            else:
                separator = "\t" if format == "tsv" else ","
                _flat(frame).write_csv(file, separator=separator, include_header=number == 0)


@contextmanager
def _opened(path: Path, packed: bool) -> Iterator[BinaryIO]:
    with path.open("wb") as file:
        if not packed:
            yield file
            return
        # Without name and time the same table is the same bytes.
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0, compresslevel=6) as archive:
            yield archive  # type: ignore[misc]


def _write_parquet(path: Path, frames: Iterator[pl.DataFrame]) -> None:
    first = next(frames, pl.DataFrame())

    def source(*_: object) -> Iterator[pl.DataFrame]:
        return chain([first], frames)

    # Eager polars writes a file at once; its streaming engine takes frames as they come and keeps 200 MB at most.
    stream = register_io_source(source, schema=first.schema)
    with path.open("wb") as file:  # polars does not take a path that is not UTF-8
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
