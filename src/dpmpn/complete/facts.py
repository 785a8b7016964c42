"""Missing facts: new answers to questions, the best of them as a table, and all that is said about each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from dpmpn.ask.core import HELD_OUT, Asker, paths_to
from dpmpn.ask.reasoner import Reasoner
from dpmpn.complete.calibration import Calibration, Estimates
from dpmpn.complete.questions import FIRST_HEAD_GROUP, QuestionList
from dpmpn.data.dataset import Dataset
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.explain.paths import Path, fact_labels

FACT = ["head", "relation", "tail"]
FACTS = {
    **dict.fromkeys(FACT, pl.Int32),  # in the direction of the file
    "probability": pl.Float64,  # null without calibration
    "attention": pl.Float64,
    "group": pl.Int8,  # of the question that found it
}
_CHAINS_APART = " | "
_THROUGH = ("<head, relation, ?>", "<?, relation, tail>")  # the question that found a fact


@dataclass(frozen=True, eq=False)
class NewAnswers:
    """Answers grouped by question, the most attended first."""

    rows: np.ndarray  # int64: which of the questions
    entities: np.ndarray  # int32
    attention: np.ndarray  # float64
    stated: np.ndarray  # int8: which split that does not count holds it, as `KnownFacts` says it


class Finder:
    """Asks for answers that are stated neither in the graph nor in some splits."""

    def __init__(self, reasoner: Reasoner, splits: Sequence[str], answers: int) -> None:
        self._asker, self._known, self._answers = Asker(reasoner.engine), reasoner.known, answers
        self._is_new = np.array([True, False, *(split not in splits for split in HELD_OUT[2:])])
        self._reflexive = _reflexive(reasoner.dataset)

    def find(
        self,
        questions: QuestionList,
        may_be_head: np.ndarray | None = None,  # entities: whether one may answer a question for heads
        tick: Callable[[int], None] | None = None,  # told how many of the questions were asked
    ) -> NewAnswers:
        """The best new answers of each question, at most `answers` of each."""
        empty = (np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0), np.empty(0, np.int8))
        found = [empty]
        for start, answers in self._asker.batches(questions.heads, questions.relations):
            stated = self._known.stated_of(answers)
            rows, entities = answers.query + start, answers.entities
            new = self._is_new[stated]
            # Where no stated fact joins an entity to itself, attention that stayed at the head is no answer.
            new &= (entities != questions.heads[rows]) | self._reflexive[questions.relations[rows]]
            if may_be_head is not None:
                new &= may_be_head[entities] | (questions.groups[rows] < FIRST_HEAD_GROUP)
            new[new] = answers[new].ranks <= self._answers
            attention = answers.probabilities[new].astype(np.float64)
            found.append((rows[new], entities[new], attention, stated[new]))
            if tick is not None:
                tick(start + len(answers.heads))
        return NewAnswers(*(np.concatenate(columns) for columns in zip(*found, strict=True)))


def _reflexive(dataset: Dataset) -> np.ndarray:
    """For each relation, whether a stated fact joins an entity to itself."""
    graph, train = dataset.graph, dataset.train
    heads = np.repeat(np.arange(graph.n_entities, dtype=np.int32), np.diff(graph.offsets))
    found = np.zeros(graph.n_relations, bool)
    found[graph.relations[heads == graph.tails]] = True
    found[train[train[:, 0] == train[:, 2], 1]] = True
    return found


def facts_of(
    graph: KnowledgeGraph, calibration: Calibration | None, questions: QuestionList, answers: NewAnswers
) -> pl.DataFrame:
    """The answers as facts in the direction of the file."""
    asked = questions[answers.rows]
    columns = {
        **dict(
            zip(
                FACT,
                _turned(graph, asked.groups, asked.heads, asked.relations, answers.entities),
                strict=True,
            )
        ),
        "probability": _estimates(calibration, answers.attention, asked.relations, asked.groups).probability,
        "attention": answers.attention,
        "group": asked.groups,
    }
    return pl.DataFrame(columns, schema_overrides=FACTS).fill_nan(None)


def _turned(
    graph: KnowledgeGraph, group: np.ndarray, head: np.ndarray, relation: np.ndarray, tail: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Questions with their answers as facts, or the other way round: those that ask for heads are read backwards."""
    backwards = group >= FIRST_HEAD_GROUP
    ends = np.where(backwards, tail, head), np.where(backwards, head, tail)
    return ends[0], np.where(backwards, graph.inverse[relation], relation), ends[1]


def best_facts(one: pl.DataFrame, other: pl.DataFrame, top: int) -> pl.DataFrame:
    """The most probable of both, ties by attention; of a fact that two questions found, the better."""
    keys = [pl.col("probability").fill_null(-1), pl.col("attention"), *map(pl.col, FACT), pl.col("group")]
    joined = pl.concat([one, other]).sort(keys, descending=[True, True, *[False] * 4])
    return joined.unique(FACT, keep="first", maintain_order=True).head(top)


def as_text(facts: pl.DataFrame) -> pl.DataFrame:
    """The facts with the chains that support each as one text, for files that hold no lists."""
    return facts.with_columns(pl.col("support").list.join(_CHAINS_APART))


def described(
    reasoner: Reasoner, calibration: Calibration | None, held_out: bool, facts: pl.DataFrame, n_before: int
) -> pl.DataFrame:
    """The facts by name and rank, with what was measured on validation and the facts that support each."""
    graph = reasoner.graph
    head, relation, tail, group, attention = (
        facts[column].to_numpy() for column in (*FACT, "group", "attention")
    )
    heads, relations, answers = _turned(graph, group, head, relation, tail)
    measured = _estimates(calibration, attention, relations, group)
    low, high = measured.interval
    columns = {
        "rank": pl.int_range(n_before + 1, n_before + len(facts) + 1, eager=True),
        **_names(graph, facts),
        "probability": facts["probability"],
        "probability_low": _column(low, pl.Float64),
        "probability_high": _column(high, pl.Float64),
        "attention": facts["attention"],
        "right": _column(measured.right, pl.Int64),
        "of": _column(measured.of, pl.Int64),
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


def _estimates(
    calibration: Calibration | None, attention: np.ndarray, relation: np.ndarray, group: np.ndarray
) -> Estimates:
    """What answers like these were worth on validation; NaN where nothing was measured."""
    if calibration is None:
        return Estimates(*np.full((4, len(attention)), np.nan))
    return calibration.estimates(attention, relation, group)


def _column(values: np.ndarray, dtype: type[pl.DataType]) -> pl.Series:
    """The values, null where they are not numbers."""
    return pl.Series(np.round(values) if dtype == pl.Int64 else values).fill_nan(None).cast(dtype)


def _support(
    reasoner: Reasoner, heads: np.ndarray, relations: np.ndarray, answers: np.ndarray
) -> list[list[str]]:
    """For each answer the strongest chains of facts that carried attention to it, as text."""
    graph, texts = reasoner.graph, []
    for start, asked in Asker(reasoner.engine).batches(heads, relations, traced=True):
        queries = np.arange(len(asked.heads))
        for paths in paths_to(asked.trace, queries, answers[start + queries], graph):
            texts.append([_chain(graph, path) for path in paths if path.facts])
    return texts


def _chain(graph: KnowledgeGraph, path: Path) -> str:
    return f"{path.share:.0%} " + "; ".join(" ".join(fact) for fact in fact_labels(graph, path))
