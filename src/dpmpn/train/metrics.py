"""A run's metrics, one JSON object a line: appended one by one, taken back when a run goes on."""

import json
import os
from pathlib import Path
from typing import Any

from dpmpn.errors import RunError
from dpmpn.train.files import write_whole


def append_line(path: Path, values: dict[str, Any]) -> None:
    """Add a line in one write, so that a killed run leaves at most one broken line, the last."""
    line = json.dumps(values, allow_nan=False).encode() + b"\n"
    try:
        with path.open("ab", buffering=0) as file:
            file.write(line)
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror or error}") from error


def sync_lines(path: Path) -> None:
    """Make the lines written so far survive a power cut."""
    with path.open("ab") as file:
        os.fsync(file.fileno())


def read_lines(path: Path) -> list[dict[str, Any]]:
    """All whole lines."""
    try:
        return [json.loads(line) for line in _whole_lines(path)]
    except ValueError as error:
        raise RunError(f"{path} has a broken line ({error}); remove that line") from error


def rewind_lines(path: Path, count: int) -> None:
    """Keep the first lines only: drop what a killed run wrote after its last checkpoint."""
    kept = b"".join(line + b"\n" for line in _whole_lines(path)[:count])
    write_whole(path, lambda temporary: temporary.write_bytes(kept))


def _whole_lines(path: Path) -> list[bytes]:
    """The lines without the last one of a killed run, if it was cut off before its line break."""
    return path.read_bytes().split(b"\n")[:-1] if path.exists() else []
