"""Asks thousands of questions from a file and writes the answers to a table; a killed run goes on where it stopped.

All names are looked up before the first question is asked.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from dpmpn.ask.core import HELD_OUT, KNOWN, NOWHERE, Answers, paths_to
from dpmpn.ask.measure import digest_of
from dpmpn.ask.new_answers import MEASURED, Judged
from dpmpn.ask.question_files import read_queries
from dpmpn.ask.tables import check_table, write_table
from dpmpn.bulk.parts import Parts
from dpmpn.bulk.work import Kept, Tick, cut, make_parts
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.data.vocabulary import Vocabulary
from dpmpn.engine.fingerprint import fingerprint
from dpmpn.errors import ConfigError, DataError, UnknownName
from dpmpn.files import sha256_of
from dpmpn.wording import DIGITS, six_digits

if TYPE_CHECKING:
    from dpmpn.reasoner.reasoner import Reasoner

PART = 1024  # questions whose answers are written together: what a kill may cost
_VERSION = 5  # of what a part holds
_NO_ANSWERS = "no answers"
_SKIP = "leave such questions out with --skip-unknown"
_WHY = pl.List(pl.Struct({"facts": pl.List(pl.List(pl.String)), "share": pl.Float64}))


@dataclass(frozen=True)
class FileReport:
    """What became of a file of questions."""

    questions: int
    answered: int
    unknown: int  # left out: they name what the graph does not have, or several of it
    without_answers: int
    rows: int  # of the table
    resumed: int  # questions an earlier run had answered
    seconds: float


class AnswerWork:
    """The questions of a file, and their best answers in parts."""

    def __init__(
        self,
        reasoner: "Reasoner",
        queries: str | Path,
        *,
        top: int = 10,
        new: bool = False,
        why: bool = False,
        any_role: bool = False,
        skip_unknown: bool = False,
    ) -> None:
        """Look up all names; `new` and the others are what `Reasoner.predict` takes."""
        if top < 1:
            raise ConfigError(f"'top' must be at least 1, not {top}")
        self._reasoner, self._queries = reasoner, Path(queries)
        self._names = look_up_names(self._queries, reasoner.graph, skip_unknown)
        options = {"top": top, "new": new, "why": why, "any_role": any_role, "skip_unknown": skip_unknown}
        measured = reasoner.calibration and digest_of(reasoner.calibration.to_dict())
        model = {**fingerprint(reasoner.engine, reasoner.dataset), "calibration_sha256": measured}
        self.request = {
            "command": "predict",
            "version": _VERSION,
            "queries_sha256": sha256_of(self._queries),
            **model,
            **options,
        }
        self.sizes = cut(self._names.rows, PART)
        self._answerer = Answerer(reasoner, top, new, why, any_role)
        self._rest: Iterator[tuple[int, pl.DataFrame]] = iter(
            ()
        )  # parts of the file that are still to be read
        self._next = 0

    def part(self, index: int, tick: Callable[[int], None]) -> pl.DataFrame:
        """The answers to the questions of one part."""
        questions = self._read(index)
        return _answered(self._answerer, questions, self._names.ids(questions), tick)

    def finish(self, kept: Kept, resumed: int, began: float) -> FileReport:
        """Write the table of all parts."""
        counts = Counter[str]()
        frames = _counted(kept.read(range(len(self.sizes))), counts)
        kept.finish(lambda path: write_table(path, frames))
        return FileReport(
            questions=self._names.rows,
            answered=self._names.rows - counts["unknown"] - counts["without_answers"],
            unknown=counts["unknown"],
            without_answers=counts["without_answers"],
            rows=counts["rows"],
            resumed=resumed,
            seconds=time.monotonic() - began,
        )

    def close(self) -> None:
        """End the processes that helped."""
        self._reasoner.engine.close()

    def _read(self, index: int) -> pl.DataFrame:
        """The questions of a part; those of the next one are read on from there."""
        if index < self._next or self._next == 0:
            self._rest = enumerate(read_queries(self._queries, PART))
        questions = next(questions for at, questions in self._rest if at == index)
        self._next = index + 1
        return questions


def answer_queries(
    reasoner: "Reasoner",
    queries: str | Path,
    out: str | Path,
    *,
    progress: Tick | None = None,
    **options: Any,
) -> FileReport:
    """Answer each question of a file as `Reasoner.predict` does, into a table of one row an answer.

    A question without answers has a row whose `problem` says so. Options are those of `AnswerWork`.
    """
    out, began = Path(out), time.monotonic()
    check_table(out)
    try:
        work = AnswerWork(reasoner, queries, **options)
        with Parts(out, work.request) as parts:
            resumed = make_parts(work, parts, progress)
            return work.finish(parts, resumed, began)
    finally:
        reasoner.engine.close()


class Answerer:
    """Gives the best answers to questions as rows of a table, as `Reasoner.predict` would."""

    def __init__(
        self, reasoner: "Reasoner", top: int, new: bool, why: bool = False, any_role: bool = False
    ) -> None:
        self._reasoner, self._graph = reasoner, reasoner.graph
        self._top, self._new, self._why, self._any_role = top, new, why, any_role
        entities = self._graph.entities
        self._names = pl.Series("answer", entities.names, dtype=pl.String)
        self._labels = (
            entities.labels["name"] if entities.has_labels and entities.labels is not None else None
        )
        self._schema: dict[str, Any] = {
            "row": pl.Int64,
            "rank": pl.Int64,
            "answer": pl.String,
            **({} if self._labels is None else {"label": pl.String}),
            **dict.fromkeys(MEASURED, pl.Float64),
            "cases": pl.Int64,
            "score": pl.Float64,
            "known": pl.Boolean,
            "held_out": pl.String,
            **({} if reasoner.unseen is None else {"through_unseen": pl.Float64}),
            **({"why": _WHY} if why else {}),
        }

    def answer(
        self, heads: np.ndarray, relations: np.ndarray, tick: Callable[[int], None] | None = None
    ) -> pl.DataFrame:
        """Rows of answers with the position of their question, in the order of questions and ranks.

        `tick` is told how many questions were asked, each different one once.
        """
        keys = heads.astype(np.int64) * self._graph.n_relations + relations
        _, first, same = np.unique(keys, return_index=True, return_inverse=True)
        # Attention cannot leave a head without edges, and is no answer there.
        asked = first[self._graph.degree(heads[first]) > 0]
        found = [pl.DataFrame(schema=self._schema)]
        for start, answers in self._reasoner.asker.batches(heads[asked], relations[asked], self._why):
            rows = asked[start : start + len(answers.heads)]
            found.append(self._table(rows, answers))
            if tick is not None:
                tick(start + len(rows))
        questions = pl.DataFrame({"position": np.arange(len(heads)), "row": first[same]})
        return questions.join(pl.concat(found), on="row", maintain_order="left_right").drop("row")

    def _table(self, rows: np.ndarray, answers: Answers) -> pl.DataFrame:
        """The best answers to some different questions, which stand in these rows."""
        judged = Judged.of(answers, self._graph, self._reasoner.known, self._reasoner.calibration)
        shown = np.ones(len(answers), bool) if self._any_role else judged.fits
        if self._new:
            shown = shown & (judged.stated == NOWHERE)
        kept = np.flatnonzero(shown)
        kept = kept[answers[kept].ranks <= self._top]
        answers, stated = answers[kept], judged.stated[kept]
        names = self._names.gather(answers.entities)
        columns: dict[str, Any] = {
            "row": rows[answers.query],
            "rank": answers.ranks,
            "answer": names,
            "score": _rounded(answers.scores),
            **{name: _rounded(values[kept]) for name, values in judged.measured.items()},
            "known": stated == KNOWN,
            "held_out": [HELD_OUT[index] or None for index in stated.tolist()],
            "through_unseen": _rounded(answers.through_unseen),
        }
        columns["cases"] = columns["cases"].cast(pl.Int64)
        if self._labels is not None:
            columns["label"] = self._labels.gather(answers.entities).fill_null(names)
        if self._why:
            columns["why"] = self._paths(answers)
        return pl.DataFrame({name: columns[name] for name in self._schema}, self._schema)

    def _paths(self, answers: Answers) -> list[list[dict[str, Any]]]:
        """The facts behind each answer, as `dpmpn predict --why --json` gives them."""
        return [
            [
                {"facts": [list(fact) for fact in path.facts], "share": six_digits(path.share)}
                for path in paths
            ]
            for paths in paths_to(answers.trace, answers.query, answers.entities, self._graph)
        ]


def _rounded(values: np.ndarray) -> pl.Series:
    return pl.Series(values.astype(np.float64)).fill_nan(None).round_sig_figs(DIGITS)


def _answered(
    answerer: Answerer, questions: pl.DataFrame, ids: pl.DataFrame, tick: Callable[[int], None]
) -> pl.DataFrame:
    """The questions with their answers; one without has a row of its own."""
    asked = ids.filter(pl.col("problem").is_null())
    answers = answerer.answer(asked["head_id"].to_numpy(), asked["relation_id"].to_numpy(), tick)
    answers = answers.with_columns(query=asked["query"].gather(answers["position"])).drop("position")
    joined = questions.join(answers, on="query", how="left", maintain_order="left_right")
    joined = joined.join(ids.select("query", "problem"), on="query", how="left", maintain_order="left")
    nothing = pl.col("rank").is_null() & pl.col("problem").is_null()
    return joined.with_columns(problem=pl.when(nothing).then(pl.lit(_NO_ANSWERS)).otherwise("problem"))


def _counted(frames: Iterable[pl.DataFrame], counts: Counter[str]) -> Iterator[pl.DataFrame]:
    """The same frames; what they hold is added to the counts."""
    for frame in frames:
        without = int((frame["problem"] == _NO_ANSWERS).sum())
        unknown = len(frame) - frame["problem"].null_count() - without
        counts.update(rows=len(frame), unknown=unknown, without_answers=without)
        yield frame


@dataclass(frozen=True, eq=False)
class QueryNames:
    """The names in a file of questions with their ids, and how many rows it has."""

    heads: pl.DataFrame  # head, head_id, head_problem
    relations: pl.DataFrame  # relation, inverse, relation_id, relation_problem
    rows: int

    def ids(self, queries: pl.DataFrame) -> pl.DataFrame:
        """The head_id, relation_id and problem of each query; the problem is null where both are known."""
        found = queries.select("query", "head", "relation", "inverse")
        found = found.join(self.heads, on="head", how="left", maintain_order="left")
        found = found.join(self.relations, on=["relation", "inverse"], how="left", maintain_order="left")
        problem = pl.coalesce("head_problem", "relation_problem").alias("problem")
        return found.select("query", "head_id", "relation_id", problem)


def look_up_names(path: Path, graph: KnowledgeGraph, skip_unknown: bool) -> QueryNames:
    """Find every name of a file; one that does not exist is an error, unless such questions are to be skipped."""
    heads, relations, rows = pl.DataFrame(), pl.DataFrame(), 0
    for queries in read_queries(path):
        heads = _first_rows([heads, queries], "head")
        relations = _first_rows([relations, queries], "relation", "inverse")
        rows += len(queries)
    forward_ids = _ids(graph.relation_names, relations["relation"])
    relation_ids = [
        int(graph.inverse[id]) if inverse and id is not None else id  # -1 where there is no inverse to ask
        for id, inverse in zip(forward_ids, relations["inverse"], strict=True)
    ]
    where = None if skip_unknown else path
    return QueryNames(
        _resolved(heads, _ids(graph.entities, heads["head"]), graph.entities, "entity", where),
        _resolved(relations, relation_ids, graph.relation_names, "relation", where, graph.n_forward),
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
    names: pl.DataFrame,  # the name is in the first column, the first row that has it in the last
    ids: list[int | None],
    vocabulary: Vocabulary,
    kind: str,
    refused_in: Path | None,
    suggested: int | None = None,
) -> pl.DataFrame:
    """The names with their ids and what is wrong with them; the first wrong one is refused, if any is to be."""
    column = names.columns[0]
    problems = [_problem(vocabulary, kind, *row) for row in zip(names[column], ids, strict=True)]
    wrong = [row for row, problem in zip(names.iter_rows(), problems, strict=True) if problem]
    if wrong and refused_in is not None:
        name, *_, row = min(wrong, key=lambda row: int(row[-1]))
        raise _refusal(vocabulary, kind, name, f"{refused_in}, row {row:,}", suggested)
    return names.drop("query").with_columns(
        pl.Series(f"{column}_id", ids, pl.Int64), pl.Series(f"{column}_problem", problems, pl.String)
    )


def _problem(vocabulary: Vocabulary, kind: str, name: str, id: int | None) -> str | None:
    """Why a question with this name cannot be asked, None where it can."""
    if id is None:
        several = vocabulary.is_ambiguous(name)
        return f"'{name}' is the label of several" if several else f"unknown {kind} '{name}'"
    return f"relation '{name}' has no inverse" if id < 0 else None


def _refusal(vocabulary: Vocabulary, kind: str, name: str, where: str, suggested: int | None) -> DataError:
    """The error that says why a name cannot be asked, with those that are like it."""
    try:
        vocabulary.id(name, kind, suggested)
    except UnknownName as error:
        return UnknownName(kind, name, error.near, f"{where}; correct it, or {_SKIP}")
    except DataError as error:
        return DataError(f"{where}: {error}, or {_SKIP}")
    return DataError(
        f"{where}: relation '{name}' has no inverse in this graph, so its head cannot be asked; correct it, or {_SKIP}"
    )
