"""Writes an explanation to the files of a folder, each whole or not at all."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dpmpn.errors import ConfigError, RunError
from dpmpn.explain.explanation import Explanation
from dpmpn.files import write_whole

if TYPE_CHECKING:
    from dpmpn.explain.why_not import WhyNot

Contents = dict[str, bytes]  # by the names of their files


def save_explanation(
    explanation: Explanation,
    folder: str | Path,
    formats: Iterable[str],
    why_not: "Sequence[WhyNot]" = (),
) -> list[Path]:
    """Write the files of some formats, over those of an earlier explanation; returns which.

    All are made before the first is written, so what cannot be drawn leaves nothing behind.
    """
    wanted = checked_formats(formats)
    folder = Path(folder)
    contents: Contents = {}
    for format in wanted:
        contents.update(FORMATS[format](explanation, why_not))
    _make_folder(folder)
    return [_written(folder / name, content) for name, content in contents.items()]


def checked_formats(formats: Iterable[str]) -> list[str]:
    """The formats, each once, if all are known."""
    wanted = list(dict.fromkeys(formats))
    known = ", ".join(FORMATS)
    for format in wanted:
        if format not in FORMATS:
            raise ConfigError(f"unknown format '{format}'; choose among {known}")
    if not wanted:
        raise ConfigError(f"no format is named; choose among {known}")
    return wanted


def full_text(explanation: Explanation, why_not: "Sequence[WhyNot]" = ()) -> str:
    """The explanation in sentences, and why other candidates are not the answer."""
    from dpmpn.explain.text import one_line, told

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
    from dpmpn.drawing.svg import draw_svg

    return {"explanation.svg": _encoded(draw_svg(explanation))}


def _png(explanation: Explanation, _: "Sequence[WhyNot]") -> Contents:
    from dpmpn.drawing.png import draw_png

    return {"explanation.png": draw_png(explanation)}


def _html(explanation: Explanation, why_not: "Sequence[WhyNot]") -> Contents:
    from dpmpn.drawing.page import draw_page

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


def _make_folder(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise RunError(f"{folder} is not a folder; choose another --out")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"cannot make the folder {folder}: {error.strerror}; choose another --out") from error


def _written(path: Path, content: bytes) -> Path:
    write_whole(path, lambda temporary: temporary.write_bytes(content))
    return path
