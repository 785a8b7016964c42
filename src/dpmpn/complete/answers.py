"""Asks questions and keeps the best answers that are new: those that no fact states."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dpmpn.complete.questions import FIRST_HEAD_GROUP, QuestionList
from dpmpn.data.dataset import Dataset
from dpmpn.engine.engine import Engine
from dpmpn.evaluate.known import KnownAnswers

BATCH = 256  # questions asked at once; the engine splits them between cores and within memory


@dataclass(frozen=True, eq=False)
class NewAnswers:
    """Answers grouped by question, the most attended first."""

    rows: np.ndarray  # int64: which of the questions
    entities: np.ndarray  # int32: the answer
    attention: np.ndarray  # float64


class Asker:
    """Asks for answers that are stated neither in the graph nor in some splits."""

    def __init__(self, engine: Engine, dataset: Dataset, splits: Sequence[str], answers: int) -> None:
        self._engine, self._graph, self._answers = engine, dataset.graph, answers
        self._known = KnownAnswers.from_triples(*(dataset.queries(split) for split in splits))
        self._reflexive = _reflexive(dataset)

    def ask(
        self,
        questions: QuestionList,
        may_be_head: np.ndarray | None = None,  # entities: whether one may answer a question for heads
        tick: Callable[[int], None] | None = None,  # told how many of the questions were asked
    ) -> NewAnswers:
        """The best new answers of each question, at most `answers` of each."""
        found = []
        for start in range(0, len(questions), BATCH):
            batch = questions[start : start + BATCH]
            rows, entities, attention = self._ask(batch, may_be_head)
            found.append((rows + start, entities, attention))
            if tick is not None:
                tick(start + len(batch))
        empty = (np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0))
        return NewAnswers(*(np.concatenate(columns) for columns in zip(empty, *found, strict=True)))

    def _ask(
        self, batch: QuestionList, may_be_head: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        answer = self._engine.answer(self._engine.asking_batch(batch.heads, batch.relations))
        attention = answer.attention.detach().cpu().numpy().astype(np.float64)
        rows = np.repeat(np.arange(len(batch)), np.diff(answer.offsets))
        new = (attention > 0) & ~self._stated(batch, rows, answer.nodes)
        # Where no stated fact joins an entity to itself, attention that stayed at the head is no answer.
        new &= (answer.nodes != batch.heads[rows]) | self._reflexive[batch.relations[rows]]
        if may_be_head is not None:
            new &= may_be_head[answer.nodes] | (batch.groups[rows] < FIRST_HEAD_GROUP)
        rows, entities, attention = rows[new], answer.nodes[new], attention[new]
        order = np.lexsort((entities, -attention, rows))
        rows = rows[order]
        place = np.arange(len(rows)) - np.searchsorted(rows, rows)  # within the question
        best = order[place < self._answers]
        return rows[place < self._answers], entities[best], attention[best]

    def _stated(self, batch: QuestionList, rows: np.ndarray, entities: np.ndarray) -> np.ndarray:
        """Whether each answer is stated; answers are ascending within a question."""
        in_graph = self._graph.find_edges(batch.heads[rows], batch.relations[rows], entities) >= 0
        return in_graph | contains(self._known, batch, rows, entities, self._graph.n_entities)


def contains(
    known: KnownAnswers, questions: QuestionList, rows: np.ndarray, entities: np.ndarray, n_entities: int
) -> np.ndarray:
    """Whether each answer is a known one of its question."""
    offsets, tails = known.lookup(questions.heads, questions.relations)
    keys = np.repeat(np.arange(len(questions)), np.diff(offsets)) * n_entities + tails  # ascending
    wanted = rows * n_entities + entities
    at = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
    return keys[at] == wanted if len(keys) else np.zeros(len(wanted), bool)


def _reflexive(dataset: Dataset) -> np.ndarray:
    """For each relation, whether a stated fact joins an entity to itself."""
    graph = dataset.graph
    heads = np.repeat(np.arange(graph.n_entities, dtype=np.int32), np.diff(graph.offsets))
    train = dataset.train
    found = np.zeros(graph.n_relations, bool)
    found[graph.relations[heads == graph.tails]] = True
    found[train[train[:, 0] == train[:, 2], 1]] = True
    return found
