"""Tables on the disk: written frame by frame in the format of the file's suffix, and long ones in numbered parts.

A killed run goes on where it stopped: beside the table `answers.csv` lies, until that is finished, the folder
`answers.csv.parts`:

request.json              what the parts were made from; parts of another request are never mixed in
00000000-<sha256>.parquet the parts in order; one whose content is not that of its name is made again
finished.json             size and SHA-256 of the finished table, written just before it takes its place
.lock                     held by the process that works here
"""

import gzip
import hashlib
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import IO, Any

import polars as pl
from polars.io.plugins import register_io_source

from dpmpn.data.spreadsheets import csv_of
from dpmpn.errors import DataError, RunError
from dpmpn.files import (
    open_file,
    own_folder,
    put_in_place,
    read_json,
    remove,
    remove_folder,
    sha256_of,
    sync,
    write_json,
    write_whole,
)
from dpmpn.files.held import holding

_FORMATS = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}
_PACKED = ".gz"
_ROW_GROUP = 100_000  # rows of a Parquet file that are in memory together
_REQUEST, _FINISHED = "request.json", "finished.json"
_PARTS = "[0-9]*.parquet"
_SHOWN_VALUE = 40  # characters
_SHOWN_CHANGES = 4


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


class Parts(AbstractContextManager["Parts"]):
    """The parts of one table; a context that leaves its folder for the next run unless `finish` was called."""

    def __init__(self, out: str | Path, request: Mapping[str, Any]) -> None:
        """Begin a table, or go on with one that the same request began."""
        self.out = Path(out)
        check_out(self.out)
        self.folder = _folder_of(self.out)
        self._removed = _removed_of(self.out)
        self._paths: list[Path] = []
        self._held = ExitStack()
        try:
            own_folder(self.folder)
        except OSError as error:
            raise RunError(f"{self.folder} cannot be made: {error.strerror}; choose another --out") from error
        try:
            self._held.enter_context(holding(self.folder))
            if _is_taken(self.out) and not self._is_finished():
                raise _taken(self.out)
            self._claim(json.loads(json.dumps(dict(request))))
            self._paths.extend(self._whole_parts())
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()

    def done(self) -> int:
        """Number of finished parts: 0 to done - 1 are whole."""
        return len(self._paths)

    def write(self, index: int, frame: pl.DataFrame) -> None:
        """Add the next part; it is there whole, also after a power cut, or not at all."""
        if index != self.done():
            raise ValueError(f"part {index} cannot follow {self.done()} parts")
        packed = io.BytesIO()
        frame.write_parquet(packed, compression="zstd")
        content = packed.getbuffer()
        path = self.folder / f"{index:08}-{hashlib.sha256(content).hexdigest()}.parquet"
        with self._kept():
            write_whole(path, lambda file: file.write(content))
        self._paths.append(path)

    def read(self) -> Iterator[pl.DataFrame]:
        """All finished parts in order, checked."""
        for path in self._paths:
            content = _content(path)
            if content is None:
                raise RunError(f"{path} was changed while it was in use; run the same command again")
            yield pl.read_parquet(io.BytesIO(content))

    def finish(self, frames: Iterable[pl.DataFrame]) -> None:
        """Write the table, of frames made from the parts; then the folder goes."""
        table = self.folder / f"table-{self.out.name}"
        with self._kept():
            write_table(table, frames)
        if _is_taken(self.out) and not self._is_finished():
            raise _taken(self.out)
        with self._kept():
            write_json(self.folder / _FINISHED, {"bytes": table.stat().st_size, "sha256": sha256_of(table)})
        put_in_place(table, self.out)
        # Renamed first: a kill while files go must not leave half a folder under its name.
        remove_folder(self._removed)
        put_in_place(self.folder, self._removed)
        remove_folder(self._removed)
        self.close()

    def close(self) -> None:
        """Let others work here."""
        self._held.close()

    @contextmanager
    def _kept(self) -> Iterator[None]:
        """Say of an error of the disk that it costs nothing."""
        try:
            yield
        except RunError as error:
            if not isinstance(error.__cause__, OSError):
                raise
            advice = "what was done is kept: free some space and run the same command again"
            raise RunError(f"{error}; {advice}") from error

    def _is_finished(self) -> bool:
        """Whether the table is finished, and only the folder was left by a kill."""
        finished = self.folder / _FINISHED
        if not finished.is_file() or not self.out.is_file():
            return False
        values = read_json(finished, f"remove {self.folder}")
        same_size = values.get("bytes") == self.out.stat().st_size
        return same_size and values.get("sha256") == sha256_of(self.out)

    def _claim(self, request: dict[str, Any]) -> None:
        """Take a new folder, or one that the same request made."""
        path = self.folder / _REQUEST
        if not path.exists():
            # The lock and what a kill left half written have names with a dot.
            strange = [p for p in self.folder.iterdir() if not p.name.startswith(".")]
            if strange:
                raise RunError(
                    f"{self.folder} holds {strange[0].name}, which dpmpn did not write; remove the folder"
                )
            with self._kept():
                write_json(path, request)
            sync(self.folder.parent)
            return
        made_for = read_json(path, f"remove {self.folder} to start over")
        if made_for != request and not any(self.folder.glob(_PARTS)):
            write_json(path, request)  # nothing was done for the other one
        elif made_for != request:
            raise RunError(
                f"{self.folder} was started with other options ({_difference(made_for, request)}); "
                "finish it with the command that started it, remove the folder, or choose another --out"
            )

    def _whole_parts(self) -> list[Path]:
        """The parts before the first that is missing or broken; what lies behind is removed."""
        found = sorted(self.folder.glob(_PARTS))
        whole: list[Path] = []
        for path in found:
            is_next = path.name.startswith(f"{len(whole):08}-")
            if not is_next or _content(path) is None:
                break
            whole.append(path)
        for path in found[len(whole) :]:
            remove(path)
        for left in self.folder.glob("table-*"):
            remove(left)
        return whole


