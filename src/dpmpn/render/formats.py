"""What people are given: an explanation, or why not another answer, and the one list of formats they are written in."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path

from dpmpn.arguments import typed
from dpmpn.data.spreadsheets import csv_of
from dpmpn.errors import ConfigError, RunError, WrongType, shown
from dpmpn.explain.explanation import ExplanationData
from dpmpn.explain.why_not import WhyNotData
from dpmpn.files import Write, named_folder, write_together
from dpmpn.render.export import as_dot, as_networkx, as_record, as_tables, json_text, why_not_record
from dpmpn.render.page import draw_page
from dpmpn.render.patterns import named_patterns
from dpmpn.render.svg import draw_png, draw_svg
from dpmpn.render.text import explanation_text, full_text
from dpmpn.render.why_not_text import why_not_text
from dpmpn.wording import one_line

Files = dict[str, bytes]  # contents by the names of their files
_WhyNot = Sequence[WhyNotData]
_Writer = Callable[[ExplanationData, _WhyNot], str | bytes | dict[str, str]]
"""Gives the text of a format's only file, or all its files by name."""


@dataclass(frozen=True)
class Format:
    """How an explanation is written: to files, to a terminal, or as the answer to a request."""

    name: str
    media_type: str
    beginnings: dict[str, bytes]  # of its files, the main one first: others may have a nodes.csv, too
    write: _Writer
    help: str = ""  # what the main file holds, where that is less than all
    is_printed: bool = False  # whether a terminal, or a program behind a pipe, can take the main file
    needs_extra: bool = False  # whether a package, or a font, may be missing

    @property
    def main(self) -> str:
        """The file to print or to download where only one is wanted."""
        return next(iter(self.beginnings))

    @property
    def suffix(self) -> str:
        """By which a request names it."""
        return self.main.rpartition(".")[2]

    def files(self, explanation: ExplanationData, why_not: _WhyNot = ()) -> Files:
        """Its files, with why other candidates are not the answer where it has room for that."""
        written = self.write(explanation, why_not)
        contents = written if isinstance(written, dict) else {self.main: written}
        return {
            name: content if isinstance(content, bytes) else content.encode("utf-8", "backslashreplace")
            for name, content in contents.items()
        }

    def content(self, explanation: ExplanationData, why_not: _WhyNot = ()) -> bytes:
        """What its main file holds."""
        return self.files(explanation, why_not)[self.main]


def _json(explanation: ExplanationData, why_not: _WhyNot) -> str:
    return json_text(as_record(explanation, why_not))


def _tables(explanation: ExplanationData, _: _WhyNot) -> dict[str, str]:
    return {f"{name}.csv": csv_of(table) for name, table in as_tables(explanation).items()}


def _graphs(explanation: ExplanationData, _: _WhyNot) -> dict[str, str]:
    return {"full.dot": as_dot(explanation, full=True), "pruned.dot": as_dot(explanation)}


_FACT = b"head,relation,tail,head_label,relation_label,tail_label"
_TABLES = {
    "patterns.csv": b"pattern,share,sentence,relations,n_instances",
    "key_facts.csv": _FACT + b",share\n",
    "paths.csv": b"path,step," + _FACT,
    "nodes.csv": b"subgraph,name,label,attention_0",
    "edges.csv": b"subgraph,source,relation,target,relation_label,inverse,flow_1",
}
_GRAPHS = dict.fromkeys(("pruned.dot", "full.dot"), b"digraph explanation {")
_RECORD = b'{\n  "format": "dpmpn explanation"'
_UTF_8 = "; charset=utf-8"
_ALL = (
    Format("text", "text/plain" + _UTF_8, {"explanation.txt": b"Question: <"}, full_text, is_printed=True),
    Format("json", "application/json", {"explanation.json": _RECORD}, _json, is_printed=True),
    Format("csv", "text/csv" + _UTF_8, _TABLES, _tables, "the patterns", is_printed=True),
    Format("svg", "image/svg+xml", {"explanation.svg": b"<svg "}, lambda it, _: draw_svg(it)),
    Format("png", "image/png", {"explanation.png": b"\x89PNG"}, lambda it, _: draw_png(it), needs_extra=True),
    Format("html", "text/html" + _UTF_8, {"explanation.html": b"<!doctype html>"}, draw_page),
    Format("dot", "text/vnd.graphviz" + _UTF_8, _GRAPHS, _graphs, is_printed=True),
)
FORMATS = {format.name: format for format in _ALL}
"""What an explanation can be written as: a new format is one more `Format` above."""

