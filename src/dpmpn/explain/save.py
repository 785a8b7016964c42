"""Writes an explanation to the files of a folder: all or none, each whole, and none of another explanation beside."""

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from dpmpn.errors import ConfigError, RunError
from dpmpn.explain.explanation import Explanation
from dpmpn.files import TEMPORARY_SUFFIX, sync

if TYPE_CHECKING:
    from dpmpn.explain.why_not import WhyNot

Contents = dict[str, bytes]  # by the names of their files


def save_explanation(
    explanation: Explanation,
    folder: str | Path,
    formats: str | Iterable[str],
    why_not: "Sequence[WhyNot]" = (),
) -> list[Path]:
    """Write the files of some formats, in the place of those of an earlier explanation; returns which.

    All are made before the first is written, so what cannot be drawn leaves nothing behind. Files of the same
    explanation stay, those of another one go; the folder may hold anything else.
    """
    wanted = checked_formats(formats)
    folder = Path(folder)
    contents: Contents = {}
    for format in wanted:
        contents.update(FORMATS[format](explanation, why_not))
    _check_places(folder, contents)
    others = _of_another(
        folder, lambda format: contents if format in wanted else _made(format, explanation, why_not)
    )
    _put_in_place(folder, contents, others)
    return [folder / name for name in contents]


def checked_formats(formats: str | Iterable[str]) -> list[str]:
    """The formats, each once, if all are known; as several texts or as one with commas between the names."""
    names = formats.split(",") if isinstance(formats, str) else formats
    wanted = list(dict.fromkeys(name for text in names if (name := text.strip().lower())))
    known = ", ".join(FORMATS)
    for format in wanted:
        if format not in FORMATS:
            raise ConfigError(f"unknown format '{format}'; choose among {known}")
    if not wanted:
        raise ConfigError(f"no format is named; choose among {known}")
    return wanted


def full_text(explanation: Explanation, why_not: "Sequence[WhyNot]" = ()) -> str:
    """The explanation in sentences, and why other candidates are not the answer."""
    from dpmpn.explain.naming import one_line
    from dpmpn.explain.text import told

    reasons = (f"Why not {one_line(reason.label)}?\n{reason.text()}" for reason in why_not)
    return "\n\n".join([told(explanation), *reasons]) + "\n"


def _text(explanation: Explanation, why_not: "Sequence[WhyNot]") -> Contents:
    return {"explanation.txt": _encoded(full_text(explanation, why_not))}


def _json(explanation: Explanation, why_not: "Sequence[WhyNot]") -> Contents:
    from dpmpn.explain.record import as_record, json_text

    return {"explanation.json": _encoded(json_text(as_record(explanation, why_not)))}


def _csv(explanation: Explanation, _: "Sequence[WhyNot]") -> Contents:
    from dpmpn.explain.export import as_tables

    return {f"{name}.csv": _encoded(table.write_csv()) for name, table in as_tables(explanation).items()}


def _svg(explanation: Explanation, _: "Sequence[WhyNot]") -> Contents:
    from dpmpn.render.svg import draw_svg

    return {"explanation.svg": _encoded(draw_svg(explanation))}


def _png(explanation: Explanation, _: "Sequence[WhyNot]") -> Contents:
    from dpmpn.render.png import draw_png

    return {"explanation.png": draw_png(explanation)}


def _html(explanation: Explanation, why_not: "Sequence[WhyNot]") -> Contents:
    from dpmpn.render.page import draw_page

    return {"explanation.html": _encoded(draw_page(explanation, why_not))}


def _dot(explanation: Explanation, _: "Sequence[WhyNot]") -> Contents:
    from dpmpn.explain.export import as_dot

    return {f"{name}.dot": _encoded(as_dot(explanation, name == "full")) for name in ("full", "pruned")}


FORMATS: "dict[str, Callable[[Explanation, Sequence[WhyNot]], Contents]]" = {
    "text": _text,
    "json": _json,
    "csv": _csv,
    "svg": _svg,
    "png": _png,
    "html": _html,
    "dot": _dot,
}
"""What can be written, and how."""


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


_FACT = b"head,relation,tail,head_label,relation_label,tail_label"
_BEGINNINGS: dict[str, dict[str, bytes]] = {
    "text": {"explanation.txt": b"Question: <"},
    "json": {"explanation.json": b'{\n  "format": "dpmpn explanation"'},
    "csv": {
        "paths.csv": b"path,step," + _FACT,
        "key_facts.csv": _FACT + b",share\n",
        "nodes.csv": b"subgraph,name,label,attention_0",
        "edges.csv": b"subgraph,source,relation,target,relation_label,inverse,flow_1",
    },
    "svg": {"explanation.svg": b"<svg "},
    "png": {"explanation.png": b"\x89PNG"},
    "html": {"explanation.html": b"<!doctype html>"},
    "dot": {name: b"digraph explanation {" for name in ("full.dot", "pruned.dot")},
}
"""How the files of each format begin: others may have a nodes.csv, too, and theirs is not to be removed."""


def _made(format: str, explanation: Explanation, why_not: "Sequence[WhyNot]") -> Contents:
    """The files of a format, none where they cannot be made here."""
    try:
        return FORMATS[format](explanation, why_not)
    except ConfigError:
        return {}


def _of_another(folder: Path, own: Callable[[str], Contents]) -> list[Path]:
    """The files of an earlier explanation, if it is not the same as `own` would write it."""
    found = []
    for format, beginnings in _BEGINNINGS.items():
        there = {name: content for name in beginnings if (content := _read(folder / name)) is not None}
        there = {name: content for name, content in there.items() if content.startswith(beginnings[name])}
        same = own(format) if there else {}
        found += [folder / name for name, content in there.items() if same.get(name) != content]
    return found


def _read(path: Path) -> bytes | None:
    """What is in a file, if it is one that can be read; a link is none of ours."""
    try:
        return path.read_bytes() if path.is_file() and not path.is_symlink() else None
    except OSError:
        return None


def _check_places(folder: Path, contents: Contents) -> None:
    """Refuse a folder that the files cannot be put into."""
    if folder.exists() and not folder.is_dir():
        raise RunError(f"{folder} is not a folder; choose another --out")
    for name in contents:
        if (folder / name).is_dir():
            raise RunError(f"cannot write {folder / name}: a folder has this name; choose another --out")


def _put_in_place(folder: Path, contents: Contents, others: list[Path]) -> None:
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
