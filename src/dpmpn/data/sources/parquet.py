"""Facts in Parquet and Arrow files, read some rows at a time."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import polars as pl

from dpmpn.data.sources.base import FileSource, ReadOptions
from dpmpn.data.sources.columns import texts_of_column, whole_rows
from dpmpn.data.sources.probe import can_be_decoded
from dpmpn.data.sources.shape import SAMPLED, Shape, find_shape, rows_of
from dpmpn.data.sources.unpack import HARMLESS_SIZE, LARGEST_RATIO, check_file
from dpmpn.errors import DataError

ROWS = 1_000_000  # a batch
_FEWER_ROWS = 50_000  # likewise, of those that are read the slow way
_VALUE = 16  # bytes that a value takes at least once it is text of polars
# A panic of polars is no Exception.
READ_ERRORS = (
    pl.exceptions.PolarsError,
    pl.exceptions.PanicException,
    OSError,
    ValueError,
    OverflowError,
    MemoryError,
)
_SCANS = {"parquet": "scan_parquet", "arrow": "scan_ipc"}  # functions of polars
_FIRST_BYTES = {b"PAR1": "parquet", b"ARROW1": "arrow"}


def check_name(path: Path) -> None:
    """Refuse a name that polars does not take."""
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise DataError(f"{path}: the name of such a file must be UTF-8; rename it") from error


def open_table(path: Path) -> pl.LazyFrame:
    """A Parquet or Arrow file, recognised by its first bytes; nothing but its schema is read."""
    check_file(path)
    check_name(path)
    # Without glob a name such as 'facts[1].parquet' is one file.
    scan = getattr(pl, _SCANS[_format_of(path)])
    return cast(pl.LazyFrame, scan(path, glob=False, hive_partitioning=False))


def _format_of(path: Path) -> str:
    with path.open("rb") as file:
        beginning = file.read(8)
    format = next((name for first, name in _FIRST_BYTES.items() if beginning.startswith(first)), None)
    if format is None:
        raise DataError(f"{path}: is not a Parquet or Arrow file; give its --format")
    return format


def count_rows(path: Path, table: pl.LazyFrame) -> int:
    """How many rows a table says it has; far more than its file can hold are refused before any is unpacked."""
    n_rows = int(table.select(pl.len()).collect().item())
    if n_rows * len(table.collect_schema()) * _VALUE > _largest(path):
        reason = f"it says it has {n_rows:,} rows, which unpack to more than {LARGEST_RATIO} times its size"
        raise broken_table(path, reason)
    return n_rows


def table_slices(path: Path, table: pl.LazyFrame, n_rows: int) -> Iterator[pl.DataFrame]:
    """The rows of a table, some at a time; it is refused where they become far more than its file can hold."""
    names = table.collect_schema().names()
    if not can_be_decoded(_SCANS[_format_of(path)], path, names, n_rows, ROWS):
        raise broken_table(path, "it is damaged")
    done, size = 0, 0
    while done < n_rows:
        with table_errors(path):
            frame = table.slice(done, ROWS).collect()
        if frame.height != min(ROWS, n_rows - done):
            raise broken_table(path, f"it says it has {n_rows:,} rows and has fewer")
        size += int(frame.estimated_size())
        if size > _largest(path):
            raise broken_table(
                path, f"unpacks to more than {LARGEST_RATIO} times its size, which facts do not"
            )
        done += frame.height
        yield frame


def _largest(path: Path) -> int:
    return max(HARMLESS_SIZE, LARGEST_RATIO * check_file(path))


@contextmanager
def table_errors(path: Path) -> Iterator[None]:
    """What polars raises while it reads a table, as one sentence."""
    try:
        yield
    except READ_ERRORS as error:
        raise broken_table(path, str(error).split("\n", 1)[0] or type(error).__name__) from error


def broken_table(path: Path, reason: str) -> DataError:
    """The error of a table that cannot be read."""
    return DataError(f"{path}: cannot be read ({reason}); write the file again")


class ParquetSource(FileSource):
    """A Parquet file, or a Feather or Arrow one."""

    unit = "row"

    def __init__(self, path: str | Path, options: ReadOptions) -> None:
        super().__init__(path, options)
        check_name(self._path)
        self._done, self._n_rows = 0, None  # type: int, int | None

    def _batches(self) -> Iterator[pl.DataFrame]:
        with table_errors(self._path):
            table = open_table(self._path)
            names = table.collect_schema().names()
        shape = self._shape(table, names)
        with table_errors(self._path):
            table = table.select(list(dict.fromkeys(names[at] for at in shape.all_positions)))
            self._n_rows = count_rows(self._path, table)
        for frame in self._slices(table, self._n_rows):
            numbers: Sequence[int] = range(self._done + 1, self._done + frame.height + 1)
            self._done += frame.height
            columns = [texts_of_column(frame[names[at]], str(self._path)) for at in shape.all_positions]
            optional = shape.all_names[len(shape.names) :]
            rows, numbers = whole_rows(columns, self.account, self._options, numbers, shape.names, optional)
            facts, self._numbers = shape.facts(rows, numbers)
            yield facts

    def _shape(self, table: pl.LazyFrame, names: list[str]) -> Shape:
        """Which columns are read; only a table that could be wide is looked into for that."""

        def sample() -> Sequence[Sequence[str | None]]:
            with table_errors(self._path):
                n_rows = min(count_rows(self._path, table), SAMPLED)
            frames = list(table_slices(self._path, table.head(n_rows), n_rows))
            return rows_of(
                [texts_of_column(frame[name], str(self._path)).column for name in names for frame in frames]
            )

        shape = find_shape(str(self._path), names, True, self._options, sample)
        self.account.notes += shape.notes
        return shape

    def position(self) -> tuple[int, int | None]:
        """Rows that were read, and how many there are once the file is open."""
        return self._done, self._n_rows

    def _slices(self, table: pl.LazyFrame, n_rows: int) -> Iterator[pl.DataFrame]:
        try:
            yield from table_slices(self._path, table, n_rows)
        except DataError as error:
            # Of Arrow files that are damaged otherwise, too, pyarrow would read what is not theirs.
            if "utf" not in str(error.__cause__).lower() or _format_of(self._path) != "parquet":
                raise
            # Polars cannot tell which of the texts is not UTF-8.
            rest = undecoded_rows(self._path, table.collect_schema().names())
            yield from _after(rest, self._done)


def undecoded_rows(path: Path, names: list[str]) -> Iterator[pl.DataFrame]:
    """The rows of a Parquet file with its texts as bytes, some at a time."""
    try:
        import pyarrow  # type: ignore[import-untyped]
        import pyarrow.parquet  # type: ignore[import-untyped]
    except ImportError as error:
        raise DataError(
            f"{path}: holds text that is not UTF-8; write the file again, or pip install pyarrow, which finds the rows"
        ) from error
    with table_errors(path):
        for batch in pyarrow.parquet.ParquetFile(path).iter_batches(_FEWER_ROWS, columns=names):
            yield pl.DataFrame({name: _undecoded(pyarrow, batch.column(name)) for name in names})


def _undecoded(pyarrow: Any, column: Any) -> pl.Series:
    """A column with its texts as bytes; what pyarrow does with one that it did not check may end the process."""
    kinds = pyarrow.types
    if kinds.is_string(column.type):
        column = column.view(pyarrow.binary())
    elif kinds.is_large_string(column.type):
        column = column.view(pyarrow.large_binary())
    column.validate(full=True)
    return pl.Series(pl.from_arrow(column))


def _after(frames: Iterator[pl.DataFrame], done: int) -> Iterator[pl.DataFrame]:
    """The rows after so many."""
    for frame in frames:
        yield frame.slice(min(done, frame.height))
        done = max(0, done - frame.height)
