"""Asks questions given as ids: what attention reached, the highest score first, and where each answer is stated."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmpn.ask.roles import Roles
from dpmpn.data.dataset import SPLITS, Dataset
from dpmpn.evaluate.known import KnownAnswers

if TYPE_CHECKING:
    from dpmpn.data.graph import KnowledgeGraph
    from dpmpn.engine.engine import Engine
    from dpmpn.engine.trace import ReasoningTrace
    from dpmpn.explain.flow import QueryFlow
    from dpmpn.explain.paths import Path

BATCH = 256  # questions asked at once; the engine splits them between cores and within memory
TRACED = 16  # where each step is kept: more take longer for each, as every reason looks through all that was traced
NOWHERE, KNOWN = 0, 1  # where an answer is stated; known is what the graph or training states
HELD_OUT = ("", "", *SPLITS[1:])  # what split holds it out, by where it is stated: from 2 on there is one
_ANSWER_COLUMNS = ("query", "entities", "scores", "through_unseen")
_FEW = 8  # questions for which facts are looked through; for more of them an index is worth its making


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers to some questions: grouped by question, those of the highest score first, equal ones by entity."""

    heads: np.ndarray  # questions
    relations: np.ndarray  # questions; an inverse relation asks for heads
    query: np.ndarray  # int64, answers: which question
    entities: np.ndarray  # int32, answers
    scores: np.ndarray  # float32, answers: the final attention
    through_unseen: np.ndarray  # float64: the part that came through entities the model was not trained on
    prior: np.ndarray | None  # before any step; None without one, or without a trace
    trace: "ReasoningTrace | None"

    def __len__(self) -> int:
        return len(self.query)

    def __getitem__(self, rows: slice | np.ndarray) -> "Answers":
        prior = None if self.prior is None else self.prior[rows]
        columns: dict[str, Any] = {name: getattr(self, name)[rows] for name in _ANSWER_COLUMNS}
        return replace(self, prior=prior, **columns)

    @property
    def ranks(self) -> np.ndarray:
        """The rank of each answer among those of its question, from 1."""
        return np.arange(len(self)) - np.searchsorted(self.query, self.query) + 1

    def best(self, top: int) -> "Answers":
        """The first answers of each question."""
        return self[self.ranks <= top]

    def of(self, query: int) -> "Answers":
        """The answers to one question alone; the trace stays that of all."""
        own, alone = self[slice(*np.searchsorted(self.query, [query, query + 1]))], [query]
        return replace(
            own, heads=self.heads[alone], relations=self.relations[alone], query=np.zeros_like(own.query)
        )


class Asker:
    """Asks a model; what it says of a question does not depend on the others asked with it, to six digits."""

    def __init__(self, engine: "Engine", unseen: np.ndarray | None = None) -> None:
        self._engine, self._unseen = engine, unseen

    def ask(
        self,
        heads: np.ndarray,
        relations: np.ndarray,
        traced: bool = False,
        removed: np.ndarray | None = None,
    ) -> Answers:
        """All that attention reached, of questions that are asked together, without the removed edges of the graph.

        Where the graph has entities the model was not trained on, steps are always traced.
        """
        from dpmpn.engine.trace import through_unseen

        if removed is None:
            batch = self._engine.asking_batch(heads, relations)
        else:
            batch = self._engine.without_each(heads[0], relations[0], [removed])
        traced = traced or self._unseen is not None
        answer, trace = self._engine.trace(batch) if traced else (self._engine.answer(batch), None)
        attention = answer.attention.detach().cpu().numpy()
        unseen = np.zeros(len(attention))
        if self._unseen is not None and trace is not None:
            unseen = through_unseen(answer, trace, self._unseen)
        query = np.repeat(np.arange(len(heads)), np.diff(answer.offsets))
        answers = Answers(heads, relations, query, answer.nodes, attention, unseen, answer.prior, trace)
        order = np.lexsort((answer.nodes, -attention, query))
        return answers[order[attention[order] > 0]]

    def batches(
        self, heads: np.ndarray, relations: np.ndarray, traced: bool = False
    ) -> Iterator[tuple[int, Answers]]:
        """The same for many questions, batch after batch, each with the position of its first question."""
        size = TRACED if traced or self._unseen is not None else BATCH
        for start in range(0, len(heads), size):
            rows = slice(start, start + size)
            yield start, self.ask(heads[rows], relations[rows], traced)


