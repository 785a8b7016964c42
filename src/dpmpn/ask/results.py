"""The result of a question: everything its attention reached, the answers and the reasons that are read from it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from dpmpn.ask.core import HELD_OUT, KNOWN, NOWHERE, Answers, KnownFacts, flow_of
from dpmpn.ask.new_answers import Judged
from dpmpn.calibrate.calibration import Calibration
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.settings import Horizon
from dpmpn.errors import DataError
from dpmpn.explain.explanation import Prediction, Question
from dpmpn.settings import checked_number
from dpmpn.wording import interval_shown, listed, one_line, probability_shown

if TYPE_CHECKING:
    import polars as pl

    from dpmpn.explain.flow import QueryFlow
    from dpmpn.explain.paths import Path
    from dpmpn.render.formats import Explanation, WhyNot


LEFT_OUT = "not shown"
"""How a note on answers that do not fit begins."""
_NAMED = 3  # of the answers that are left out


class Predictions(Sequence[Prediction]):
    """Answers to a question, those of the highest score first."""

    def __init__(
        self,
        answers: Sequence[Prediction],
        entities: np.ndarray,
        result: "QueryResult",
        notes: tuple[str, ...] = (),
    ) -> None:
        """Take the answers and their ids, the result they are from, and what is to be said of them."""
        self._answers, self._entities, self._result = tuple(answers), entities, result
        self._notes = notes

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

    def _repr_html_(self) -> str:
        """What a notebook shows: the question, the table of answers, and the notes."""
        notes = "".join(f"<p>Note: {escape(note)}</p>" for note in self.notes)
        return f"<p>{escape(str(self.question))}</p>{self.to_frame()._repr_html_()}{notes}"

    @property
    def question(self) -> Question:
        """What was asked, as the graph spells it."""
        return self._result.question

    @property
    def notes(self) -> tuple[str, ...]:
        """What can be expected of the answers, where that is less than usual, and what is left out: sentences."""
        return self._notes

    def to_frame(self) -> "pl.DataFrame":
        """The answers as a polars data frame; its columns are the fields of a prediction."""
        import polars as pl

        schema: dict[str, Any] = {field.name: field.type for field in fields(Prediction)}
        return pl.DataFrame([asdict(answer) for answer in self], schema=schema)

    def to_pandas(self) -> Any:
        """The same as a pandas data frame."""
        return as_pandas(self.to_frame())

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

    def explain(self, answer: str | None = None, keep_fact: bool = False) -> "Explanation":
        """Why an answer was given, the first one if none is named; any that attention reached can be explained.

        An answer that the graph states is explained as if it did not, unless `keep_fact`.
        """
        return self._result.explain(None if answer is None else self._id(answer), keep_fact)

    def why_not(self, candidate: str) -> "WhyNot":
        """Where an entity that is not the first answer lost its attention."""
        return self._result.why_not(self._id(candidate))

    def _id(self, name: str) -> int:
        return self._result.graph.entities.id(name)


def _plain(measured: dict[str, np.ndarray]) -> dict[str, Any]:
    return {name: int(x) if name == "cases" else float(x) for name, x in measured.items()}


def as_pandas(frame: "pl.DataFrame") -> Any:
    """A polars data frame as one of pandas, which must be installed; pyarrow need not be."""
    try:
        pandas = import_module("pandas")
    except ImportError as error:
        raise DataError(
            "a pandas frame needs pandas: pip install pandas; or use to_frame, of polars"
        ) from error
    return pandas.DataFrame({name: frame[name].to_list() for name in frame.columns}, columns=frame.columns)


def _line(prediction: Prediction) -> str:
    p = prediction
    name = p.label if p.label == p.answer else f"{p.label} ({p.answer})"
    unseen = f"  {p.through_unseen:.0%} through unseen entities" if p.through_unseen >= 0.005 else ""
    stated = "  known" if p.known else "  held out" if p.held_out else ""
    worth = f"score {p.score:.3f}"
    if p.probability is not None:
        between = interval_shown(p.probability_low or 0.0, p.probability_high or 0.0)
        worth = f"probability {probability_shown(p.probability)} ({between}), {worth}"
    return f"{p.rank}. {name}  {worth}{stated}{unseen}"


@dataclass(frozen=True, eq=False)
class QueryResult:
    """A question and everything its attention reached, the most probable first."""

    graph: KnowledgeGraph
    horizon: Horizon
    known: KnownFacts
    reached: Answers  # to this question alone; the trace is of all questions that were asked together
    query: int  # which of those in the trace this is
    inverse: bool  # whether its relation is asked backwards
    calibration: Calibration | None = None  # what scores are worth, if that was measured
    notes: tuple[str, ...] = ()  # what can be expected of the answers, where that is less than usual
    # Asks the same on the graph without some edges, whose ids ascend; None where nothing can be asked again.
    again: "Callable[[np.ndarray], QueryResult] | None" = None

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

    @cached_property
    def _judged(self) -> Judged:
        return Judged.of(self.reached, self.graph, self.known, self.calibration)

    def answers(self, top: int = 10, new: bool = False, any_role: bool = False) -> Predictions:
        """The best answers; `new` leaves out those that the graph or any split states.

        Entities that do not fit what the relation asks for are left out, too, unless `any_role`.
        """
        top = checked_number("top", top, int, at_least=1)
        # Attention cannot leave a head without edges, and is no answer there.
        shown, judged = np.full(len(self.reached), self.graph.degree(self.head) > 0), self._judged
        if new:
            shown &= judged.stated == NOWHERE
        rows = np.flatnonzero(shown if any_role else shown & judged.fits)[:top]
        notes = self.notes
        if not any_role:
            before = np.flatnonzero(shown & ~judged.fits & (self.reached.entities != self.head))
            notes += self._hidden(before[before < rows[-1]] if len(rows) == top else before[before < top])
        return Predictions(self._predictions(rows), self.reached.entities[rows], self, notes)

    def _hidden(self, rows: np.ndarray) -> tuple[str, ...]:
        """A sentence on answers that are left out."""
        if not len(rows):
            return ()
        names = [
            one_line(self.graph.entities.label(e)) for e in self.reached.entities[rows[:_NAMED]].tolist()
        ]
        more = [f"{len(rows) - _NAMED:,} more"] if len(rows) > _NAMED else []
        relation = one_line(self.question.relation_label)
        end = "head" if self.inverse else "tail"
        return (
            f"{LEFT_OUT}, because no similar entity is the {end} of any '{relation}' fact: {listed(names + more)}",
        )

    def is_reached(self, entity: int) -> bool:
        """Whether attention reached an entity, so that it is an answer, if perhaps one far down the list."""
        return entity in self.reached.entities

    def explain(self, answer: int | None = None, keep_fact: bool = False) -> "Explanation":
        """Why it has an answer, the first one if none is given.

        An answer that the graph states is explained as if it did not, unless `keep_fact`: a fact does not explain
        itself. One that nothing else supports is explained as it is.
        """
        row = self._explained(answer)
        explained = self._explanation(row)
        entity = int(self.reached.entities[row])
        itself = self._itself(entity)
        if keep_fact or self.again is None or not len(itself):
            return explained
        unknown = self.again(itself)
        if not unknown.is_reached(entity):
            return replace(explained, needs_itself=True)
        return replace(unknown._explanation(unknown._explained(entity)), with_fact=explained.answer)

    def prediction(self, answer: int) -> Prediction | None:
        """An answer as lists would show it at its place, None where no attention reached it."""
        return self._prediction(self._explained(answer)) if self.is_reached(answer) else None

    def as_unknown(self, answer: int) -> "QueryResult":
        """The same where the graph does not state an answer; with nothing else changed if it states it."""
        itself = self._itself(answer)
        return self.again(itself) if self.again is not None and len(itself) else self

    def states(self, answer: int) -> bool:
        """Whether the graph states an answer."""
        return len(self._itself(answer)) > 0

    def _prediction(self, row: int) -> Prediction:
        fits = self._judged.fits
        rank = 1 + int((fits[:row] | ~fits[row]).sum())  # of those that fit, if it does
        (prediction,) = self._predictions(np.array([row]), rank)
        return prediction

    def _itself(self, answer: int) -> np.ndarray:
        """The edges of the fact that an answer stands for, ascending; none where the graph does not state it."""
        fact = np.array([[self.head, int(self.reached.relations[0]), answer]])
        edges = self.graph.find_edges(*self.graph.either_way(fact).T)
        return np.unique(edges[edges >= 0])

    def _explanation(self, row: int) -> "Explanation":
        """Why it has the answer in a row of what was reached."""
        from dpmpn.explain.flow import AnswerFlow
        from dpmpn.render.formats import Explanation

        explained, fits = self.reached[row : row + 1], self._judged.fits
        prediction = self._prediction(row)
        prior = None if explained.prior is None else float(explained.prior[0])
        flow = AnswerFlow.to(self.flow, int(explained.entities[0]))
        validation = self.known.validation_of(int(self.reached.relations[0]))
        found = self.graph, flow, prior, bool(fits[row]), validation
        return Explanation(self.question, prediction, self.horizon, *found)

    def why_not(self, candidate: int) -> "WhyNot":
        """Where a candidate lost its attention."""
        from dpmpn.explain.why_not import ReachedNodes, why_not
        from dpmpn.render.formats import WhyNot

        found = self.reached.entities, self.reached.scores, self._judged.fits
        reached = ReachedNodes(self.graph, self.horizon, self.head, self.flow, *found)
        return WhyNot(**vars(why_not(reached, candidate)))

    def _predictions(self, rows: np.ndarray, first_rank: int = 1) -> list[Prediction]:
        """Some of what was reached, ranked from a number on."""
        names, answers, judged = self.graph.entities, self.reached[rows], self._judged
        columns = (answers.entities, answers.scores, answers.through_unseen, judged.stated[rows])
        found = zip(*(column.tolist() for column in columns), strict=True)
        predictions = [
            Prediction(
                *(names.name(entity), score, rank, stated == KNOWN),
                *(names.label(entity), through_unseen, HELD_OUT[stated]),
            )
            for rank, (entity, score, through_unseen, stated) in enumerate(found, first_rank)
        ]
        measured = ({name: values[row] for name, values in judged.measured.items()} for row in rows.tolist())
        return [
            prediction if np.isnan(each["probability"]) else replace(prediction, **_plain(each))
            for prediction, each in zip(predictions, measured, strict=True)
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
            return int(self._judged.fits.argmax())
        if not self.is_reached(answer):
            raise DataError(
                f"no attention reached '{names.name(answer)}', so nothing carried it there; "
                "ask why it is not the answer"
            )
        return int(np.flatnonzero(self.reached.entities == answer)[0])
