"""The result of a question: everything its attention reached, the answers and the reasons that are read from it."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from dpmpn.ask.core import HELD_OUT, KNOWN, NOWHERE, Answers, KnownFacts, flow_of
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.settings import Horizon
from dpmpn.errors import DataError
from dpmpn.explain.explanation import Prediction, Question
from dpmpn.settings import checked_number
from dpmpn.wording import one_line

if TYPE_CHECKING:
    import polars as pl

    from dpmpn.explain.flow import QueryFlow
    from dpmpn.explain.paths import Path
    from dpmpn.render.formats import Explanation, WhyNot


class Predictions(Sequence[Prediction]):
    """Answers to a question, the most probable first."""

    def __init__(self, answers: Sequence[Prediction], entities: np.ndarray, result: "QueryResult") -> None:
        """Take the answers and their ids, and the result they are from."""
        self._answers, self._entities, self._result = tuple(answers), entities, result

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
        lines = [one_line(_line(prediction)) for prediction in self] or ["no answers"]
        return "\n".join([*lines, *(f"Note: {note}" for note in self.notes)])

    @property
    def notes(self) -> tuple[str, ...]:
        """What can be expected of the answers, where that is less than usual: sentences."""
        return self._result.notes

    def to_frame(self) -> "pl.DataFrame":
        """The answers as a polars data frame; its columns are the fields of a prediction."""
        import polars as pl

        schema: dict[str, Any] = {field.name: field.type for field in fields(Prediction)}
        return pl.DataFrame([asdict(answer) for answer in self], schema=schema)

    def why(self, answer: str | None = None, top: int = 3) -> "list[Path]":
        """The chains of facts that carried the attention to an answer, to the first one if none is named."""
        from dpmpn.explain.flow import AnswerFlow
        from dpmpn.explain.paths import strongest_paths

        top = checked_number("top", top, int, at_least=1)
        if answer is None and not self._answers:
            return []
        entity = int(self._entities[0]) if answer is None else self._id(answer)
        return strongest_paths(AnswerFlow.to(self._result.flow, entity), self._result.graph, top)

    def is_reached(self, name: str) -> bool:
        """Whether attention reached an entity, so that it is an answer, if perhaps one far down the list."""
        return self._result.is_reached(self._id(name))

    def explain(self, answer: str | None = None) -> "Explanation":
        """Why an answer was given, the first one if none is named; any that attention reached can be explained."""
        return self._result.explain(None if answer is None else self._id(answer))

    def why_not(self, candidate: str) -> "WhyNot":
        """Where an entity that is not the first answer lost its attention."""
        return self._result.why_not(self._id(candidate))

    def _id(self, name: str) -> int:
        return self._result.graph.entities.id(name)


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
    known: KnownFacts
    reached: Answers  # to this question alone; the trace is of all questions that were asked together
    query: int  # which of those in the trace this is
    inverse: bool  # whether its relation is asked backwards
    notes: tuple[str, ...] = ()  # what can be expected of the answers, where that is less than usual

    @property
    def head(self) -> int:
        """Id of the entity it starts from."""
        return int(self.reached.heads[0])

    @cached_property
    def flow(self) -> "QueryFlow":
        """What its steps did."""
        return flow_of(self.reached.trace, self.query)

    def alone(self) -> "QueryResult":
        """The same without what the steps did for the questions it was asked together with."""
        alone = replace(self, reached=replace(self.reached, trace=None))
        alone.__dict__["flow"] = self.flow
        return alone

    @property
    def question(self) -> Question:
        """What was asked, by its names."""
        relation = int(self.reached.relations[0])
        relation = int(self.graph.inverse[relation]) if self.inverse else relation
        return Question.of(self.graph, self.head, relation, self.inverse)

    def answers(self, top: int = 10, new: bool = False) -> Predictions:
        """The best answers; `new` leaves out those that the graph or any split states."""
        top = checked_number("top", top, int, at_least=1)
        # Attention cannot leave a head without edges, and is no answer there.
        best = self.reached if self.graph.degree(self.head) else self.reached[:0]
        if new:
            best = best[self.known.stated_of(best) == NOWHERE]
        best = best[:top]
        return Predictions(self._predictions(best), best.entities, self)

    def is_reached(self, entity: int) -> bool:
        """Whether attention reached an entity, so that it is an answer, if perhaps one far down the list."""
        return entity in self.reached.entities

    def explain(self, answer: int | None = None) -> "Explanation":
        """Why it has an answer, the first one if none is given."""
        from dpmpn.explain.flow import AnswerFlow
        from dpmpn.render.formats import Explanation

        row = self._explained(answer)
        explained = self.reached[row : row + 1]
        (prediction,) = self._predictions(explained, row + 1)
        prior = None if explained.prior is None else float(explained.prior[0])
        flow = AnswerFlow.to(self.flow, int(explained.entities[0]))
        return Explanation(self.question, prediction, self.horizon, self.graph, flow, prior)

    def why_not(self, candidate: int) -> "WhyNot":
        """Where a candidate lost its attention."""
        from dpmpn.explain.why_not import ReachedNodes, why_not
        from dpmpn.render.formats import WhyNot

        found = self.reached.entities, self.reached.probabilities
        reached = ReachedNodes(self.graph, self.horizon, self.head, self.flow, *found)
        return WhyNot(**vars(why_not(reached, candidate)))

    def _predictions(self, answers: Answers, first_rank: int = 1) -> list[Prediction]:
        """Some of what was reached, ranked from a number on."""
        names, stated_in = self.graph.entities, self.known.stated_of(answers)
        columns = (answers.entities, answers.probabilities, answers.through_unseen, stated_in)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return [
            Prediction(
                *(names.name(entity), probability, rank, stated == KNOWN),
                *(names.label(entity), through_unseen, HELD_OUT[stated]),
            )
            for rank, (entity, probability, through_unseen, stated) in enumerate(rows, first_rank)
        ]

    def _explained(self, answer: int | None) -> int:
        """The row of the entity to explain: the one given, or the first."""
        names = self.graph.entities
        if not self.graph.degree(self.head):
            raise DataError(
                f"'{names.name(self.head)}' has no facts in the graph, so attention cannot leave it: "
                "there is nothing to explain; add facts about it"
            )
        if answer is None:
            return 0
        if not self.is_reached(answer):
            raise DataError(
                f"no attention reached '{names.name(answer)}', so nothing carried it there; "
                "ask why not this one instead"
            )
        return int(np.flatnonzero(self.reached.entities == answer)[0])
