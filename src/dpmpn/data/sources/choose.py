"""Which kind of source a name stands for: as asked, by its address or suffix, or by its first bytes."""

import re
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import Any

from dpmpn.data.sources.base import ReadOptions, Source
from dpmpn.data.sources.lines import looks_like
from dpmpn.data.sources.unpack import check_file, open_unpacked
from dpmpn.errors import DataError

SEPARATED, JSON, TABLE, RDF = "separated", "json", "table", "rdf"
# Suffixes and what --format may be: how they are read, and the name that reader has for them.
FORMATS = {
    "tsv": (SEPARATED, "tsv"),
    "tab": (SEPARATED, "tsv"),
    "txt": (SEPARATED, "txt"),
    "csv": (SEPARATED, "csv"),
    "jsonl": (JSON, "jsonl"),
    "ndjson": (JSON, "jsonl"),
    "json": (JSON, "jsonl"),
    "parquet": (TABLE, "parquet"),
    "arrow": (TABLE, "arrow"),
    "feather": (TABLE, "arrow"),
    "nt": (RDF, "nt"),
    "nq": (RDF, "nq"),
    "ttl": (RDF, "ttl"),
    "trig": (RDF, "trig"),
    "rdfxml": (RDF, "rdfxml"),
    "rdf": (RDF, "rdfxml"),
    "xml": (RDF, "rdfxml"),
    "owl": (RDF, "rdfxml"),
    "jsonld": (RDF, "jsonld"),
}
_URL = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]+)://")


def source_of(given: Any, options: ReadOptions | None = None) -> Source:
    """The source that a path, an address or an object in memory stands for."""
    if isinstance(given, str | Path):
        return open_source(str(given), options or ReadOptions())
    from dpmpn.data.sources.frames import frame_source

    return frame_source(given, options)


def open_sources(sources: Sequence[str], options: ReadOptions) -> list[Source]:
    """The sources that some paths or addresses stand for; of several RDF files each has its own blank nodes."""
    several = len(sources) > 1
    return [
        open_source(source, options, str(number) if several else "")
        for number, source in enumerate(sources, 1)
    ]


def open_source(source: str, options: ReadOptions, scope: str = "") -> Source:
    """The source a path or an address stands for; nothing but its first bytes is read yet."""
    if url := _URL.match(source):
        return _open_url(source, url[1].lower(), options)
    path = Path(source)
    check_file(path)
    if options.query is not None:
        raise DataError(
            f"{source}: is a file and takes no --query; give the address of an endpoint or a database"
        )
    kind, name = _find_format(path, options)
    if kind == RDF:
        from dpmpn.data.sources.rdf import RdfSource

        return RdfSource(path, options, name, scope)
    if kind == TABLE:
        from dpmpn.data.sources.parquet import ParquetSource

        return ParquetSource(path, options)
    if kind == JSON:
        from dpmpn.data.sources.json_lines import JsonLinesSource

        return JsonLinesSource(path, options)
    from dpmpn.data.sources.separated import SeparatedSource

    return SeparatedSource(path, options)


def _open_url(url: str, scheme: str, options: ReadOptions) -> Source:
    if scheme == "file":
        raise DataError(f"{url}: give the path of the file without 'file://'")
    if scheme in ("http", "https"):
        if options.query is None:
            raise DataError(
                "a web address needs a --query if it is a SPARQL endpoint; else download the file first"
            )
        from dpmpn.data.sources.sparql import SparqlSource

        return SparqlSource(url, options)
    from dpmpn.data.sources.sql import SqlSource

    return SqlSource(url, options)


def _find_format(path: Path, options: ReadOptions) -> tuple[str, str]:
    if options.format is not None:
        name = options.format.lower().lstrip(".")
        if name not in FORMATS:
            raise DataError(f"unknown format '{options.format}'; give one of {', '.join(FORMATS)}")
        return FORMATS[name]
    with open_unpacked(path) as stream:
        inner, beginning = stream.name, stream.beginning
    suffix = PurePath(inner).suffix.lower().removeprefix(".")
    by_content = _by_content(path, beginning)
    # The suffix is believed, except where a table is named like text or the other way round.
    if suffix in FORMATS and (FORMATS[suffix][0] == TABLE) == (by_content[0] == TABLE):
        found = FORMATS[suffix]
    elif suffix in FORMATS and by_content[0] != TABLE:
        raise DataError(f"{path}: is named like a {suffix} file and is none; give its --format")
    else:
        found = by_content
    if found[0] == TABLE and inner != path.name:
        raise DataError(f"{path}: a {found[1]} file is packed already; unpack it and name the file")
    return found


def _by_content(path: Path, beginning: bytes) -> tuple[str, str]:
    """What the first bytes say; text is taken for separated text where nothing else is plain."""
    known = looks_like(beginning)
    if known and known[0] in ("a Parquet file", "an Arrow file"):
        return FORMATS["parquet" if "Parquet" in known[0] else "arrow"]
    text = beginning.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith((b"{", b"[")):
        return FORMATS["jsonld" if b'"@context"' in text or b'"@id"' in text else "jsonl"]
    if text.startswith(b"<?xml") or text.startswith(b"<rdf:RDF"):
        return FORMATS["rdfxml"]
    if re.match(rb"(@prefix|@base|PREFIX|BASE)\s", text):
        return FORMATS["ttl"]
    line = text.split(b"\n", 1)[0].rstrip()
    if (
        re.match(rb"(<[^<>\s]+>|_:\S+)\s+<[^<>\s]+>\s+\S", line)
        and line.endswith(b".")
        and b"\t<" not in line
    ):
        return FORMATS["nt"]
    return FORMATS["txt"]
