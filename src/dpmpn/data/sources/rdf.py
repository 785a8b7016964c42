"""RDF as facts: names of terms, what becomes a label, what is left out and why; and files of six formats as a stream.

The one form all RDF comes in here is canonical N-Quads, a statement a line, as pyoxigraph writes it: a million
statements of any syntax are written so and cut by columns in 1.5 s, taking each term apart in Python takes 4.5 s.

An IRI is named by itself. A blank node is `_:id`; those a document gives no id are `_:anonymous#1` and so on in the
order they are met, and with a scope `_:scope/id`. A literal that is kept is named as Turtle writes it: `"Berlin"@de`,
`"12"^^xsd:integer`, line breaks and quotation marks in it as `\\n` and `\\"`; equal literals are one node.
"""

import io
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import BinaryIO
from urllib.parse import quote

import polars as pl

from dpmpn.data.sources.base import (
    COLUMNS,
    FACTS,
    LABELS,
    Account,
    Chunk,
    FileSource,
    Problem,
    ReadOptions,
    Source,
    encoding_problem,
    refuse_binary,
    short,
    text_chunks,
)
from dpmpn.data.sources.unpack import MEGABYTE, Unpacked
from dpmpn.data.sources.watched_xml import WatchedXml
from dpmpn.errors import DataError
from dpmpn.wording import one_line

TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
_RDFS, _SKOS = "http://www.w3.org/2000/01/rdf-schema#", "http://www.w3.org/2004/02/skos/core#"
# Of several names of one thing the earlier predicate wins.
_NAMES = (
    f"{_RDFS}label",
    f"{_SKOS}prefLabel",
    "http://schema.org/name",
    "https://schema.org/name",
    "http://xmlns.com/foaf/0.1/name",
)
_DESCRIPTIONS = (
    f"{_RDFS}comment",
    "http://schema.org/description",
    "https://schema.org/description",
    f"{_SKOS}definition",
)
_RANKS = {name: rank for names in (_NAMES, _DESCRIPTIONS) for rank, name in enumerate(names)}
_TEXTS = {"id": pl.String, "is_name": pl.Boolean, "text": pl.String, "rank": pl.Int32}
_OTHER_LANGUAGE = 100  # added to the rank: a text in another language than English comes after all others
_ESCAPES = {r"\\": "\\", r"\"": '"', r"\n": "\n", r"\r": "\r", r"\t": "\t", r"\b": " ", r"\f": " "}
_ESCAPES |= {f"\\u{code:04X}": " " for code in (*range(0x20), 0x7F)}
_XSD = r"\^\^<http://www\.w3\.org/2001/XMLSchema#([A-Za-z]+)>$"
_GRAPH = r' (?:<[^\s<>"]*>|_:[^\s"]+)$'
FORMATS = {
    "nt": "N_TRIPLES",
    "nq": "N_QUADS",
    "ttl": "TURTLE",
    "trig": "TRIG",
    "rdfxml": "RDF_XML",
    "jsonld": "JSON_LD",
}
_BATCH = 150_000  # statements


