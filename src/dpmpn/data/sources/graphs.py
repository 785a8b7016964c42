"""Graphs of networkx and rdflib as facts, with the labels their nodes carry."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import polars as pl

from dpmpn.data.sources.base import COLUMNS, LABELS, Account, ReadOptions
from dpmpn.data.sources.columns import output_names
from dpmpn.data.sources.statements import Statements
from dpmpn.data.sources.tables import facts_of_columns, refuse_rows, texts_of_values
from dpmpn.errors import DataError

_BATCH = 100_000
_RELATION = ("relation", "predicate", "label", "type")  # edge attributes that can say what an edge means
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n", "\r": r"\r", "\t": r"\t"})
_STRING = "http://www.w3.org/2001/XMLSchema#string"


class NetworkxSource:
    """Edges of a networkx graph; each edge of an undirected one is a fact once, as it was added.

    The relation is the edge's key where that is text, else its attribute relation, predicate, label or type.
    """

    def __init__(self, graph: Any, options: ReadOptions) -> None:
        self.account = Account(f"networkx {type(graph).__name__}")
        self._graph, self._options = graph, options
        self._edges = 0
        self._check_names()

    def batches(self) -> Iterator[pl.DataFrame]:
        """Facts, 100,000 edges at a time."""
        keys = {"keys": True} if self._graph.is_multigraph() else {}
        edges = iter(self._graph.edges(data=True, **keys))
        while rows := list(islice(edges, _BATCH)):
            first = self._edges + 1
            self._edges += len(rows)
            values = list(zip(*self._rows(rows), strict=True))
            if not values:
                continue
            names = output_names(self._options)
            texts = [
                texts_of_values(column, name, self.account, first)
                for column, name in zip(values, names, strict=True)
            ]
            facts = facts_of_columns(texts, self.account, self._options, first)
            if facts.height:
                yield facts

    def position(self) -> tuple[int, int | None]:
        """Edges read, and how many there are."""
        return self._edges, self._graph.number_of_edges()

    def labels(self) -> pl.DataFrame:
        """Attributes name (or label), description and type of the nodes."""
        rows = []
        for node, attributes in self._graph.nodes(data=True):
            name = attributes.get("name", attributes.get("label"))
            row = [_shown(value) for value in (name, attributes.get("description"), attributes.get("type"))]
            if any(row):
                rows.append([str(node), *row])
        return pl.DataFrame(rows, schema=LABELS, orient="row")

    def _rows(self, edges: list[Any]) -> Iterator[tuple[Any, ...]]:
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


class RdflibSource:
    """Statements of an rdflib graph or dataset, read like those of an RDF file."""

    def __init__(self, graph: Any, options: ReadOptions) -> None:
        self.account = Account(f"rdflib {type(graph).__name__}")
        if options.time_column is not None:
            raise DataError(
                f"{self.account.source}: has no time column '{options.time_column}'; leave it out"
            )
        self._graph = graph
        self._statements = Statements(self.account, options)

    def batches(self) -> Iterator[pl.DataFrame]:
        """Facts, 100,000 statements at a time."""
        statements = iter(self._all())
        while rows := [[_token(term) for term in row[:3]] for row in islice(statements, _BATCH)]:
            frame = pl.DataFrame(rows, schema=dict.fromkeys(COLUMNS, pl.String), orient="row")
            facts = self._statements.facts_of_terms(frame)
            if facts.height:
                yield facts

    def position(self) -> tuple[int, int | None]:
        """Statements read, and how many there are."""
        return self.account.read, len(self._graph)

    def labels(self) -> pl.DataFrame:
        """Names, descriptions and types among the statements."""
        return self._statements.labels()

    def _all(self) -> Iterable[Any]:
        if hasattr(self._graph, "quads"):  # a dataset: the statements of all its graphs
            return self._graph.quads((None, None, None, None))
        return self._graph.triples((None, None, None))


def _shown(value: Any) -> str | None:
    if isinstance(value, (list, tuple, set, frozenset)):
        return " | ".join(str(part) for part in value) or None
    return None if value is None else str(value) or None


def _token(term: Any) -> str:
    """An rdflib term as N-Quads writes it."""
    kind = type(term).__name__
    if kind == "Literal":
        text = f'"{str(term).translate(_ESCAPES)}"'
        if term.language:
            return f"{text}@{term.language.lower()}"
        is_string = term.datatype is None or str(term.datatype) == _STRING
        return text if is_string else f"{text}^^<{term.datatype}>"
    return f"_:{term}" if kind == "BNode" else f"<{term}>"
