"""The result of a question: everything its attention reached, the answers and the reasons that are read from it."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, overload

import numpy as np

from dpmpn.config import Horizon
from dpmpn.data.dataset import SPLITS
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.errors import DataError
from dpmpn.explain.explanation import Prediction, Question

if TYPE_CHECKING:
    import polars as pl

    from dpmpn.engine.trace import ReasoningTrace
    from dpmpn.explain.flow import QueryFlow
    from dpmpn.explain.paths import Path
    from dpmpn.render.explanation import Explanation, WhyNot


class Predictions(Sequence[Prediction]):
    """Answers to a question, the most probable first."""

    def __init__(self, answers: Sequence[Prediction], result: "QueryResult") -> None:
        self._answers, self._result = tuple(answers), result

    @overload
    def __getitem__(self, index: int) -> Prediction: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Prediction]: ...
    def __getitem__(self, index: int | slice) -> Prediction | Sequence[Prediction]:
        return self._answers[index]

    def __len__(self) -> int:
        return len(self._answers)

    def __iter__(self) -> Iterator[Prediction]:
        return iter(self._answers)

    def __repr__(self) -> str:
        return "\n".join(_line(prediction) for prediction in self) or "no answers"

    def to_frame(self) -> "pl.DataFrame":
        """The answers as a polars data frame; its columns are the fields of a prediction."""
        import polars as pl

        schema = {
            "answer": pl.String,
            "probability": pl.Float64,
            "rank": pl.Int64,
            "known": pl.Boolean,
            "label": pl.String,
            "through_unseen": pl.Float64,
            "held_out": pl.String,
        }
        return pl.DataFrame([asdict(answer) for answer in self], schema=schema)

    def why(self, answer: str | None = None, top: int = 3) -> "list[Path]":
        """The chains of facts that carried the attention to an answer, to the first one if none is named."""
        from dpmpn.explain.flow import AnswerFlow
        from dpmpn.explain.paths import strongest_paths

        if answer is None and not self._answers:
            return []
        graph = self._result.graph
        entity = graph.entities.id(answer if answer is not None else self._answers[0].answer)
        return strongest_paths(AnswerFlow.to(self._result.flow, entity), graph, top)

    def is_reached(self, name: str) -> bool:
        """Whether attention reached an entity, so that it is an answer, if perhaps one far down the list."""
        return self._result.is_reached(self._result.graph.entities.id(name))

    def explain(self, answer: str | None = None) -> "Explanation":
        """Why an answer was given, the first one if none is named; any that attention reached can be explained."""
        return self._result.explain(answer)

    def why_not(self, candidate: str) -> "WhyNot":
        """Where an entity that is not the first answer lost its attention."""
        return self._result.why_not(candidate)


def _line(prediction: Prediction) -> str:
    p = prediction
    name = p.label if p.label == p.answer else f"{p.label} ({p.answer})"
    unseen = f"  {p.through_unseen:.0%} through unseen entities" if p.through_unseen >= 0.005 else ""
    stated = "  known" if p.known else "  held out" if p.held_out else ""
    return f"{p.rank}. {name}  {p.probability:.3f}{stated}{unseen}"


@dataclass(frozen=True, eq=False)
class QueryResult:
    """A question and everything its attention reached, the most probable first."""

    graph: KnowledgeGraph
    horizon: Horizon
    head: int  # ids
    relation: int
    inverse: bool  # whether the relation is asked backwards
    nodes: np.ndarray
    probabilities: np.ndarray
    through_unseen: np.ndarray
    trace: "ReasoningTrace | None"  # of all questions that were asked together; None if it was not kept
    stated: dict[str, np.ndarray]  # the answers that each split states
    query: int = 0  # which of the trace's questions this is
    prior: np.ndarray | None = None  # of the nodes, before any step; None without one, or without a trace

    @cached_property
    def flow(self) -> "QueryFlow":
        """What its steps did."""
        from dpmpn.explain.flow import QueryFlow

        if self.trace is None:
            raise ValueError("what the steps did was not kept; ask with a trace")
        return QueryFlow.of(self.trace, self.query)

    def alone(self) -> "QueryResult":
        """The same without what the steps did for the questions it was asked together with."""
        alone = replace(self, trace=None)
        alone.__dict__["flow"] = self.flow
        return alone

    @property
    def question(self) -> Question:
        """What was asked, by its names."""
        relation = int(self.graph.inverse[self.relation]) if self.inverse else self.relation
        entities, relations = self.graph.entities, self.graph.relation_names
        return Question(
            entities.name(self.head),
            relations.name(relation),
            self.inverse,
            entities.label(self.head),
            relations.label(relation),
        )

    def answers(self, top: int = 10, new: bool = False) -> Predictions:
        """The best answers; `new` leaves out those that the graph or any split states."""
        nodes = self.nodes
        if not self.graph.degree(self.head):  # attention cannot leave such a head, and is no answer there
            nodes = nodes[:0]
        places = np.arange(len(nodes))
        if new:
            places = places[~self._is_stated(SPLITS, nodes)]
        places = places[:top]
        return Predictions(self._predictions(places, np.arange(len(places)) + 1), self)

    def is_reached(self, entity: int) -> bool:
        """Whether attention reached an entity, so that it is an answer, if perhaps one far down the list."""
        return bool((self.nodes == entity).any())

    def explain(self, answer: str | None = None) -> "Explanation":
        """Why it has an answer, the first one if none is named."""
        from dpmpn.explain.flow import AnswerFlow
        from dpmpn.render.explanation import Explanation

        entity = self._explained(answer)
        place = int(np.flatnonzero(self.nodes == entity)[0])
        (prediction,) = self._predictions(np.array([place]), np.array([place + 1]))
        prior = None if self.prior is None else float(self.prior[place])
        flow = AnswerFlow.to(self.flow, entity)
        return Explanation(self.question, prediction, self.horizon, self.graph, flow, prior)

    def why_not(self, candidate: str) -> "WhyNot":
        """Where a candidate lost its attention."""
        from dpmpn.explain.why_not import Reached, why_not
        from dpmpn.render.explanation import WhyNot

        reached = Reached(self.graph, self.horizon, self.head, self.flow, self.nodes, self.probabilities)
        return WhyNot(**vars(why_not(reached, self.graph.entities.id(candidate))))

    def _predictions(self, places: np.ndarray, ranks: np.ndarray) -> list[Prediction]:
        """Some of what was reached, with the ranks to give them."""
        nodes, names = self.nodes[places], self.graph.entities
        known = self._is_stated(("train",), nodes)
        held_out = np.full(len(nodes), "", object)
        for split in SPLITS[1:]:
            held_out[np.isin(nodes, self.stated[split]) & ~known] = split
        return [
            Prediction(
                names.name(int(entity)),
                float(self.probabilities[place]),
                int(rank),
                bool(is_known),
                names.label(int(entity)),
                float(self.through_unseen[place]),
                split,
            )
            for place, entity, rank, is_known, split in zip(
                places, nodes, ranks, known, held_out, strict=True
            )
        ]

    def _is_stated(self, splits: Sequence[str], answers: np.ndarray) -> np.ndarray:
        """Whether the graph or some splits state each answer."""
        in_graph = self.graph.find_edges(np.array(self.head), np.array(self.relation), answers) >= 0
        return in_graph | np.isin(answers, np.concatenate([self.stated[split] for split in splits]))

    def _explained(self, answer: str | None) -> int:
        """The entity to explain: the named one, or the first answer."""
        names = self.graph.entities
        if not self.graph.degree(self.head):
            raise DataError(
                f"'{names.name(self.head)}' has no facts in the graph, so attention cannot leave it: "
                "there is nothing to explain; add facts about it"
            )
        if answer is None:
            return int(self.nodes[0])
        entity = names.id(answer)
        if not self.is_reached(entity):
            raise DataError(
                f"no attention reached '{names.name(entity)}', so nothing carried it there; "
                "ask why not this one instead"
            )
        return entity
