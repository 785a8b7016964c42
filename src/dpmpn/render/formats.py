"""The formats of an explanation: the one list that the command line, the server, its page and Python read."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from dpmpn.errors import ConfigError
from dpmpn.explain.explanation import ExplanationData
from dpmpn.explain.reason import WhyNotData

Files = dict[str, bytes]  # contents by the names of their files
_Writer = Callable[[ExplanationData, Sequence[WhyNotData]], dict[str, str | bytes]]


@dataclass(frozen=True)
class Format:
    """How an explanation is written: to files, to a terminal, or as the answer to a request."""

    name: str
    suffix: str
    media_type: str
    main: str  # the file that is printed or downloaded where only one is wanted
    beginnings: dict[str, bytes]  # how each of its files begins: others may have a nodes.csv, too
    write: _Writer  # its files; what it imports is imported when it is called
    help: str = ""  # what `main` holds, where that is less than all
    is_printed: bool = True  # whether a terminal, or a program behind a pipe, can take `main`
    needs_extra: bool = False  # whether a package, or a font, may be missing

    def files(self, explanation: ExplanationData, why_not: Sequence[WhyNotData] = ()) -> Files:
        """Its files, with why other candidates are not the answer where it has room for that."""
        return {
            name: content if isinstance(content, bytes) else content.encode("utf-8", "backslashreplace")
            for name, content in self.write(explanation, why_not).items()
        }


def _text(explanation: ExplanationData, why_not: Sequence[WhyNotData]) -> dict[str, str | bytes]:
    from dpmpn.render.text import full_text

    return {"explanation.txt": full_text(explanation, why_not)}


def _json(explanation: ExplanationData, why_not: Sequence[WhyNotData]) -> dict[str, str | bytes]:
    from dpmpn.render.record import as_record, json_text

    return {"explanation.json": json_text(as_record(explanation, why_not))}


def _csv(explanation: ExplanationData, _: Sequence[WhyNotData]) -> dict[str, str | bytes]:
    from dpmpn.render.export import as_tables

    return {f"{name}.csv": table.write_csv() for name, table in as_tables(explanation).items()}


def _svg(explanation: ExplanationData, _: Sequence[WhyNotData]) -> dict[str, str | bytes]:
    from dpmpn.render.svg import draw_svg

    return {"explanation.svg": draw_svg(explanation)}


def _png(explanation: ExplanationData, _: Sequence[WhyNotData]) -> dict[str, str | bytes]:
    from dpmpn.render.svg import draw_png

    return {"explanation.png": draw_png(explanation)}


def _html(explanation: ExplanationData, why_not: Sequence[WhyNotData]) -> dict[str, str | bytes]:
    from dpmpn.render.page import draw_page

    return {"explanation.html": draw_page(explanation, why_not)}


def _dot(explanation: ExplanationData, _: Sequence[WhyNotData]) -> dict[str, str | bytes]:
    from dpmpn.render.export import as_dot

    return {f"{name}.dot": as_dot(explanation, name == "full") for name in ("full", "pruned")}


_FACT = b"head,relation,tail,head_label,relation_label,tail_label"
_TABLES = {
    "paths.csv": b"path,step," + _FACT,
    "key_facts.csv": _FACT + b",share\n",
    "nodes.csv": b"subgraph,name,label,attention_0",
    "edges.csv": b"subgraph,source,relation,target,relation_label,inverse,flow_1",
}
_GRAPHS = dict.fromkeys(("full.dot", "pruned.dot"), b"digraph explanation {")


def _one_file(
    name: str,
    suffix: str,
    media_type: str,
    begins: bytes,
    write: _Writer,
    is_printed: bool = True,
    needs_extra: bool = False,
) -> Format:
    file = f"explanation.{suffix}"
    return Format(name, suffix, media_type, file, {file: begins}, write, "", is_printed, needs_extra)


_ALL = (
    _one_file("text", "txt", "text/plain; charset=utf-8", b"Question: <", _text),
    _one_file("json", "json", "application/json", b'{\n  "format": "dpmpn explanation"', _json),
    Format("csv", "csv", "text/csv; charset=utf-8", "key_facts.csv", _TABLES, _csv, "the key facts"),
    _one_file("svg", "svg", "image/svg+xml", b"<svg ", _svg, is_printed=False),
    _one_file("png", "png", "image/png", b"\x89PNG", _png, is_printed=False, needs_extra=True),
    _one_file("html", "html", "text/html; charset=utf-8", b"<!doctype html>", _html, is_printed=False),
    Format("dot", "dot", "text/vnd.graphviz; charset=utf-8", "pruned.dot", _GRAPHS, _dot),
)
FORMATS = {format.name: format for format in _ALL}
"""What an explanation can be written as. A new format is a function above and a line here."""

PLAIN = tuple(format.name for format in _ALL if not format.needs_extra)
"""Those that can be written everywhere."""


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