def check_out(out: Path) -> None:
    """Refuse early a table that could not be written, or is there already; what a kill left of it goes."""
    table_format(out)
    if not out.parent.is_dir():
        raise RunError(f"{out.parent} is not a folder; make it or choose another --out")
    with suppress(FileNotFoundError):
        _removed_of(
            out
        ).lstat()  # the longest name is tried first: it may be too long, which `exists` does not say
        remove_folder(_removed_of(out))
    if _is_taken(out) and not _folder_of(out).exists():
        raise _taken(out)


def _folder_of(out: Path) -> Path:
    return out.with_name(out.name + ".parts")


def _removed_of(out: Path) -> Path:
    return out.with_name(f".{out.name}.parts.removed")


def _content(path: Path) -> bytes | None:
    """The bytes of a part, None where they are not the ones that were written."""
    try:
        with open_file(path) as file:
            content = file.read()
    except OSError:
        return None
    return content if path.stem.endswith("-" + hashlib.sha256(content).hexdigest()) else None


def _is_taken(out: Path) -> bool:
    return out.exists() or out.is_symlink()  # also one that leads nowhere


def _taken(out: Path) -> RunError:
    return RunError(f"{out} already exists; choose another --out or remove it")


def _difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """What two requests differ in."""
    keys = [key for key in {**before, **now} if before.get(key) != now.get(key)]
    shown = [_changed(key, before.get(key), now.get(key)) for key in keys[:_SHOWN_CHANGES]]
    return ", ".join(shown) + (f" and {len(keys) - len(shown)} more" if len(keys) > len(shown) else "")


def _changed(key: str, before: Any, now: Any) -> str:
    if all(isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) for value in (before, now)):
        return f"the {key.removesuffix('_sha256')} changed"  # two digests say no more
    return f"{key} was {_shown(before)}, is {_shown(now)}"


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN_VALUE else text[: _SHOWN_VALUE - 1] + "…"
