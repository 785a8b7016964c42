"""Answers to many questions: one `Predictions` for each, and all of them as one table."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

from dpmpn.ask.results import Predictions
from dpmpn.errors import DataError, WrongType, shown
from dpmpn.wording import counted

if TYPE_CHECKING:
    import polars as pl

_SHOWN = 10  # questions


class PredictionBatch(Sequence[Predictions]):
    """Answers to several questions, in the order they were asked."""

    def __init__(
        self, heads: Sequence[str], relations: Sequence[str], answers: Sequence[Predictions]
    ) -> None:
        self._heads, self._relations, self._answers = tuple(heads), tuple(relations), tuple(answers)

    @overload
    def __getitem__(self, index: int) -> Predictions: ...
    @overload
    def __getitem__(self, index: slice) -> "PredictionBatch": ...
    def __getitem__(self, index: int | slice) -> "Predictions | PredictionBatch":
        if isinstance(index, slice):
            return PredictionBatch(self._heads[index], self._relations[index], self._answers[index])
        return self._answers[index]

    def __len__(self) -> int:
        return len(self._answers)

    def __iter__(self) -> Iterator[Predictions]:
        return iter(self._answers)

    def __repr__(self) -> str:
        lines = [_line(answers) for answers in self._answers[:_SHOWN]]
        more = [f"and {counted(len(self) - _SHOWN, 'more question')}"] if self._answers[_SHOWN:] else []
        return "\n".join([*lines, *more]) or "no questions"

    def _repr_html_(self) -> str:
        """What a notebook shows: the table of all answers."""
        return self.to_frame()._repr_html_()

    def to_frame(self) -> "pl.DataFrame":
        """All answers as a polars data frame: the head and relation asked, then the fields of a prediction."""
        import polars as pl

        frames = [
            answers.to_frame().select(
                pl.lit(head).alias("head"), pl.lit(relation).alias("relation"), pl.all()
            )
            for head, relation, answers in zip(self._heads, self._relations, self._answers, strict=True)
        ]
        return pl.concat(frames) if frames else pl.DataFrame()

    def to_pandas(self) -> Any:
        """The same as a pandas data frame."""
        from dpmpn.ask.results import as_pandas

        return as_pandas(self.to_frame())


def _line(answers: Predictions) -> str:
    first = repr(answers).splitlines()[0].removeprefix("1. ") if answers else "no answers"
    return f"{answers.question}  {first}"


def questions_of(head: Any, relation: Any) -> tuple[list[str], list[str]]:
    """The head and the relation of each question, where one or both of them are several."""
    if isinstance(head, str):
        relations = list(relation)
        heads = [head] * len(relations)
    else:
        heads = list(head)
        relations = [relation] * len(heads) if isinstance(relation, str) else list(relation)
    if len(heads) != len(relations):
        raise DataError(
            f"{len(heads):,} heads and {len(relations):,} relations: give one relation, or one for each head"
        )
    for name, values in (("head", heads), ("relation", relations)):
        for number, value in enumerate(values, start=1):
            if not isinstance(value, str):
                raise WrongType(
                    f"Reasoner.predict: '{name}' {number:,} must be a text, not {shown(value)} ({type(value).__name__})"
                )
    return heads, relations
