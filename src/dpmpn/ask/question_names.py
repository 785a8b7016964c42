"""Names in a file of questions as ids of a graph: all are looked up before the first question is asked."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from dpmpn.ask.question_files import read_queries
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.data.vocabulary import Vocabulary
from dpmpn.errors import DataError, UnknownName

_SKIP = "correct it, or leave such questions out with --skip-unknown"


@dataclass(frozen=True, eq=False)
class QueryNames:
    """The names in a file of questions with their ids, null where there is a problem, and how many rows it has."""

    heads: pl.DataFrame  # head, head_id, head_problem
    relations: pl.DataFrame  # relation, inverse, relation_id, relation_problem
    rows: int

    def with_ids(self, queries: pl.DataFrame) -> pl.DataFrame:
        """The questions with the columns head_id, relation_id and problem, which is null where both are known."""
        found = queries.join(self.heads, on="head", how="left", maintain_order="left")
        found = found.join(self.relations, on=["relation", "inverse"], how="left", maintain_order="left")
        problems = ("head_problem", "relation_problem")
        return found.with_columns(problem=pl.coalesce(*problems)).drop(problems)


def look_up_names(path: Path, graph: KnowledgeGraph, skip_unknown: bool) -> QueryNames:
    """Find every name of a file; one that does not exist is an error, unless such questions are to be skipped."""
    heads: dict[str, int] = {}  # name: the first row that has it
    relations: dict[tuple[str, bool], int] = {}
    rows = 0
    for queries in read_queries(path):
        for head, row in _first_rows(queries, "head"):
            heads.setdefault(head, row)
        for relation, inverse, row in _first_rows(queries, "relation", "inverse"):
            relations.setdefault((relation, inverse), row)
        rows += len(queries)
    head_ids = _ids(graph.entities, list(heads))
    names: dict[str, int] = {}
    for (relation, _), row in relations.items():
        names[relation] = min(row, names.get(relation, row))
    relation_ids = dict(zip(names, _ids(graph.relation_names, list(names)), strict=True))
    asked = [_asked_id(graph, relation_ids[relation], inverse) for relation, inverse in relations]
    if not skip_unknown:
        _refuse_unknown(path, graph.entities, "entity", head_ids, heads)
        found = list(relation_ids.values())
        _refuse_unknown(path, graph.relation_names, "relation", found, names, graph.n_forward)
        _refuse_one_way(path, asked, relations)
    return QueryNames(
        pl.DataFrame(
            [
                (head, id, _problem(graph.entities, "entity", head, id))
                for head, id in zip(heads, head_ids, strict=True)
            ],
            {"head": pl.String, "head_id": pl.Int64, "head_problem": pl.String},
            orient="row",
        ),
        pl.DataFrame(
            [
                (*key, id, _problem(graph.relation_names, "relation", key[0], id))
                for key, id in zip(relations, asked, strict=True)
            ],
            {
                **{"relation": pl.String, "inverse": pl.Boolean},
                **{"relation_id": pl.Int64, "relation_problem": pl.String},
            },
            orient="row",
        ),
        rows,
    )


def _problem(vocabulary: Vocabulary, kind: str, name: str, id: int | None) -> str | None:
    """Why a question with this name cannot be asked, None where it can."""
    if id is None:
        return (
            f"'{name}' is the label of several"
            if vocabulary.is_ambiguous(name)
            else f"unknown {kind} '{name}'"
        )
    return f"relation '{name}' has no inverse" if id < 0 else None


def _asked_id(graph: KnowledgeGraph, relation: int | None, inverse: bool) -> int | None:
    """The relation to ask; -1 where it has no inverse to ask for."""
    return int(graph.inverse[relation]) if inverse and relation is not None else relation


def _first_rows(queries: pl.DataFrame, *columns: str) -> Iterator[tuple[Any, ...]]:
    return queries.select(*columns, "query").unique(columns, keep="first", maintain_order=True).iter_rows()


def _ids(vocabulary: Vocabulary, texts: list[str]) -> list[int | None]:
    """Id of each name or label."""
    ids = vocabulary.ids(pl.Series(texts, dtype=pl.String)).tolist()
    ids = [id if id >= 0 else vocabulary.find(text) for id, text in zip(ids, texts, strict=True)]
    return [id if id >= 0 else None for id in ids]


def _refuse_unknown(
    path: Path,
    vocabulary: Vocabulary,
    kind: str,
    ids: list[int | None],
    first_rows: Mapping[str, int],
    suggested: int | None = None,
) -> None:
    names = [name for name, id in zip(first_rows, ids, strict=True) if id is None]
    if not names:
        return
    name = min(names, key=first_rows.__getitem__)
    where = f"{path}, row {first_rows[name]:,}"
    try:
        vocabulary.id(name, kind, suggested)
    except UnknownName as error:
        raise UnknownName(kind, name, error.near, f"{where}; {_SKIP}") from error
    except DataError as error:
        raise DataError(f"{where}: {error}, or leave such questions out with --skip-unknown") from error


def _refuse_one_way(path: Path, asked: list[int | None], first_rows: Mapping[tuple[str, bool], int]) -> None:
    for (relation, _), id in zip(first_rows, asked, strict=True):
        if id is not None and id < 0:
            row = first_rows[relation, True]
            raise DataError(
                f"{path}, row {row:,}: relation '{relation}' has no inverse in this graph, so its head cannot "
                f"be asked; {_SKIP}"
            )
