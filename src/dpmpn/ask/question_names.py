"""Names in a file of questions as ids of a graph: all are looked up before the first question is asked."""

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from dpmpn.ask.question_files import read_queries
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.data.vocabulary import Vocabulary
from dpmpn.errors import DataError, UnknownName

_SKIP = "leave such questions out with --skip-unknown"


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
    heads, relations, rows = pl.DataFrame(), pl.DataFrame(), 0
    for queries in read_queries(path):
        heads = _first_rows([heads, queries], "head")
        relations = _first_rows([relations, queries], "relation", "inverse")
        rows += len(queries)
    head_ids = _ids(graph.entities, heads["head"])
    relation_ids = [
        int(graph.inverse[id]) if inverse and id is not None else id  # -1 where there is no inverse to ask
        for id, inverse in zip(
            _ids(graph.relation_names, relations["relation"]), relations["inverse"], strict=True
        )
    ]
    if not skip_unknown:
        _refuse_first(path, graph.entities, "entity", heads, head_ids)
        _refuse_first(path, graph.relation_names, "relation", relations, relation_ids, graph.n_forward)
    return QueryNames(
        _resolved(heads, graph.entities, "entity", "head", head_ids),
        _resolved(relations, graph.relation_names, "relation", "relation", relation_ids),
        rows,
    )


def _first_rows(frames: list[pl.DataFrame], *columns: str) -> pl.DataFrame:
    """The different names, each with the first row that has it."""
    chosen = [frame.select(*columns, "query") for frame in frames if len(frame)]
    return pl.concat(chosen).unique(columns, keep="first", maintain_order=True)


def _ids(vocabulary: Vocabulary, texts: pl.Series) -> list[int | None]:
    """Id of each name or label; None where there is none, or several."""
    ids = zip(vocabulary.ids(texts).tolist(), texts.to_list(), strict=True)
    found = [id if id >= 0 else vocabulary.find(text) for id, text in ids]
    return [id if id >= 0 else None for id in found]


def _resolved(
    names: pl.DataFrame, vocabulary: Vocabulary, kind: str, column: str, ids: list[int | None]
) -> pl.DataFrame:
    problems = [_problem(vocabulary, kind, *row) for row in zip(names[column], ids, strict=True)]
    return names.drop("query").with_columns(
        pl.Series(f"{column}_id", ids, pl.Int64), pl.Series(f"{column}_problem", problems, pl.String)
    )


def _problem(vocabulary: Vocabulary, kind: str, name: str, id: int | None) -> str | None:
    """Why a question with this name cannot be asked, None where it can."""
    if id is None:
        several = vocabulary.is_ambiguous(name)
        return f"'{name}' is the label of several" if several else f"unknown {kind} '{name}'"
    return f"relation '{name}' has no inverse" if id < 0 else None


def _refuse_first(
    path: Path,
    vocabulary: Vocabulary,
    kind: str,
    names: pl.DataFrame,  # the name is in the first column
    ids: list[int | None],
    suggested: int | None = None,
) -> None:
    """Refuse the first name that cannot be asked, with those that are like it."""
    wrong = [row for row, id in zip(names.iter_rows(), ids, strict=True) if id is None or id < 0]
    if not wrong:
        return
    name, *_, row = min(wrong, key=lambda row: int(row[-1]))
    where = f"{path}, row {row:,}"
    try:
        vocabulary.id(name, kind, suggested)
    except UnknownName as error:
        raise UnknownName(kind, name, error.near, f"{where}; correct it, or {_SKIP}") from error
    except DataError as error:
        raise DataError(f"{where}: {error}, or {_SKIP}") from error
    raise DataError(
        f"{where}: relation '{name}' has no inverse in this graph, so its head cannot be asked; correct it, or {_SKIP}"
    )
