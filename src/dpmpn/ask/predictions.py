"""Answers to a question: what was answered, how probable it is, and why."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, overload

if TYPE_CHECKING:
    import polars as pl

    from dpmpn.ask.asked import Asked
    from dpmpn.explain.explanation import Explanation
    from dpmpn.explain.paths import Path
    from dpmpn.explain.why_not import WhyNot


@dataclass(frozen=True)
class Prediction:
    """One answer to a question."""

    answer: str
    probability: float
    rank: int  # place in the list of answers, counted from 1
    known: bool  # whether the graph or the training facts state it already
    label: str  # what to show: the answer's label, or its name where it has none
    through_unseen: float  # part of its attention that came through entities the model was not trained on
    held_out: str = ""  # "valid" or "test" where that split states it, and the graph does not


class Predictions(Sequence[Prediction]):
    """Answers to a question, the most probable first."""

    def __init__(self, answers: Sequence[Prediction], asked: "Asked") -> None:
        self._answers, self._asked = tuple(answers), asked

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
        graph = self._asked.graph
        entity = graph.entities.id(answer if answer is not None else self._answers[0].answer)
        return strongest_paths(AnswerFlow.to(self._asked.flow, entity), graph, top)

    def is_reached(self, name: str) -> bool:
        """Whether attention reached an entity, so that it is an answer, if perhaps one far down the list."""
        return self._asked.is_reached(self._asked.graph.entities.id(name))

    def explain(self, answer: str | None = None) -> "Explanation":
        """Why an answer was given, the first one if none is named; any that attention reached can be explained."""
        return self._asked.explain(answer)

    def why_not(self, candidate: str) -> "WhyNot":
        """Where an entity that is not the first answer lost its attention."""
        return self._asked.why_not(candidate)


def _line(prediction: Prediction) -> str:
    p = prediction
    name = p.label if p.label == p.answer else f"{p.label} ({p.answer})"
    unseen = f"  {p.through_unseen:.0%} through unseen entities" if p.through_unseen >= 0.005 else ""
    stated = "  known" if p.known else "  held out" if p.held_out else ""
    return f"{p.rank}. {name}  {p.probability:.3f}{stated}{unseen}"
