"""Asks thousands of questions from a file and writes the answers to a table; a killed run goes on where it stopped."""

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from dpmpn.ask.bulk_answers import Answerer
from dpmpn.ask.parts import Parts, check_place
from dpmpn.ask.question_files import read_queries
from dpmpn.ask.question_names import QueryNames, look_up_names
from dpmpn.data.dataset import SPLITS
from dpmpn.errors import ConfigError
from dpmpn.files import sha256_of

if TYPE_CHECKING:
    from dpmpn.ask.reasoner import Reasoner

PART = 1024  # questions whose answers are written together: what a kill may cost
_VERSION = 2  # of what a part holds
_NO_ANSWERS = "no answers"

Tick = Callable[[int, int, float], None]
"""Told how many questions were asked, how many there are, and how many were asked in a second."""


@dataclass(frozen=True)
class BulkReport:
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
) -> BulkReport:
    """Answer each question of a file as `Reasoner.predict` does, into a table of one row an answer.

    A question without answers has a row whose `problem` says so.
    """
    queries, out, began = Path(queries), Path(out), time.monotonic()
    if top < 1:
        raise ConfigError(f"'top' must be at least 1, not {top}")
    check_place(out)
    names = look_up_names(queries, reasoner.graph, skip_unknown)
    request = {
        "version": _VERSION,
        "queries_sha256": sha256_of(queries),
        "model_sha256": _fingerprint(reasoner),
        "horizon": asdict(reasoner.engine.config.asking_horizon()),
        "seed": reasoner.engine.config.run.seed,
        **{"top": top, "new": new, "why": why, "skip_unknown": skip_unknown},
    }
    try:
        with Parts(out, request) as parts:
            resumed = min(parts.done() * PART, names.rows)
            _answer_rest(parts, Answerer(reasoner, top, new, why), queries, names, progress)
            counts = _Counts()
            parts.finish(counts.of(parts.read()))
    finally:
        reasoner.engine.close()
    return BulkReport(
        questions=names.rows,
        answered=names.rows - counts.unknown - counts.without_answers,
        unknown=counts.unknown,
        without_answers=counts.without_answers,
        rows=counts.rows,
        resumed=resumed,
        seconds=time.monotonic() - began,
    )


def _answer_rest(
    parts: Parts, answerer: Answerer, queries: Path, names: QueryNames, progress: Tick | None
) -> None:
    """Answer the questions whose part is not there yet."""
    began, first = time.monotonic(), parts.done() * PART
    for index, frame in enumerate(read_queries(queries, PART)):
        if index < parts.done():
            continue
        start = index * PART

        def tick(asked: int, start: int = start) -> None:
            if progress is not None:
                position = start + asked
                progress(position, names.rows, (position - first) / (time.monotonic() - began))

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


def _fingerprint(reasoner: "Reasoner") -> str:
    """A hash of all that answers depend on: weights, graph, names, labels and the facts of all splits."""
    digest = hashlib.sha256()
    graph = reasoner.graph
    arrays: list[Any] = [tensor.cpu().numpy() for tensor in reasoner.engine.network.state_dict().values()]
    arrays += [graph.offsets, graph.relations, graph.tails, graph.inverse]
    for split in SPLITS:
        facts = reasoner.dataset.split(split)
        arrays += [np.array(len(facts)), facts]
    for names in (graph.entities, graph.relation_names):
        arrays += [names.packed.text, names.packed.offsets]
    if graph.entities.labels is not None:
        labels = "\n".join(label or "" for label in graph.entities.labels.name)
        arrays.append(np.frombuffer(labels.encode(), np.uint8))
    for array in arrays:
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
