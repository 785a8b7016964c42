"""A run's metrics, one JSON object a line: appended one by one, taken back when a run goes on."""

import json
import os
from pathlib import Path
from typing import Any

from dpmpn.errors import RunError
from dpmpn.files import write_whole


def append_line(path: Path, values: dict[str, Any]) -> None:
    """Add a whole line or, where the disk is full, nothing; a killed run leaves at most one broken line, the last."""
    line = json.dumps(values, allow_nan=False).encode() + b"\n"
    try:
        with path.open("ab", buffering=0) as file:
            before, left = file.tell(), line
            try:
                while left := left[file.write(left) :]:
                    pass  # the rest of a line that fitted in part; the next write says why
            except OSError:
                file.truncate(before)
                raise
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror or error}") from error


def sync_lines(path: Path) -> None:
    """Make the lines written so far survive a power cut."""
    try:
        with path.open("ab") as file:
            os.fsync(file.fileno())
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror or error}") from error


def read_lines(path: Path) -> list[dict[str, Any]]:
    """All whole lines."""
    found = []
    for number, line in enumerate(_whole_lines(path), start=1):
        try:
            values = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise RunError(f"{path}, line {number} is broken ({error}); remove that line") from error
        if not isinstance(values, dict):
            raise RunError(f"{path}, line {number} does not hold a JSON object; remove that line")
        found.append(values)
    return found


def rewind_lines(path: Path, count: int) -> None:
    """Keep the first lines only: drop what a killed run wrote after its last checkpoint."""
    kept = b"".join(line + b"\n" for line in _whole_lines(path)[:count])
    if not path.exists() or path.stat().st_size != len(kept):
        write_whole(path, lambda temporary: temporary.write_bytes(kept))


def _whole_lines(path: Path) -> list[bytes]:
    """The lines without the last one of a killed run, if it was cut off before its line break."""
    try:
        return path.read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror or error}; move it away") from error
