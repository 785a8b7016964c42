"""Which source a name stands for: as asked, by its address or suffix, or by its first bytes.

A new format is a module in this folder whose class is a `Source`, and a line in _FORMATS.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePath
from typing import Any, NamedTuple

import polars as pl

from dpmpn.data.names import normal_names
from dpmpn.data.sources.base import COLUMNS, ReadOptions, Source, looks_like
from dpmpn.data.sources.columns import output_names
from dpmpn.data.sources.excel import ExcelSource, is_workbook
from dpmpn.data.sources.frames import frame_source
from dpmpn.data.sources.json_lines import JsonLinesSource
from dpmpn.data.sources.parquet import ParquetSource
from dpmpn.data.sources.rdf import RdfSource
from dpmpn.data.sources.separated import SeparatedSource
from dpmpn.data.sources.sparql import SparqlSource
from dpmpn.data.sources.sql import SqlSource
from dpmpn.data.sources.unpack import PACKED_SUFFIXES, Unpacked, check_file
from dpmpn.errors import DataError


class Format(NamedTuple):
    """A format of files."""

    name: str  # what --format is, and how names of such files end
    open: Callable[[Path, ReadOptions], Source]
    aliases: tuple[str, ...] = ()  # other names and endings
    is_table: bool = False  # recognised by its first bytes, and packed in itself


_FORMATS = (
    Format("tsv", SeparatedSource, ("tab",)),
    Format("txt", SeparatedSource),
    Format("csv", SeparatedSource),
    Format("jsonl", JsonLinesSource, ("ndjson", "json")),
    Format("parquet", ParquetSource, is_table=True),
    Format("arrow", ParquetSource, ("feather",), is_table=True),
    Format("xlsx", ExcelSource, ("xlsm",), is_table=True),
    Format("nt", partial(RdfSource, format="nt")),
    Format("nq", partial(RdfSource, format="nq")),
    Format("ttl", partial(RdfSource, format="ttl")),
    Format("trig", partial(RdfSource, format="trig")),
    Format("rdfxml", partial(RdfSource, format="rdfxml"), ("rdf", "xml", "owl")),
    Format("jsonld", partial(RdfSource, format="jsonld")),
)
FORMATS = {name: format for format in _FORMATS for name in (format.name, *format.aliases)}
"""Formats by their names, which are suffixes, too."""

PLACE = "place"
_URL = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]+)://")
# Names of the files of a dataset's folder, without suffixes. `graph` is what a NELL-995 task reasons on.
_STEMS = {
    "train": ("train",),
    "valid": ("valid", "val", "validation", "dev"),
    "test": ("test",),
    "graph": ("graph",),
}


def source_of(given: Any, options: ReadOptions | None = None) -> Source:
    """The source that a path, an address or an object in memory stands for."""
    if isinstance(given, str | Path):
        return open_source(str(given), options or ReadOptions())
    return frame_source(given, options)


def facts_of(given: Any, options: ReadOptions | None = None) -> pl.DataFrame:
    """All facts of a path, several paths, an address or an object in memory, as one frame; names as `normal` has them.

    The column `place` says where each stands, such as "facts.csv, line 3".
    """
    if isinstance(given, list | tuple) and any(isinstance(each, Path) for each in given):
        rows = [each for each in given if not isinstance(each, Path)]
        parts = [*(each for each in given if isinstance(each, Path)), *([rows] if rows else [])]
        return pl.concat([facts_of(part, options) for part in parts])
    source = source_of(given, options)
    frames = [pl.DataFrame(schema=dict.fromkeys((*output_names(options or ReadOptions()), PLACE), pl.String))]
    for facts in source.batches():
        where = pl.lit(source.account.source)
        if numbers := source.numbers():
            where = pl.format(f"{{}}, {source.unit} {{}}", where, pl.Series(numbers))
        frames.append(
            facts.select(*frames[0].columns[:-1]).with_columns(
                *(normal_names(facts[name]) for name in COLUMNS), where.alias(PLACE)
            )
        )
    return pl.concat(frames)


def open_sources(sources: Sequence[str], options: ReadOptions) -> list[Source]:
    """The sources that some paths or addresses stand for; of several RDF files each has its own blank nodes."""
    if len(sources) == 1:
        return [open_source(sources[0], options)]
    return [open_source(each, replace(options, scope=str(number))) for number, each in enumerate(sources, 1)]


def open_source(source: str, options: ReadOptions) -> Source:
    """The source a path or an address stands for; nothing but its first bytes is read yet."""
    if url := _URL.match(source):
        return _open_url(source, url[1].lower(), options)
    path = Path(source)
    check_file(path)
    if options.query is not None:
        raise DataError(
            f"{source}: is a file and takes no --query; give the address of an endpoint or a database"
        )
    return _find_format(path, options).open(path, options)


def is_source(given: str | Path) -> bool:
    """Whether a text names a file or an address rather than a folder or a dataset; the file need not be there."""
    name = PurePath(str(given).lower())
    plain = name.with_suffix("") if name.suffix in PACKED_SUFFIXES else name
    is_named_so = plain.suffix[1:] in FORMATS and not Path(given).is_dir()
    return is_named_so or Path(given).is_file() or _URL.match(str(given)) is not None


def split_files(folder: Path) -> dict[str, list[str]]:
    """The files in a folder that can be read, by what they hold: train, valid, test and graph."""
    return {which: _files_of(folder, stems) for which, stems in _STEMS.items()}


def _files_of(folder: Path, stems: tuple[str, ...]) -> list[str]:
    """Files of a split; two of one name, packed and not, are surely the same facts."""
    found: dict[str, Path] = {}
    for file in sorted(folder.iterdir()) if folder.is_dir() else ():
        name = PurePath(file.name.lower())
        plain = name.with_suffix("") if name.suffix in PACKED_SUFFIXES else name
        if plain.name.split(".")[0] in stems and plain.suffix[1:] in FORMATS and file.is_file():
            if other := found.get(plain.name):
                raise DataError(
                    f"{folder}: {other.name} and {file.name} may be the same; remove one, or name the files to "
                    "`dpmpn import`"
                )
            found[plain.name] = file
    return [str(file) for file in found.values()]


def _open_url(url: str, scheme: str, options: ReadOptions) -> Source:
    if scheme == "file":
        raise DataError(f"{url}: give the path of the file without 'file://'")
    if scheme not in ("http", "https"):
        return SqlSource(url, options)
    if options.query is None:
        raise DataError(
            "a web address needs a --query if it is a SPARQL endpoint; else download the file first"
        )
    return SparqlSource(url, options)


def _find_format(path: Path, options: ReadOptions) -> Format:
    if options.format is not None:
        name = options.format.lower().lstrip(".")
        if name not in FORMATS:
            raise DataError(f"unknown format '{options.format}'; give one of {', '.join(FORMATS)}")
        return FORMATS[name]
    if is_workbook(path):  # an archive of many files
        return FORMATS["xlsx"]
    with Unpacked(path) as stream:
        inner, beginning = stream.name, stream.beginning
    suffix = PurePath(inner).suffix.lower().removeprefix(".")
    by_suffix, by_content = FORMATS.get(suffix), FORMATS[_name_by_content(beginning, suffix)]
    # The suffix is believed, except where a table is named like text or the other way round.
    if by_suffix is not None and by_suffix.is_table and not by_content.is_table:
        raise DataError(f"{path}: is named like a {suffix} file and is none; give its --format")
    found = by_content if by_suffix is None or by_suffix.is_table != by_content.is_table else by_suffix
    if found.is_table and inner != path.name:
        raise DataError(f"{path}: a {found.name} file is packed already; unpack it and name the file")
    return found


def _name_by_content(beginning: bytes, suffix: str) -> str:
    """What the first bytes say; text is taken for separated text where nothing else is plain."""
    known = looks_like(beginning)
    if beginning.startswith(b"PK\x03\x04") and FORMATS.get(suffix) is FORMATS["xlsx"]:
        return "xlsx"
    if known and known[0] in ("a Parquet file", "an Arrow file"):
        return "parquet" if "Parquet" in known[0] else "arrow"
    text = beginning.lstrip()
    if text.startswith((b"{", b"[")):
        return "jsonld" if b'"@context"' in text or b'"@id"' in text else "jsonl"
    if text.startswith((b"<?xml", b"<rdf:RDF")):
        return "rdfxml"
    if re.match(rb"(@prefix|@base|PREFIX|BASE)\s", text):
        return "ttl"
    line = text.split(b"\n", 1)[0].rstrip()
    statement = re.match(rb"(<[^<>\s]+>|_:\S+)\s+<[^<>\s]+>\s+\S", line)
    return "nt" if statement and line.endswith(b".") and b"\t<" not in line else "txt"
