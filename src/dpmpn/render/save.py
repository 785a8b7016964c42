"""Writes an explanation to the files of a folder: all or none, each whole, and none of another explanation beside."""

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from dpmpn.errors import ConfigError, RunError
from dpmpn.explain.explanation import ExplanationData
from dpmpn.explain.reason import WhyNotData
from dpmpn.files import TEMPORARY_SUFFIX, sync
from dpmpn.render.formats import FORMATS, Files, checked_formats


def save_explanation(
    explanation: ExplanationData,
    folder: str | Path,
    formats: str | Iterable[str],
    why_not: Sequence[WhyNotData] = (),
) -> list[Path]:
    """Write the files of some formats, in the place of those of an earlier explanation; returns which.

    All are made before the first is written, so what cannot be drawn leaves nothing behind. Files of the same
    explanation stay, those of another one go; the folder may hold anything else.
    """
    wanted = checked_formats(formats)
    folder = Path(folder)
    contents: Files = {}
    for format in wanted:
        contents.update(FORMATS[format].files(explanation, why_not))
    _check_places(folder, contents)
    others = _of_another(
        folder, lambda format: contents if format in wanted else _made(format, explanation, why_not)
    )
    _put_in_place(folder, contents, others)
    return [folder / name for name in contents]


def _made(format: str, explanation: ExplanationData, why_not: Sequence[WhyNotData]) -> Files:
    """The files of a format, none where they cannot be made here."""
    try:
        return FORMATS[format].files(explanation, why_not)
    except ConfigError:
        return {}


def _of_another(folder: Path, own: Callable[[str], Files]) -> list[Path]:
    """The files of an earlier explanation, if it is not the same as `own` would write it."""
    found = []
    for format in FORMATS.values():
        beginnings = format.beginnings
        there = {name: content for name in beginnings if (content := _read(folder / name)) is not None}
        there = {name: content for name, content in there.items() if content.startswith(beginnings[name])}
        same = own(format.name) if there else {}
        found += [folder / name for name, content in there.items() if same.get(name) != content]
    return found


def _read(path: Path) -> bytes | None:
    """What is in a file, if it is one that can be read; a link is none of ours."""
    try:
        return path.read_bytes() if path.is_file() and not path.is_symlink() else None
    except OSError:
        return None


def _check_places(folder: Path, contents: Files) -> None:
    """Refuse a folder that the files cannot be put into."""
    if folder.exists() and not folder.is_dir():
        raise RunError(f"{folder} is not a folder; choose another --out")
    for name in contents:
        if (folder / name).is_dir():
            raise RunError(f"cannot write {folder / name}: a folder has this name; choose another --out")


def _put_in_place(folder: Path, contents: Files, others: list[Path]) -> None:
    """Write all files beside their places, then remove the others and put these in place.

    In this order a crash may leave a few of the new files alone, but never files of two explanations.
    """
    is_new = not folder.exists()
    temporaries = {name: folder / f".{name}{TEMPORARY_SUFFIX}" for name in contents}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, temporary in temporaries.items():
            temporary.write_bytes(contents[name])
            sync(temporary)
        for other in others:
            other.unlink(missing_ok=True)
        for name, temporary in temporaries.items():
            os.replace(temporary, folder / name)
        sync(folder)
    except OSError as error:
        raise RunError(
            f"cannot write to {folder}: {error.strerror or error}; choose another --out"
        ) from error
    finally:
        with suppress(OSError):  # there is no such folder, or nothing is left to be removed
            for temporary in temporaries.values():
                temporary.unlink(missing_ok=True)
            if is_new:
                folder.rmdir()  # only if it is empty
