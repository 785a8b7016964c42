"""Files that are there whole or not at all: written beside, synced to the disk, then renamed."""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpmpn.errors import RunError

TEMPORARY_SUFFIX = ".partial"


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file in the same folder, then put it in the place of `path`."""
    temporary = path.with_name(f".{path.name}{TEMPORARY_SUFFIX}")
    try:
        write(temporary)
        sync(temporary)
        os.replace(temporary, path)
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)
    sync(path.parent)


def write_json(path: Path, values: Any) -> None:
    """Write values as JSON."""
    text = json.dumps(values, indent=2, ensure_ascii=False) + "\n"
    write_whole(path, lambda temporary: temporary.write_text(text, "utf-8"))


def read_json(path: Path, advice: str) -> dict[str, Any]:
    """Read a JSON object; `advice` says what to do where it is missing or broken."""
    try:
        values = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise RunError(f"{path} is missing; {advice}") from error
    except (OSError, ValueError) as error:
        raise RunError(f"{path} cannot be read ({error}); {advice}") from error
    if not isinstance(values, dict):
        raise RunError(f"{path} does not hold a JSON object; {advice}")
    return values


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file's content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sync(path: Path) -> None:
    """Make a file, or the names in a folder, survive a power cut."""
    if path.is_dir() and os.name != "posix":
        return  # elsewhere a folder cannot be synced
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