class KnownFacts:
    """What a dataset states: the edges of its graph, and the facts of each split, read in both directions."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset, self._graph = dataset, dataset.graph
        self._index: dict[str, KnownAnswers] = {}

    @cached_property
    def roles(self) -> Roles:
        """Which entities fit which relation."""
        return Roles(self._graph)

    @cached_property
    def reflexive(self) -> np.ndarray:
        """For each relation, whether a stated fact joins an entity to itself: bools."""
        graph, train = self._graph, self._dataset.train
        found = np.zeros(graph.n_relations, bool)
        found[graph.relations[graph.all_heads() == graph.tails]] = True
        found[train[train[:, 0] == train[:, 2], 1]] = True
        return found

    def validation_of(self, relation: int) -> np.ndarray:
        """Heads and tails of the validation facts of a relation, in its own direction: n x 2."""
        valid, backward = self._dataset.valid, int(self._graph.inverse[relation])
        forward = valid[valid[:, 1] == relation][:, [0, 2]]
        return np.concatenate([forward, valid[valid[:, 1] == backward][:, [2, 0]]])

    def index(self) -> None:
        """Make single questions quicker, once and for all."""
        for split in SPLITS:
            self._indexed(split)

    def stated(
        self, heads: np.ndarray, relations: np.ndarray, query: np.ndarray, entities: np.ndarray
    ) -> np.ndarray:
        """Where each answer is stated, as int8: `NOWHERE`, `KNOWN`, or the index of a split in `HELD_OUT`."""
        found = np.zeros(len(entities), np.int8)
        for number, split in enumerate(HELD_OUT[2:], 2):
            found[self._facts(split, heads).contains(heads, relations, query, entities)] = number
        known = self._graph.find_edges(heads[query], relations[query], entities) >= 0
        known |= self._facts("train", heads).contains(heads, relations, query, entities)
        found[known] = KNOWN
        return found

    def stated_of(self, answers: Answers) -> np.ndarray:
        """Where each of some answers is stated."""
        return self.stated(answers.heads, answers.relations, answers.query, answers.entities)

    def _facts(self, split: str, heads: np.ndarray) -> KnownAnswers:
        """The facts of a split, or for few questions those alone that name their entities."""
        if split in self._index or len(heads) > _FEW:
            return self._indexed(split)
        triples = self._dataset.split(split)
        named = np.isin(triples[:, 0], heads) | np.isin(triples[:, 2], heads)
        return KnownAnswers.from_triples(self._graph.either_way(triples[named]))

    def _indexed(self, split: str) -> KnownAnswers:
        if split not in self._index:
            triples = self._graph.either_way(self._dataset.split(split))
            self._index[split] = KnownAnswers.from_triples(triples)
        return self._index[split]


def flow_of(trace: "ReasoningTrace | None", query: int) -> "QueryFlow":
    """What the steps did for one of the questions of a trace."""
    from dpmpn.explain.flow import QueryFlow

    if trace is None:
        raise ValueError("what the steps did was not kept; ask with a trace")
    return QueryFlow.of(trace, query)


def paths_to(
    trace: "ReasoningTrace | None", query: np.ndarray, entities: np.ndarray, graph: "KnowledgeGraph"
) -> "list[list[Path]]":
    """The strongest chains of facts that carried attention to entities, each of a question of the trace."""
    from dpmpn.explain.flow import AnswerFlow
    from dpmpn.explain.paths import strongest_paths

    flows = {number: flow_of(trace, number) for number in np.unique(query).tolist()}
    return [
        strongest_paths(AnswerFlow.to(flows[number], entity), graph)
        for number, entity in zip(query.tolist(), entities.tolist(), strict=True)
    ]
