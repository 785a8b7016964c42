"""Asks all questions part by part, keeps the best missing facts, and says what speaks for each."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from dpmpn.ask.core import HELD_OUT, Asker, fingerprint, paths_to
from dpmpn.ask.measure import digest_of
from dpmpn.ask.new_answers import MEASURED, NewAnswers, measured_columns
from dpmpn.ask.questions import FIRST_HEAD_GROUP, Asking, QuestionList, Questions, check_questions
from dpmpn.ask.tables import Parts, table_format
from dpmpn.data.dataset import SPLITS
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.errors import ConfigError, DataError
from dpmpn.wording import probability_shown

if TYPE_CHECKING:
    from dpmpn.reasoner.reasoner import Reasoner

PART = 4096  # questions; a killed run loses at most one part
_VERSION = 4  # of what a part holds
_EXPLAINED = 256  # facts of a part when reasons are looked for
FACT = ["head", "relation", "tail"]
FACTS = {
    **dict.fromkeys(FACT, pl.Int32),  # in the direction of the file
    **dict.fromkeys(MEASURED, pl.Float64),  # null where nothing was measured
    "cases": pl.Int64,  # the same
    "score": pl.Float64,
    "group": pl.Int8,  # of the question that found it
}
_CHAINS_APART = " | "
_THROUGH = ("<head, relation, ?>", "<?, relation, tail>")  # the question that found a fact

Tick = Callable[[str, int, int], None]
"""Told what is being done ("asked" or "explained"), how much of it, and of how much."""


def complete(
    reasoner: "Reasoner",
    relations: Sequence[str] | None = None,
    head_type: str | None = None,
    top: int = 100,
    min_probability: float | None = None,
    out: str | Path | None = None,
    *,
    asking: Asking = Asking(),  # noqa: B008 (frozen)
    held_out: bool = False,
    max_questions: int | None = None,
    progress: Tick | None = None,
    say: Callable[[str], None] | None = None,
) -> pl.DataFrame:
    """The most probable facts that no split and no edge states, the best first.

    With `out` the table is written there, too; a run that was killed goes on when it is called again. With
    `held_out` validation and test facts count as missing and are marked. Probabilities are those of the reasoner, if it
    has any.
    """
    ids = checked_request(reasoner, relations, head_type, top, min_probability, asking, max_questions)
    tick, say = progress or (lambda *_: None), say or (lambda _: None)
    calibration = reasoner.calibration
    if calibration is None and min_probability is not None:
        raise DataError(
            "--min-probability needs probabilities, and none were measured: too few facts of this graph are held out; "
            "leave it out"
        )
    request = {
        "command": "complete",
        "version": _VERSION,
        "relations": ids,
        **{"head_type": head_type, "top": top, "min_probability": min_probability},
        **{"held_out": held_out, "max_questions": max_questions, "asking": asdict(asking)},
        **fingerprint(reasoner.engine, reasoner.dataset),
        "calibration_sha256": digest_of(calibration and calibration.to_dict()),
    }
    # The table's name and place are tried before questions are counted.
    with nullcontext() if out is None else Parts(out, request) as parts:
        known = ("train",) if held_out else SPLITS
        questions = Questions(reasoner.dataset, asking, ids, head_type, max_questions, known)
        if questions.left_out:
            say(
                f"{questions.left_out:,} questions are left out for --max-questions {max_questions:,}: "
                "those whose entities are least like the ones that have an answer"
            )
        ask = partial(_facts_of_part, reasoner, questions, known, tick)
        n_parts = -(-questions.total // PART)
        try:
            best = probable = _best(ask, n_parts, top, parts)
            if min_probability is not None:
                probable = best.filter(pl.col("probability") >= min_probability)
            if probable.is_empty():
                say(_why_none(best, min_probability))
            describe = partial(described, reasoner, held_out)
            frames = list(_explained(probable, describe, n_parts, parts, tick))
        finally:
            reasoner.engine.close()
        if parts is not None:
            parts.finish(frames if table_format(parts.out) in ("jsonl", "parquet") else map(as_text, frames))
    return pl.concat(frames)


def checked_request(
    reasoner: "Reasoner",
    relations: Sequence[str] | None,
    head_type: str | None,
    top: int,
    min_probability: float | None,
    asking: Asking,
    max_questions: int | None,
) -> list[int] | None:
    """Ids of the relations, ascending; what `complete` cannot do is refused here, before anything is measured."""
    if top < 1:
        raise ConfigError(f"'--top' must be at least 1, not {top}")
    if max_questions is not None and max_questions < 1:
        raise ConfigError(f"'--max-questions' must be at least 1, not {max_questions}")
    if min_probability is not None and not 0 <= min_probability <= 1:
        raise ConfigError(f"'--min-probability' must be from 0 to 1, not {min_probability:g}")
    graph, ids = reasoner.graph, None
    if relations is not None:
        ids = sorted({graph.relation_names.id(name, "relation", graph.n_forward) for name in relations})
    check_questions(reasoner.dataset, asking, ids, head_type)
    return ids


def _why_none(best: pl.DataFrame, min_probability: float | None) -> str:
    """Why there are no facts."""
    probabilities = best["probability"].drop_nulls().to_list()
    if min_probability is None or not probabilities:
        return "no missing facts were found"
    most = probability_shown(max(probabilities))
    return f"no missing fact is as probable as {min_probability:g}; the best has {most}"


def _facts_of_part(
    reasoner: "Reasoner", questions: Questions, known: tuple[str, ...], tick: Tick, first: int
) -> pl.DataFrame:
    """The missing facts that one part of the questions finds, which begins with the question `first`."""
    tick("asked", first, questions.total)
    part = questions.part(first, min(first + PART, questions.total))
    frames = [pl.DataFrame(schema=FACTS)]
    for start, answers in reasoner.asker.batches(part.heads, part.relations):
        new = NewAnswers.among(answers, reasoner.graph, reasoner.known, known)
        asked = part[start : start + len(answers.heads)]
        frames.append(_facts_of(reasoner, asked, new, questions.asking.answers, questions.of_type))
        tick("asked", first + start + len(answers.heads), questions.total)
    return pl.concat(frames)


def _best(ask: Callable[[int], pl.DataFrame], n_parts: int, top: int, parts: Parts | None) -> pl.DataFrame:
    """The best facts of all questions; in memory are those of one part and the best so far."""
    best, done = pl.DataFrame(schema=FACTS), 0
    if parts is not None:
        done = min(parts.done(), n_parts)
        for frame in islice(parts.read(), done):
            best = best_facts(best, frame, top)
    for index in range(done, n_parts):
        facts = ask(index * PART)
        best = best_facts(best, facts, top)
        if parts is not None:
            # What better facts have pushed out already cannot come back, so it need not be kept.
            parts.write(index, facts.join(best.select(FACT), on=FACT, how="semi"))
    return best


def _explained(
    best: pl.DataFrame,
    describe: Callable[[pl.DataFrame, int], pl.DataFrame],
    n_before: int,  # parts
    parts: Parts | None,
    tick: Tick,
) -> Iterator[pl.DataFrame]:
    """The facts with all that is said about them, in frames of which the first is there even without facts."""
    done = parts.done() - n_before if parts is not None else 0
    if parts is not None:
        yield from islice(parts.read(), n_before, None)
    for index in range(done, max(-(-len(best) // _EXPLAINED), 1)):
        tick("explained", index * _EXPLAINED, len(best))
        frame = describe(best.slice(index * _EXPLAINED, _EXPLAINED), index * _EXPLAINED)
        if parts is not None:
            parts.write(n_before + index, frame)
        yield frame
    tick("explained", len(best), len(best))


def _facts_of(
    reasoner: "Reasoner",
    questions: QuestionList,
    new: NewAnswers,
    most: int,  # of each question
    may_be_head: np.ndarray | None,  # entities: whether one may answer a question for heads
) -> pl.DataFrame:
    """The best new answers to some questions as facts in the direction of the file."""
    asked = questions[new.evidence.question]
    kept = new.ranks <= most
    if may_be_head is not None:
        kept &= may_be_head[new.entities] | (asked.groups < FIRST_HEAD_GROUP)
    asked, entities = asked[kept], new.entities[kept]
    measured = measured_columns(reasoner.calibration, new.evidence)
    facts = _turned(reasoner.graph, asked.groups, asked.heads, asked.relations, entities)
    columns = {
        **dict(zip(FACT, facts, strict=True)),
        **{name: pl.Series(values[kept]).fill_nan(None) for name, values in measured.items()},
        "score": new.evidence.score[kept],
        "group": asked.groups,
    }
    return pl.DataFrame(columns).cast(FACTS)  # type: ignore[arg-type]


def _turned(
    graph: KnowledgeGraph, group: np.ndarray, head: np.ndarray, relation: np.ndarray, tail: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Questions with their answers as facts, or the other way round: those that ask for heads are read backwards."""
    backwards = group >= FIRST_HEAD_GROUP
    ends = np.where(backwards, tail, head), np.where(backwards, head, tail)
    return ends[0], np.where(backwards, graph.inverse[relation], relation), ends[1]


