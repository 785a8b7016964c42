"""The folder in which the parts of a result are kept until it is finished: a killed run goes on where it stopped.

Beside the result `answers.csv` lies, until that is finished, the folder `answers.csv.parts`:

request.json      what the parts are made from; parts of another request are never mixed in
shards.json       of work in shards: how many there are, how many parts, and the command that was given
00000000-<request>-<sha256>.parquet
                  the parts, each its own done-mark: its number, the first digits of the SHA-256 of the request, and the
                  SHA-256 of its content; one whose content is another is made again
finished.json     size and SHA-256 of the finished result, written just before it takes its place
.lock             held by the process that works here; by several, if each makes another shard
.shard-00000003   held by the process that makes the third shard

Parts depend on the request alone, so the folders of several machines can be copied into one.
"""

import hashlib
import io
import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from dpmpn.bulk.shards import Shard
from dpmpn.errors import RunError
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
from dpmpn.files.held import holding, waiting_for
from dpmpn.wording import counted, listed

_REQUEST, _SHARDS, _FINISHED = "request.json", "shards.json", "finished.json"
_CLAIM = ".claim"
_PARTS = "[0-9]*.parquet"
_NAME = re.compile(r"(\d{8})-([0-9a-f]{16})-([0-9a-f]{64})\.parquet")
_RESULT = "result-"  # begins the name of what is finished and has not taken its place yet
_SHOWN_VALUE = 40  # characters
_SHOWN_CHANGES = 4
_SHOWN_SHARDS = 3


@dataclass(frozen=True)
class Division:
    """Work that is done in shards."""

    shards: int
    parts: int
    command: tuple[str, ...]  # what was given, without the shard
    out: str
    folder: str  # in which the command was given

    def of_shard(self, shard: int) -> str:
        """The command that makes a shard."""
        return shlex.join(["dpmpn", *self.command, "--shard", f"{shard}/{self.shards}"])


class Parts(AbstractContextManager["Parts"]):
    """The parts of one result; a context that leaves its folder for the next run unless `finish` was called."""

    def __init__(self, out: str | Path, request: Mapping[str, Any], shard: Shard | None = None) -> None:
        """Begin a result, or go on with one that the same request began; alone, or beside other shards."""
        self.out = Path(out)
        check_place(self.out)
        self.folder = folder_of(self.out)
        self._shard = shard
        self._removed = _removed_of(self.out)
        self._paths: dict[int, Path] = {}
        plain = json.loads(json.dumps(dict(request)))
        self._key = hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:16]
        self._held = ExitStack()
        try:
            own_folder(self.folder)
        except OSError as error:
            raise RunError(f"{self.folder} cannot be made: {error.strerror}; choose another --out") from error
        try:
            self._held.enter_context(holding(self.folder, shared=shard is not None))
            if shard is not None:
                self._held.enter_context(holding(self.folder, f".shard-{shard.number:08}"))
            if _is_taken(self.out) and not self._is_finished():
                raise _taken(self.out)
            with waiting_for(self.folder / _CLAIM):
                self._claim(plain)
            self._find()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()

    def divide(self, n_parts: int, command: Sequence[str]) -> None:
        """Say how the work is divided, so that others can tell what is missing."""
        if self._shard is None:
            raise ValueError("work that is not in shards is not divided")
        wanted = Division(self._shard.of, n_parts, tuple(command), str(self.out), str(Path.cwd()))
        with waiting_for(self.folder / _CLAIM):
            self._check_division()
            if division_of(self.out) is None:
                with self._kept():
                    write_json(self.folder / _SHARDS, {**vars(wanted), "command": list(command)})

    def missing(self, wanted: Iterable[int]) -> list[int]:
        """Those of some parts that are not here, or not whole; what is not whole is removed."""
        missing = []
        for index in wanted:
            path = self._paths.get(index)
            if path is not None and _content(path) is None:
                remove(self._paths.pop(index))
            if index not in self._paths:
                missing.append(index)
        return missing

    def write(self, index: int, frame: pl.DataFrame) -> None:
        """Add a part; it is there whole, also after a power cut, or not at all."""
        if index in self._paths:
            raise ValueError(f"part {index} is there already")
        packed = io.BytesIO()
        frame.write_parquet(packed, compression="zstd")
        content = packed.getbuffer()
        digest = hashlib.sha256(content).hexdigest()
        path = self.folder / f"{index:08}-{self._key}-{digest}.parquet"
        with self._kept():
            write_whole(path, lambda file: file.write(content))
        self._paths[index] = path

    def read(self, wanted: Iterable[int]) -> Iterator[pl.DataFrame]:
        """Some parts in the order in which they are named, checked."""
        for index in wanted:
            path = self._paths[index]
            content = _content(path)
            if content is None:
                raise RunError(f"{path} was changed while it was in use; run the same command again")
            yield pl.read_parquet(io.BytesIO(content))

    def finish(self, write: Callable[[Path], object]) -> None:
        """Let `write` make the result, which the parts became, and put it in its place; then the folder goes."""
        result = self.folder / f"{_RESULT}{self.out.name}"
        with self._kept():
            write(result)
        if _is_taken(self.out) and not self._is_finished():
            raise _taken(self.out)
        with self._kept():
            write_json(self.folder / _FINISHED, {"bytes": result.stat().st_size, "sha256": sha256_of(result)})
        put_in_place(result, self.out)
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
        """Whether the result is finished, and only the folder was left by a kill."""
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
            # Locks and what a kill left half written have names with a dot.
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
        division = division_of(self.out)
        if made_for != request and division is None and not any(self.folder.glob(_PARTS)):
            write_json(path, request)  # nothing was done for the other one
        elif made_for != request:
            raise RunError(
                f"{self.folder} was started with other options ({_difference(made_for, request)}); "
                "finish it with the command that started it, remove the folder, or choose another --out"
            )
        self._check_division()

    def _check_division(self) -> None:
        """Refuse a shard of another number of shards than others that were run."""
        division = division_of(self.out)
        if self._shard is not None and division is not None and division.shards != self._shard.of:
            raise RunError(
                f"{self.folder} was divided into {counted(division.shards, 'shard')}, not {self._shard.of}; run each "
                f"of them, such as {division.of_shard(1)}, or remove the folder"
            )

    def _find(self) -> None:
        """The parts that are there; whether they are whole is seen when they are needed."""
        if self._shard is None:
            for left in self.folder.glob(f"{_RESULT}*"):
                remove(left)
        for path, index, key in _named(self.folder):
            if key != self._key:
                raise RunError(
                    f"{path} is a part of another request: other options, another run or another file; remove it, "
                    "or choose another --out"
                )
            if index in self._paths:
                raise _twice(self._paths[index], path, index, division_of(self.out))
            self._paths[index] = path


