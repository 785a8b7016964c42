"""Asks all questions part by part, keeps the best missing facts, and says what speaks for each."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from dpmpn.ask.core import HELD_OUT, Asker, paths_to
from dpmpn.ask.measure import digest_of
from dpmpn.ask.new_answers import MEASURED, NewAnswers, measured_columns
from dpmpn.ask.questions import FIRST_HEAD_GROUP, Asking, QuestionList, Questions, check_questions
from dpmpn.ask.tables import check_table, table_format, write_table
from dpmpn.bulk.parts import Parts
from dpmpn.bulk.work import InMemory, Kept, Tick, cut, make_parts
from dpmpn.data.dataset import SPLITS
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.fingerprint import fingerprint
from dpmpn.errors import ConfigError, DataError
from dpmpn.wording import probability_shown

if TYPE_CHECKING:
    from dpmpn.reasoner.reasoner import Reasoner

PART = 4096  # questions; a killed run loses at most one part
_VERSION = 5  # of what a part holds
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

StageTick = Callable[[str, int, int], None]
"""Told what is being done ("asked" or "explained"), how much of it, and of how much."""


class CompletionWork:
    """The questions that missing facts are looked for with, and the best new answers to them in parts.

    What facts that were seen earlier have pushed out of the best cannot come back, so no part keeps it.
    """

    def __init__(
        self,
        reasoner: "Reasoner",
        relations: Sequence[str] | None = None,
        head_type: str | None = None,
        top: int = 100,
        min_probability: float | None = None,
        *,
        asking: Asking = Asking(),  # noqa: B008 (frozen)
        held_out: bool = False,
        max_questions: int | None = None,
        say: Callable[[str], None] | None = None,
    ) -> None:
        """Take a reasoner that was calibrated, if it can be."""
        ids = checked_request(reasoner, relations, head_type, top, min_probability, asking, max_questions)
        calibration = reasoner.calibration
        if calibration is None and min_probability is not None:
            raise DataError(
                "--min-probability needs probabilities, and none were measured: too few facts of this graph are held "
                "out; leave it out"
            )
        self.reasoner, self.top, self.min_probability, self.held_out = (
            reasoner,
            top,
            min_probability,
            held_out,
        )
        self.say = say or (lambda _: None)
        self._known = ("train",) if held_out else SPLITS
        self._chosen = asking, ids, head_type, max_questions
        self._best = pl.DataFrame(schema=FACTS)  # of all that was seen here
        self.request = {
            "command": "complete",
            "version": _VERSION,
            "relations": ids,
            **{"head_type": head_type, "top": top, "min_probability": min_probability},
            **{"held_out": held_out, "max_questions": max_questions, "asking": asdict(asking)},
            **fingerprint(reasoner.engine, reasoner.dataset),
            "calibration_sha256": digest_of(calibration and calibration.to_dict()),
        }

    @cached_property
    def questions(self) -> Questions:
        """The questions, counted when they are first needed: the name and the place of a table are tried before."""
        asking, ids, head_type, max_questions = self._chosen
        found = Questions(self.reasoner.dataset, asking, ids, head_type, max_questions, self._known)
        if found.left_out:
            self.say(
                f"{found.left_out:,} questions are left out for --max-questions {max_questions:,}: "
                "those whose entities are least like the ones that have an answer"
            )
        return found

    @cached_property
    def sizes(self) -> list[int]:
        """How many questions each part has."""
        return cut(self.questions.total, PART)

    def part(self, index: int, tick: Callable[[int], None]) -> pl.DataFrame:
        """The missing facts that the questions of one part find."""
        first = index * PART
        part = self.questions.part(first, first + self.sizes[index])
        frames = [pl.DataFrame(schema=FACTS)]
        for start, answers in self.reasoner.asker.batches(part.heads, part.relations):
            new = NewAnswers.among(answers, self.reasoner.graph, self.reasoner.known, self._known)
            asked = part[start : start + len(answers.heads)]
            kept = self.questions.asking.answers, self.questions.of_type
            frames.append(_facts_of(self.reasoner, asked, new, *kept))
            tick(start + len(answers.heads))
        facts = pl.concat(frames)
        self._best = best_facts(self._best, facts, self.top)
        return facts.join(self._best.select(FACT), on=FACT, how="semi")

    def finish(self, kept: Kept, progress: Tick | None = None) -> Iterator[pl.DataFrame]:
        """The best facts of all parts with what speaks for each; in memory are those of one part and the best."""
        best = pl.DataFrame(schema=FACTS)
        for frame in kept.read(range(len(self.sizes))):
            best = best_facts(best, frame, self.top)
        probable = best
        if self.min_probability is not None:
            probable = best.filter(pl.col("probability") >= self.min_probability)
        if probable.is_empty():
            self.say(_why_none(best, self.min_probability))
        reasons = _Reasons(self, probable)
        first = len(self.sizes)
        make_parts(reasons, kept, progress, first=first)
        return kept.read(range(first, first + len(reasons.sizes)))

    def close(self) -> None:
        """End the processes that helped."""
        self.reasoner.engine.close()


class _Reasons:
    """What speaks for facts that were found, in parts; the first is there even without facts."""

    def __init__(self, work: CompletionWork, facts: pl.DataFrame) -> None:
        self._work, self._facts = work, facts
        self.request = work.request
        self.sizes = cut(len(facts), _EXPLAINED) or [0]

    def part(self, index: int, _: Callable[[int], None]) -> pl.DataFrame:
        """Some of the facts with all that is said about them."""
        first = index * _EXPLAINED
        facts = self._facts.slice(first, _EXPLAINED)
        return described(self._work.reasoner, self._work.held_out, facts, first)

    def close(self) -> None:
        """Leave the processes to the work that found the facts."""


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
    progress: StageTick | None = None,
    say: Callable[[str], None] | None = None,
) -> pl.DataFrame:
    """The most probable facts that no split and no edge states, the best first.

    With `out` the table is written there, too; a run that was killed goes on when it is called again. With
    `held_out` validation and test facts count as missing and are marked. Probabilities are those of the reasoner, if it
    has any.
    """
    work = CompletionWork(
        reasoner,
        relations,
        head_type,
        top,
        min_probability,
        asking=asking,
        held_out=held_out,
        max_questions=max_questions,
        say=say,
    )
    if out is not None:
        check_table(Path(out))
    with InMemory() if out is None else Parts(out, work.request) as kept:
        try:
            make_parts(work, kept, _stage(progress, "asked"))
            return finished(work, kept, _stage(progress, "explained"))
        finally:
            reasoner.engine.close()


def finished(work: CompletionWork, kept: Kept, progress: Tick | None = None) -> pl.DataFrame:
    """The table of all parts, written to its place if they are kept on the disk; `progress` is told of reasons."""
    frames = list(work.finish(kept, progress))

    def write(path: Path) -> None:
        holds_lists = table_format(path) in ("jsonl", "parquet")
        write_table(path, frames if holds_lists else map(as_text, frames))

    kept.finish(write)
    return pl.concat(frames)


def _stage(progress: StageTick | None, name: str) -> Tick | None:
    """What is told of one stage of the work alone."""
    return None if progress is None else partial(progress, name)


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
