"""Facts that are in memory already: frames, graphs, triples factories of other packages, or plain tuples.

An object is recognised by the name of its module: none of these packages is imported for that.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from dpmpn.data.sources.base import COLUMNS, LABELS, Account, ReadOptions, Source
from dpmpn.data.sources.columns import (
    RowSource,
    Texts,
    find_columns,
    output_names,
    refuse_rows,
    texts_of_column,
    texts_of_values,
    whole_rows,
)
from dpmpn.data.sources.rdf import Statements, StatementSource
from dpmpn.data.sources.shape import SAMPLED, Rows, find_shape, rows_of
from dpmpn.errors import DataError, shown

_BATCH = 100_000  # rows
_RELATION = ("relation", "predicate", "label", "type")  # edge attributes that can say what an edge means
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n", "\r": r"\r", "\t": r"\t"})
_STRING = "http://www.w3.org/2001/XMLSchema#string"
_NUMBERS = "iuf"  # letters of NumPy types that are integers and floats


def frame_source(obj: Any, options: ReadOptions | None = None) -> Source:
    """A source of the facts an object holds.

    Takes frames of pandas, polars and pyarrow, graphs of networkx and rdflib, PyKEEN triples factories, and anything
    that gives rows of three values.
    """
    options = options or ReadOptions()
    names = {f"{base.__module__.split('.')[0]}.{base.__name__}" for base in type(obj).__mro__}
    for name, make in _SOURCES.items():
        if name in names:
            return make(obj, options)
    if isinstance(obj, (str, bytes, Path, dict)) or not isinstance(obj, Iterable) or _is_scalar(obj):
        raise DataError(
            f"facts cannot be taken from an object of type {type(obj).__name__}; give a frame, a graph or rows of "
            "head, relation and tail"
        )
    return TupleSource(obj, options)


def _is_scalar(obj: Any) -> bool:
    """Whether it is an array of one value and no length, which says that it can be iterated over."""
    return isinstance(obj, np.ndarray) and obj.ndim == 0


class FrameSource(RowSource):
    """Rows of a frame."""

    def __init__(
        self,
        name: str,
        columns: list[str],
        height: int,
        column: Callable[[int, int, int], Texts],  # of a position: the values from one row to another
        options: ReadOptions,
    ) -> None:
        super().__init__(name, options)
        self._height, self._column = height, column

        def sample() -> Rows:
            end = min(height, SAMPLED)
            return rows_of([column(at, 0, end).column for at in range(len(columns))])

        self._shape = find_shape(name, columns, True, options, sample)
        self.account.notes += self._shape.notes

    def _batches(self) -> Iterator[pl.DataFrame]:
        shape = self._shape
        for start in range(0, self._height, _BATCH):
            self._rows = end = min(start + _BATCH, self._height)
            columns = [self._column(at, start, end) for at in shape.all_positions]
            optional = shape.all_names[len(shape.names) :]
            numbers: Sequence[int] = range(start + 1, end + 1)
            rows, numbers = whole_rows(columns, self.account, self._options, numbers, shape.names, optional)
            facts, self._numbers = shape.facts(rows, numbers)
            yield facts

    def position(self) -> tuple[int, int | None]:
        """Rows read, and how many there are."""
        return self._rows, self._height


class TupleSource(RowSource):
    """Rows of values, one after the other."""

    def __init__(self, rows: Iterable[Any], options: ReadOptions, name: str = "rows") -> None:
        super().__init__(name, options)
        self._given = rows

    def _batches(self) -> Iterator[pl.DataFrame]:
        rows, width = iter(self._given), 0
        positions: tuple[int, ...] = ()
        while part := list(islice(rows, _BATCH)):
            if not positions:
                width = self._width(part[0], 1)
                seen = [value if isinstance(value, str) else shown(value) for value in part[0]]
                positions = find_columns(f"{self.account.source}, row 1", seen, False, self._options)
            self._check_widths(part, width, self._rows + 1)
            yield self._facts(part, positions)

    def position(self) -> tuple[int, int | None]:
        """Rows read, and how many there are where that is known."""
        total = len(self._given) if isinstance(self._given, Sized) else None
        return self._rows, total

    def _width(self, row: Any, number: int) -> int:
        if isinstance(row, (str, bytes, dict)) or not hasattr(row, "__len__") or _is_scalar(row):
            kind = type(row).__name__
            raise DataError(
                f"{self.account.source}, row {number:,}: is of type {kind}; give rows of head, relation and tail"
            )
        return len(row)

    def _check_widths(self, rows: list[Any], width: int, first: int) -> None:
        for number, row in enumerate(rows, start=first):
            if (found := self._width(row, number)) != width:
                raise DataError(
                    f"{self.account.source}, row {number:,}: has {found} values where row 1 has {width}; "
                    "give all rows the same"
                )


def _from_polars(frame: Any, options: ReadOptions) -> Source:
    return FrameSource(
        "polars frame",
        frame.columns,
        frame.height,
        lambda at, start, end: texts_of_column(frame.to_series(at)[start:end], "polars frame"),
        options,
    )


def _from_lazy(frame: Any, options: ReadOptions) -> Source:
    try:
        return _from_polars(frame.collect(), options)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(
            f"polars frame: cannot be computed ({str(error).splitlines()[0]}); check it"
        ) from error


def _from_arrow(table: Any, options: ReadOptions) -> Source:
    source = _from_polars(pl.from_arrow(table), options)
    source.account.source = "pyarrow table"
    return source


def _from_pandas(frame: Any, options: ReadOptions) -> Source:
    names = [str(name) for name in frame.columns]
    account_name = "pandas frame"

    def column(at: int, start: int, end: int) -> Texts:
        values = frame.iloc[start:end, at]
        if getattr(values.dtype, "kind", "O") in _NUMBERS and type(values.dtype).__module__.startswith(
            "numpy"
        ):
            return texts_of_column(pl.Series(names[at], values.to_numpy()), account_name)
        return texts_of_values(values.tolist())

    return FrameSource(account_name, names, len(frame), column, options)


def _from_pykeen(factory: Any, options: ReadOptions) -> Source:
    if not hasattr(factory, "label_triples"):
        raise DataError(
            f"{type(factory).__name__}: knows no names of entities and relations; give a TriplesFactory with labels"
        )
    triples = factory.mapped_triples

    def rows() -> Iterator[Any]:
        for start in range(0, len(triples), _BATCH):
            yield from factory.label_triples(triples[start : start + _BATCH]).tolist()

    return TupleSource(rows(), options, f"PyKEEN {type(factory).__name__}")


class NetworkxSource(RowSource):
    """Edges of a networkx graph; each edge of an undirected one is a fact once, as it was added.

    The relation is the edge's key where that is text, else its attribute relation, predicate, label or type.
    """

    def __init__(self, graph: Any, options: ReadOptions) -> None:
        super().__init__(f"networkx {type(graph).__name__}", options)
        self._graph = graph
        self._check_names()

    def _batches(self) -> Iterator[pl.DataFrame]:
        keys = {"keys": True} if self._graph.is_multigraph() else {}
        edges = iter(self._graph.edges(data=True, **keys))
        positions = range(len(output_names(self._options)))
        while part := list(islice(edges, _BATCH)):
            before = self._rows
            rows = list(self._edge_rows(part))
            if rows:
                yield self._facts(rows, positions)
            self._rows = before + len(part)

    def position(self) -> tuple[int, int | None]:
        """Edges read, and how many there are."""
        return self._rows, self._graph.number_of_edges()

    def labels(self) -> pl.DataFrame:
        """Attributes name (or label), description and type of the nodes."""
        rows = []
        for node, attributes in self._graph.nodes(data=True):
            name = attributes.get("name", attributes.get("label"))
            row = [_shown(value) for value in (name, attributes.get("description"), attributes.get("type"))]
            if any(row):
                rows.append([str(node), *row])
        return pl.DataFrame(rows, schema=LABELS, orient="row")

    def _edge_rows(self, edges: list[Any]) -> Iterator[tuple[Any, ...]]:
        for edge in edges:
            head, tail, attributes = edge[0], edge[1], edge[-1]
            relation = edge[2] if len(edge) == 4 and isinstance(edge[2], str) else None
            for attribute in _RELATION:
                relation = relation or attributes.get(attribute)
            if relation is None or relation == "":
                example = f"edge {head!r} -> {tail!r}: has no relation, neither as key nor as attribute"
                refuse_rows("empty relation", 1, example, self.account, self._options)
                self.account.read += 1
            elif self._options.time_column is None:
                yield head, relation, tail
            else:
                yield head, relation, tail, attributes.get(self._options.time_column)

    def _check_names(self) -> None:
        """Refuse nodes that would be one by name, such as 1 and '1'."""
        seen: dict[str, Any] = {}
        for node in self._graph.nodes:
            if (other := seen.setdefault(str(node), node)) is not node:
                raise DataError(
                    f"{self.account.source}: the nodes {other!r} and {node!r} have the same name; rename one"
                )


class RdflibSource(StatementSource):
    """Statements of an rdflib graph or dataset, read like those of an RDF file."""

    def __init__(self, graph: Any, options: ReadOptions) -> None:
        self.account = Account(f"rdflib {type(graph).__name__}")
        if options.time_column is not None:
            raise DataError(
                f"{self.account.source}: has no time column '{options.time_column}'; leave it out"
            )
        self._graph = graph
        self._statements = Statements(self.account, options)

    def _batches(self) -> Iterator[pl.DataFrame]:
        graph = self._graph  # or a dataset: the statements of all its graphs
        statements = iter(graph.quads((None,) * 4) if hasattr(graph, "quads") else graph.triples((None,) * 3))
        while rows := [[_rdflib_text(term) for term in row[:3]] for row in islice(statements, _BATCH)]:
            frame = pl.DataFrame(rows, schema=dict.fromkeys(COLUMNS, pl.String), orient="row")
            yield self._statements.facts_of_terms(frame)

    def position(self) -> tuple[int, int | None]:
        """Statements read, and how many there are."""
        return self.account.read, len(self._graph)


def _shown(value: Any) -> str | None:
    if isinstance(value, (list, tuple, set, frozenset)):
        return " | ".join(str(part) for part in value) or None
    return None if value is None else str(value) or None


def _rdflib_text(term: Any) -> str:
    """An rdflib term as N-Quads writes it."""
    kind = type(term).__name__
    if kind == "Literal":
        text = f'"{str(term).translate(_ESCAPES)}"'
        if term.language:
            return f"{text}@{term.language.lower()}"
        is_string = term.datatype is None or str(term.datatype) == _STRING
        return text if is_string else f"{text}^^<{term.datatype}>"
    return f"_:{term}" if kind == "BNode" else f"<{term}>"


_SOURCES: dict[str, Callable[[Any, ReadOptions], Source]] = {
    "polars.DataFrame": _from_polars,
    "polars.LazyFrame": _from_lazy,
    "pandas.DataFrame": _from_pandas,
    "pyarrow.Table": _from_arrow,
    "pyarrow.RecordBatch": _from_arrow,
    "networkx.Graph": NetworkxSource,
    "rdflib.Graph": RdflibSource,
    "pykeen.CoreTriplesFactory": _from_pykeen,
}