def check_place(out: Path) -> None:
    """Refuse early a result that could not be written, or is there already; what a kill left of it goes."""
    if not out.parent.is_dir():
        raise RunError(f"{out.parent} is not a folder; make it or choose another --out")
    with suppress(FileNotFoundError):
        _removed_of(
            out
        ).lstat()  # the longest name is tried first: it may be too long, which `exists` does not say
        remove_folder(_removed_of(out))
    if _is_taken(out) and not folder_of(out).exists():
        raise _taken(out)


def folder_of(out: Path) -> Path:
    """Where the parts of a result are kept."""
    return out.with_name(out.name + ".parts")


def division_of(out: Path) -> Division | None:
    """How the work on a result was divided; None if it is not done in shards."""
    path = folder_of(out) / _SHARDS
    if not path.exists():
        return None
    values = read_json(path, "run a shard again")
    try:
        command = tuple(map(str, values["command"]))
        return Division(
            int(values["shards"]), int(values["parts"]), command, str(values["out"]), str(values["folder"])
        )
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(
            f"{path} does not say how the work was divided; remove it and run a shard again"
        ) from error


def check_shards(out: Path, done: Iterable[int] | None = None) -> Division:
    """Refuse a result whose shards are not all done, and say which are to be run, and how.

    Without `done`, the parts of which there is a file count.
    """
    folder = folder_of(out)
    if not folder.is_dir():
        there = out.exists()
        raise RunError(
            f"{out} is finished already; there is nothing to merge"
            if there
            else f"{folder} is missing: no shard was run yet; run a command with --out {out} --shard 1/8, and so on"
        )
    division = division_of(out)
    if division is None:
        raise RunError(
            f"{folder} was not begun in shards; go on with the command that began it, which needs no merging"
        )
    found = {index for _, index, _ in _named(folder)} if done is None else set(done)
    lacking = []
    for number in range(1, division.shards + 1):
        own = Shard(number, division.shards).parts(division.parts)
        n_done = sum(index in found for index in own)
        if n_done < len(own):
            lacking.append((number, n_done, len(own)))
    if lacking:
        raise RunError(_lacking(folder, division, lacking))
    return division


def _lacking(folder: Path, division: Division, lacking: list[tuple[int, int, int]]) -> str:
    """The sentence that says which shards are to be run."""
    named = [
        f"{number}/{division.shards} ({done} of {counted(parts, 'part')} done)"
        for number, done, parts in lacking[:_SHOWN_SHARDS]
    ]
    if len(lacking) > _SHOWN_SHARDS:
        named.append(f"{len(lacking) - _SHOWN_SHARDS} more")
    are = "is" if len(lacking) == 1 else "are"
    return (
        f"{folder}: {counted(len(lacking), 'shard')} of {division.shards} {are} not done: {listed(named)}; run "
        f"{division.of_shard(lacking[0][0])}"
        + (", and the others in the same way" if len(lacking) > 1 else "")
    )


def _twice(one: Path, other: Path, index: int, division: Division | None) -> RunError:
    """The error that says that a part is there twice, and how to make it again."""
    again = "run the same command again"
    if division is not None:
        number = next(
            k
            for k in range(1, division.shards + 1)
            if k == division.shards or index in Shard(k, division.shards).parts(division.parts)
        )
        again = f"run {division.of_shard(number)}"
    return RunError(
        f"part {index} is there twice, with different content: {one} and {other.name}, made by machines that "
        f"round differently; remove both and {again}"
    )


def _named(folder: Path) -> Iterator[tuple[Path, int, str]]:
    """The files of parts in a folder in their order, each with its number and the key of its request."""
    for path in sorted(folder.glob(_PARTS)):
        if found := _NAME.fullmatch(path.name):
            yield path, int(found[1]), found[2]


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
