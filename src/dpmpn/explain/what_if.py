"""What becomes of an answer when the graph has some facts fewer, or more: its rank and its probability."""

from dataclasses import dataclass

from dpmpn.explain.explanation import Prediction, Question
from dpmpn.wording import one_line, probability_shown, score_shown


@dataclass(frozen=True)
class WhatIf:
    """An answer before and after a change of the graph."""

    question: Question
    answer: str
    label: str  # what to show for it
    before: Prediction | None  # None where no attention reached it
    after: Prediction | None
    first_after: Prediction | None  # the first answer then; None without any

    @property
    def text(self) -> str:
        """The change as a sentence."""
        name = one_line(self.label)
        if self.before is None and self.after is None:
            return f"{name}: no attention reaches it, before or after."
        now = "no attention reaches it" if self.after is None else _shown(self.after)
        said = f"{name}: {now}; before, {'no attention reached it' if self.before is None else _shown(self.before)}."
        first = self.first_after
        if first is None or first.answer == self.answer:
            return said
        return f"{said} The first answer is {one_line(first.label)}, {_shown(first, with_rank=False)}."

    def __str__(self) -> str:
        return self.text


def _shown(prediction: Prediction, with_rank: bool = True) -> str:
    rank = "the first answer" if prediction.rank == 1 else f"number {prediction.rank:,}"
    worth = f"score {score_shown(prediction.score)}"
    if prediction.probability is not None:
        worth = f"probability {probability_shown(prediction.probability)}, {worth}"
    return f"{rank}, with {worth}" if with_rank else f"with {worth}"