PLAIN = tuple(format.name for format in _ALL if not format.needs_extra)
"""Those that can be written everywhere."""


@typed
def checked_formats(formats: str | Iterable[str]) -> list[str]:
    """The formats, each once, if all are known; as several texts or as one with commas between the names."""
    names = formats.split(",") if isinstance(formats, str) else list(formats)
    if wrong := [name for name in names if not isinstance(name, str)]:
        raise WrongType(f"formats are named by texts, not by {shown(wrong[0])}")
    wanted = list(dict.fromkeys(name for text in names if (name := text.strip().lower())))
    known = ", ".join(FORMATS)
    for format in wanted:
        if format not in FORMATS:
            raise ConfigError(f"unknown format '{format}'; choose among {known}")
    if not wanted:
        raise ConfigError(f"no format is named; choose among {known}")
    return wanted


class WhyNot(WhyNotData):
    """Where the attention of a candidate was lost; steps are counted from 1, and fields that say nothing are empty."""

    text = __str__ = why_not_text
    to_dict = why_not_record


class Explanation(ExplanationData):
    """Why an answer was given, read from the trace of one forward pass."""

    patterns = cached_property(named_patterns)
    text = explanation_text
    to_dict = as_record
    to_networkx = as_networkx
    svg = draw_svg
    png = draw_png
    html = draw_page

    def __repr__(self) -> str:
        answer = self.answer
        return f"Explanation({self.question} {one_line(answer.label)}, rank {answer.rank}, score {answer.score:.3g})"

    @typed
    def save(
        self, folder: str | Path, formats: str | Iterable[str] = PLAIN, why_not: Sequence[WhyNotData] = ()
    ) -> list[Path]:
        """Write it to files of a folder, in the formats that `dpmpn explain --format` has; returns which.

        All are made before the first is written, so what cannot be drawn leaves nothing behind. Files of the same
        explanation stay, those of another one go; the folder may hold anything else.
        """
        wanted = checked_formats(formats)
        folder = Path(folder)
        contents: Files = {}
        for format in wanted:
            contents.update(FORMATS[format].files(self, why_not))
        _check_places(folder, contents)
        others = _of_another(
            folder, lambda format: contents if format in wanted else _files_if_possible(format, self, why_not)
        )
        _put_in_place(folder, contents, others)
        return [folder / name for name in contents]

    def _repr_html_(self) -> str:
        """What a notebook shows: the text and the picture."""
        return f"<pre style='white-space: pre-wrap'>{escape(self.text())}</pre>{self.svg()}"


def _files_if_possible(format: str, explanation: ExplanationData, why_not: Sequence[WhyNotData]) -> Files:
    """The files of a format, none where they cannot be made here."""
    try:
        return FORMATS[format].files(explanation, why_not)
    except ConfigError:
        return {}


def _of_another(folder: Path, own: Callable[[str], Files]) -> list[Path]:
    """The files of an earlier explanation, if it is not the same as `own` would write it."""
    others = []
    for format in FORMATS.values():
        beginnings = format.beginnings
        there = {name: content for name in beginnings if (content := _read(folder / name)) is not None}
        there = {name: content for name, content in there.items() if content.startswith(beginnings[name])}
        same = own(format.name) if there else {}
        others += [folder / name for name, content in there.items() if same.get(name) != content]
    return others


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
    """Write all files, in the place of the others."""
    try:
        with named_folder(folder):
            write_together({folder / name: _writer(content) for name, content in contents.items()}, others)
    except (OSError, RunError) as error:
        cause = error if isinstance(error, OSError) else error.__cause__
        if not isinstance(cause, OSError):
            raise
        raise RunError(
            f"cannot write to {folder}: {cause.strerror or cause}; choose another --out"
        ) from cause


def _writer(content: bytes) -> Write:
    return lambda file: file.write(content)
