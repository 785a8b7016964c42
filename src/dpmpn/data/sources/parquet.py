"""Facts in Parquet and Arrow files, read some rows at a time."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from dpmpn.data.sources.base import FileSource, ReadOptions
from dpmpn.data.sources.columns import find_columns, output_names, whole_rows
from dpmpn.data.sources.unpack import HARMLESS_SIZE, LARGEST_RATIO, check_file
from dpmpn.errors import DataError

ROWS = 1_000_000  # a batch
_VALUE = 16  # bytes that a value takes at least once it is text of polars
# A panic of polars is no Exception.
READ_ERRORS = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError, OverflowError)
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
    with path.open("rb") as file:
        beginning = file.read(8)
    format = next((name for first, name in _FIRST_BYTES.items() if beginning.startswith(first)), None)
    if format is None:
        raise DataError(f"{path}: is not a Parquet or Arrow file; give its --format")
    # Without glob a name such as 'facts[1].parquet' is one file.
    scan = pl.scan_parquet if format == "parquet" else pl.scan_ipc
    return scan(path, glob=False, hive_partitioning=False)


def count_rows(path: Path, table: pl.LazyFrame) -> int:
    """How many rows a table says it has; far more than its file can hold are refused before any is unpacked."""
    n_rows = int(table.select(pl.len()).collect().item())
    if n_rows * len(table.collect_schema()) * _VALUE > _largest(path):
        reason = f"it says it has {n_rows:,} rows, which unpack to more than {LARGEST_RATIO} times its size"
        raise broken_table(path, reason)
    return n_rows


def table_slices(path: Path, table: pl.LazyFrame, n_rows: int) -> Iterator[pl.DataFrame]:
    """The rows of a table, some at a time; it is refused where they become far more than its file can hold."""
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

    def __init__(self, path: str | Path, options: ReadOptions) -> None:
        super().__init__(path, options)
        check_name(self._path)
        self._done, self._n_rows = 0, None  # type: int, int | None

    def _batches(self) -> Iterator[pl.DataFrame]:
        with table_errors(self._path):
            table = self._scan()
            self._n_rows = count_rows(self._path, table)
        for frame in table_slices(self._path, table, self._n_rows):
            first, self._done = self._done + 1, self._done + frame.height
            yield whole_rows(frame, self.account, self._options, first)

    def position(self) -> tuple[int, int | None]:
        """Rows that were read, and how many there are once the file is open."""
        return self._done, self._n_rows

    def _scan(self) -> pl.LazyFrame:
        """The columns asked for, as text; what is not text, such as broken UTF-8, is null."""
        table = open_table(self._path)
        schema = table.collect_schema()
        positions = find_columns(str(self._path), schema.names(), True, self._options)
        columns = []
        for position, name in zip(positions, output_names(self._options), strict=True):
            column = schema.names()[position]
            if schema[column].is_nested() or schema[column] == pl.Object:
                raise DataError(
                    f"{self._path}: column '{column}' holds {schema[column]}, not names; name another one"
                )
            columns.append(pl.col(column).cast(pl.String, strict=False).alias(name))
        return table.select(columns)