class Statements:
    """Turns statements into facts, batch after batch, and keeps the labels and types met."""

    def __init__(self, account: Account, options: ReadOptions) -> None:
        self.scope, self.in_named_graphs = options.scope, 0
        self._account, self._keep_literals = account, options.literals == "keep"
        self._anonymous: dict[str, str] = {}
        self._texts: list[pl.DataFrame] = []
        self._types: list[pl.DataFrame] = []
        self.kept = pl.Series(
            dtype=pl.UInt32
        )  # positions of the last facts among the statements they were read from

    def facts(self, quads: bytes) -> pl.DataFrame:
        """The facts of canonical N-Quads lines."""
        if not quads:
            return pl.DataFrame(schema=FACTS)
        # Control characters are escaped in canonical lines: none holds the separator.
        parts = pl.col("line").str.strip_suffix(" .").str.splitn(" ", 3)
        lines = pl.read_csv(
            quads, separator="\x01", quote_char=None, has_header=False, schema={"line": pl.String}
        )
        frame = lines.select(parts).unnest("line")
        frame.columns = list(COLUMNS)
        return self.facts_of_terms(self._without_graphs(frame))

    def facts_of_terms(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The facts of columns of terms as N-Quads writes them; further columns are kept beside."""
        self._account.read += frame.height
        frame = frame.with_row_index("at")
        literal = pl.col("tail").str.starts_with('"')
        frame = frame.with_columns(pl.col("relation").str.strip_prefix("<").str.strip_suffix(">"))
        frame = frame.with_columns(self._named("head", frame))
        is_text = literal & pl.col("relation").is_in(list(_RANKS))
        frame = self._without(frame, is_text, "name or description, used as label", self._keep_texts)
        frame = self._without(frame, pl.col("tail").str.starts_with("<<"), "statement about a statement")
        if self._keep_literals:
            shortened = pl.col("tail").str.replace(_XSD, "^^xsd:$1")
            frame = frame.with_columns(tail=pl.when(literal).then(shortened).otherwise("tail"))
        else:
            frame = self._without(frame, literal, "literal value")
        frame = frame.with_columns(self._named("tail", frame))
        self._keep_types(frame)
        self.kept = frame["at"]
        return frame.drop("at")

    def labels(self) -> pl.DataFrame:
        """A row for each term with a name, a description or a type."""
        texts = _best(pl.concat([pl.DataFrame(schema=_TEXTS), *self._texts]))
        names = texts.filter(pl.col("is_name")).select("id", name="text")
        descriptions = texts.filter(~pl.col("is_name")).select("id", description="text")
        types = _type_names(self._types, names)
        ids = pl.concat([part.select("id") for part in (names, descriptions, types)])
        result = ids.unique(maintain_order=True)
        for part in (names, descriptions, types):
            result = result.join(part, on="id", how="left", maintain_order="left")
        return result.select(list(LABELS))

    def _without_graphs(self, frame: pl.DataFrame) -> pl.DataFrame:
        in_graph = frame.get_column("tail").str.contains(_GRAPH)
        if not in_graph.any():
            return frame
        self.in_named_graphs += int(in_graph.sum())
        return frame.with_columns(pl.col("tail").str.replace(_GRAPH, ""))

    def _named(self, column: str, frame: pl.DataFrame) -> pl.Series:
        """The terms of a column as names."""
        terms = frame.get_column(column)
        blank = terms.str.starts_with("_:")
        iris = frame.select(
            pl.when(pl.col(column).str.starts_with("<"))
            .then(pl.col(column).str.strip_prefix("<").str.strip_suffix(">"))
            .otherwise(column)
            .alias(column)
        ).to_series()
        if not blank.any():
            return iris
        ids = terms.filter(blank).unique(maintain_order=True)
        names = [self._blank_name(term.removeprefix("_:")) for term in ids]
        return iris.replace(ids, pl.Series(names, dtype=pl.String))

    def _blank_name(self, label: str) -> str:
        """A blank node's name; ids that pyoxigraph made up are random and would differ from run to run."""
        if len(label) >= 28 and label[0] in "abcdef" and not label.strip("0123456789abcdef"):
            label = self._anonymous.setdefault(label, f"anonymous#{len(self._anonymous) + 1}")
        return f"_:{self.scope}/{label}" if self.scope else f"_:{label}"

    def _without(
        self,
        frame: pl.DataFrame,
        which: pl.Expr,
        reason: str,
        keep: Callable[[pl.DataFrame], None] | None = None,
    ) -> pl.DataFrame:
        """The rest of the statements, once those that are no facts are counted, and kept for another use."""
        chosen = frame.select(which.alias("chosen")).to_series()
        if not chosen.any():
            return frame
        aside = frame.filter(chosen)
        self._account.skip(reason, aside.height, short(" ".join(aside.select(COLUMNS).row(0))))
        if keep is not None:
            keep(aside)
        return frame.filter(~chosen)

    def _keep_texts(self, frame: pl.DataFrame) -> None:
        language = pl.col("tail").str.extract(r"@([A-Za-z0-9-]+)$").fill_null("en")
        other = pl.when(language.str.contains("^en(-|$)")).then(0).otherwise(_OTHER_LANGUAGE)
        text = pl.col("tail").str.extract(r'^"((?:[^"\\]|\\.)*)"').str.replace_many(_ESCAPES)
        texts = frame.select(
            id="head",
            is_name=pl.col("relation").is_in(_NAMES),
            text=text.str.replace_all(r"\s+", " ").str.strip_chars(),
            rank=pl.col("relation").replace_strict(_RANKS, return_dtype=pl.Int32) + other,
        )
        self._texts.append(_best(texts.filter(pl.col("text") != "")))

    def _keep_types(self, frame: pl.DataFrame) -> None:
        typed = frame.filter((pl.col("relation") == TYPE) & ~pl.col("tail").str.contains('^(_:|")'))
        if typed.height:
            self._types.append(typed.select(id="head", type="tail").unique(maintain_order=True))


def _best(texts: pl.DataFrame) -> pl.DataFrame:
    """One name and one description a term: of those of least rank the first."""
    ordered = texts.sort("rank", maintain_order=True)
    return ordered.unique(["id", "is_name"], keep="first", maintain_order=True)


def _type_names(types: list[pl.DataFrame], names: pl.DataFrame) -> pl.DataFrame:
    """Types by term, joined; a type goes by its label, without one by the last part of its IRI."""
    if not types:
        return pl.DataFrame(schema={"id": pl.String, "type": pl.String})
    frame = pl.concat(types).unique(maintain_order=True)
    named = frame.join(names.rename({"id": "type"}), on="type", how="left", maintain_order="left")
    local = pl.col("type").str.extract(r"([^/#:]+)[/#]?$")
    named = named.select("id", type=pl.coalesce("name", local, "type"))
    joined = named.unique(maintain_order=True).group_by("id", maintain_order=True).agg("type")
    return joined.with_columns(pl.col("type").list.join(" | "))


def pyoxigraph() -> ModuleType:
    """The parser, or what to do to get it."""
    try:
        import pyoxigraph
    except ImportError as error:
        raise DataError("reading RDF needs the extra 'rdf': pip install 'dpmpn[rdf]'") from error
    return pyoxigraph


class StatementSource(Source):
    """Facts that are statements of RDF, which name and describe their terms, too."""

    _statements: Statements

    def labels(self) -> pl.DataFrame:
        """Names, descriptions and types among the statements."""
        return self._statements.labels()


class RdfSource(StatementSource, FileSource):
    """Facts of an RDF file; statements in named graphs count like all others."""

    def __init__(self, path: str | Path, options: ReadOptions, format: str) -> None:
        if options.time_column is not None:
            raise DataError(f"{path}: RDF has no time column '{options.time_column}'; read it without one")
        super().__init__(path, options)
        self._format = getattr(pyoxigraph().RdfFormat, FORMATS[format])
        self._by_line = format in ("nt", "nq")
        self._chunk: Chunk | None = None  # the lines of the last facts
        self._statements = Statements(self.account, options)

    @property
    def in_named_graphs(self) -> int:
        """How many of the statements read stand in a named graph."""
        return self._statements.in_named_graphs

    def _batches(self) -> Iterator[pl.DataFrame]:
        with Unpacked(self._path) as file:
            self._stream = file
            parts = self._line_parts(file) if self._by_line else self._document_parts(file)
            for self._chunk, quads in parts:
                yield self._statements.facts(quads)

    def numbers(self) -> Sequence[int]:
        """Lines of the last facts, where a statement is a line."""
        if self._chunk is None:
            return ()
        lines = enumerate(self._chunk.content.split(b"\n"), self._chunk.first)
        stated = [number for number, line in lines if line.strip() and not line.lstrip().startswith(b"#")]
        return [stated[at] for at in self._statements.kept]

    def _document_parts(self, file: Unpacked) -> Iterator[tuple[None, bytes]]:
        """The document as canonical N-Quads; after an error nothing can be told about the rest."""
        ox = pyoxigraph()
        refuse_binary(self._path, file.beginning)
        base = f"file:///{quote(file.name)}"  # for relative IRIs; not where the file happens to lie
        parser = ox.parse(self._bytes(file), self._format, base_iri=base)
        try:
            while quads := ox.serialize(islice(parser, _BATCH), format=ox.RdfFormat.N_QUADS):
                yield None, quads
        except SyntaxError as error:
            where = f"{self._path}, line {error.lineno:,}" if error.lineno else str(self._path)
            skips = self._options.on_error == "skip"
            why = ", as what follows an error in this format cannot be read" if skips else ""
            raise DataError(f"{where}: {_message(error)}; correct the file{why}") from error

    def _bytes(self, file: Unpacked) -> BinaryIO:
        if self._format == pyoxigraph().RdfFormat.RDF_XML:
            return io.BufferedReader(WatchedXml(file, str(self._path)), MEGABYTE)
        return io.BufferedReader(file, MEGABYTE)

    def _line_parts(self, file: Unpacked) -> Iterator[tuple[Chunk | None, bytes]]:
        """Lines as canonical N-Quads, those that are wrong left out if that is asked for."""
        ox = pyoxigraph()
        for chunk in text_chunks(file):
            try:
                yield chunk, ox.serialize(ox.parse(chunk.content, self._format), format=ox.RdfFormat.N_QUADS)
            except SyntaxError:
                yield None, b"".join(self._line_by_line(chunk))

    def _line_by_line(self, chunk: Chunk) -> Iterator[bytes]:
        """Lines on their own: pyoxigraph goes on after an error, but loses lines after an open quotation mark."""
        ox = pyoxigraph()
        bad_lines = self._bad()
        for number, line in enumerate(chunk.content.split(b"\n"), start=chunk.first):
            try:
                yield ox.serialize(ox.parse(line, self._format), format=ox.RdfFormat.N_QUADS)
            except SyntaxError as error:
                problem = encoding_problem(line) or Problem(
                    "not a statement", f"{_message(error)} in '{short(line)}'", "correct the line"
                )
                bad_lines.add(number, problem)
                self.account.read += 1


def _message(error: SyntaxError) -> str:
    """What pyoxigraph says, without the place it repeats."""
    text = str(error.msg)
    return one_line(text.split(": ", 1)[1] if text.startswith("Parser error ") and ": " in text else text)
