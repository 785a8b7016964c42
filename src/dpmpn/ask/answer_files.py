"""Asks thousands of questions from a file and writes the answers to a table; a killed run goes on where it stopped."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from dpmpn.ask.core import HELD_OUT, KNOWN, NOWHERE, Answers, fingerprint, paths_to
from dpmpn.ask.parts import Parts, check_out
from dpmpn.ask.question_files import read_queries
from dpmpn.ask.question_names import QueryNames, look_up_names
from dpmpn.errors import ConfigError
from dpmpn.files import sha256_of
from dpmpn.wording import DIGITS, six_digits

if TYPE_CHECKING:
    from dpmpn.ask.reasoner import Reasoner

PART = 1024  # questions whose answers are written together: what a kill may cost
_VERSION = 3  # of what a part holds
_NO_ANSWERS = "no answers"
_WHY = pl.List(pl.Struct({"facts": pl.List(pl.List(pl.String)), "share": pl.Float64}))

Tick = Callable[[int, int], None]
"""Told how many questions were asked, and how many there are."""


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


def answer_queries(
    reasoner: "Reasoner",
    queries: str | Path,
    out: str | Path,
    *,
    top: int = 10,
    new: bool = False,
    why: bool = False,
    skip_unknown: bool = False,
    progress: Tick | None = None,
) -> FileReport:
    """Answer each question of a file as `Reasoner.predict` does, into a table of one row an answer.

    A question without answers has a row whose `problem` says so.
    """
    queries, out, began = Path(queries), Path(out), time.monotonic()
    if top < 1:
        raise ConfigError(f"'top' must be at least 1, not {top}")
    check_out(out)
    names = look_up_names(queries, reasoner.graph, skip_unknown)
    options = {"top": top, "new": new, "why": why, "skip_unknown": skip_unknown}
    model = fingerprint(reasoner.engine, reasoner.dataset)
    request = {"version": _VERSION, "queries_sha256": sha256_of(queries), **model, **options}
    try:
        with Parts(out, request) as parts:
            resumed = min(parts.done() * PART, names.rows)
            _answer_rest(parts, Answerer(reasoner, top, new, why), queries, names, progress)
            counts = _Counts()
            parts.finish(counts.of(parts.read()))
    finally:
        reasoner.engine.close()
    return FileReport(
        questions=names.rows,
        answered=names.rows - counts.unknown - counts.without_answers,
        unknown=counts.unknown,
        without_answers=counts.without_answers,
        rows=counts.rows,
        resumed=resumed,
        seconds=time.monotonic() - began,
    )


class Answerer:
    """Gives the best answers to questions as rows of a table, as `Reasoner.predict` would."""

    def __init__(self, reasoner: "Reasoner", top: int, new: bool, why: bool) -> None:
        self._reasoner, self._graph = reasoner, reasoner.graph
        self._top, self._new, self._why = top, new, why
        entities = self._graph.entities
        self._names = pl.Series("answer", entities.names, dtype=pl.String)
        self._labels = entities.labels.name if entities.has_labels and entities.labels else None
        self._schema: dict[str, Any] = {
            "row": pl.Int64,
            "rank": pl.Int64,
            "answer": pl.String,
            **({} if self._labels is None else {"label": pl.String}),
            "probability": pl.Float64,
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
        known = self._reasoner.known
        if self._new:
            answers = answers[known.stated_of(answers) == NOWHERE]
        answers = answers.best(self._top)
        stated = known.stated_of(answers)
        names = self._names.gather(answers.entities)
        columns: dict[str, Any] = {
            "row": rows[answers.query],
            "rank": answers.ranks,
            "answer": names,
            "probability": _rounded(answers.probabilities),
            "known": stated == KNOWN,
            "held_out": [HELD_OUT[index] or None for index in stated.tolist()],
            "through_unseen": _rounded(answers.through_unseen),
        }
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
    return pl.Series(values.astype(np.float64)).round_sig_figs(DIGITS)


def _answer_rest(
    parts: Parts, answerer: Answerer, queries: Path, names: QueryNames, progress: Tick | None
) -> None:
    """Answer the questions whose part is not there yet."""
    for index, frame in enumerate(read_queries(queries, PART)):
        if index < parts.done():
            continue

        def tick(asked: int, before: int = index * PART) -> None:
            if progress is not None:
                progress(before + asked, names.rows)

        tick(0)
        parts.write(index, _answered(answerer, names.with_ids(frame), tick))
        tick(len(frame))


def _answered(answerer: Answerer, questions: pl.DataFrame, tick: Callable[[int], None]) -> pl.DataFrame:
    """The questions with their answers; one without has a row of its own."""
    asked = questions.filter(pl.col("problem").is_null())
    heads, relations = (asked[column].to_numpy().astype(np.int64) for column in ("head_id", "relation_id"))
    answers = answerer.answer(heads, relations, tick)
    answers = answers.with_columns(query=asked["query"].gather(answers["position"])).drop("position")
    joined = questions.join(answers, on="query", how="left", maintain_order="left_right")
    nothing = pl.col("rank").is_null() & pl.col("problem").is_null()
    problem = pl.when(nothing).then(pl.lit(_NO_ANSWERS)).otherwise("problem").alias("problem")
    return joined.drop("head_id", "relation_id", "problem").with_columns(joined.select(problem).to_series())


class _Counts:
    """What a table holds, counted while it is written."""

    rows = unknown = without_answers = 0

    def of(self, frames: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
        """The same frames."""
        for frame in frames:
            without = int((frame["problem"] == _NO_ANSWERS).sum())
            self.rows += len(frame)
            self.without_answers += without
            self.unknown += len(frame) - frame["problem"].null_count() - without
            yield frame