def best_facts(one: pl.DataFrame, other: pl.DataFrame, top: int) -> pl.DataFrame:
    """The most probable of both, ties by score; of a fact that two questions found, the better."""
    keys = [pl.col("probability").fill_null(-1), pl.col("score"), *map(pl.col, FACT), pl.col("group")]
    joined = pl.concat([one, other]).sort(keys, descending=[True, True, *[False] * 4])
    return joined.unique(FACT, keep="first", maintain_order=True).head(top)


def as_text(facts: pl.DataFrame) -> pl.DataFrame:
    """The facts with the chains that support each as one text, for files that hold no lists."""
    return facts.with_columns(pl.col("support").list.join(_CHAINS_APART))


def described(reasoner: "Reasoner", held_out: bool, facts: pl.DataFrame, n_before: int) -> pl.DataFrame:
    """The facts by name and rank, with the facts that support each."""
    graph = reasoner.graph
    head, relation, tail, group = (facts[column].to_numpy() for column in (*FACT, "group"))
    heads, relations, answers = _turned(graph, group, head, relation, tail)
    columns = {
        "rank": pl.int_range(n_before + 1, n_before + len(facts) + 1, eager=True),
        **_names(graph, facts),
        **{name: facts[name] for name in (*MEASURED, "score")},
        "support": pl.Series(_support(reasoner, heads, relations, answers), dtype=pl.List(pl.String)),
        "through": pl.Series(_THROUGH).gather(group >= FIRST_HEAD_GROUP),
    }
    if held_out:
        stated = reasoner.known.stated(head, relation, np.arange(len(facts)), tail).tolist()
        columns["held_out"] = pl.Series([HELD_OUT[index] or None for index in stated], dtype=pl.String)
    return pl.DataFrame(columns)


def _names(graph: KnowledgeGraph, facts: pl.DataFrame) -> dict[str, pl.Series]:
    """Head, relation and tail by name; and by label, where there are labels."""
    names, labels = {}, {}
    for column in FACT:
        vocabulary = graph.relation_names if column == "relation" else graph.entities
        ids = facts[column].to_list()
        names[column] = pl.Series(map(vocabulary.name, ids), dtype=pl.String)
        if vocabulary.has_labels:
            labels[f"{column}_label"] = pl.Series(map(vocabulary.label, ids), dtype=pl.String)
    return names | labels


def _support(
    reasoner: "Reasoner", heads: np.ndarray, relations: np.ndarray, answers: np.ndarray
) -> list[list[str]]:
    """For each answer the strongest chains of facts that carried attention to it, as text."""
    graph, texts = reasoner.graph, []
    for start, asked in Asker(reasoner.engine).batches(heads, relations, traced=True):
        queries = np.arange(len(asked.heads))
        for paths in paths_to(asked.trace, queries, answers[start + queries], graph):
            texts.append([f"{path.share:.0%} {path.text}" for path in paths if path.facts])
    return texts
