"""A frame of questions becomes a frame of answers: one row an answer, after the columns of its question."""

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from dpmpn.ask.answer_files import Answerer
from dpmpn.ask.question_files import ANSWER_COLUMNS
from dpmpn.ask.results import as_pandas
from dpmpn.errors import DataError, shown

if TYPE_CHECKING:
    from dpmpn.reasoner.reasoner import Reasoner

_NAMES = ("head", "relation")
_INVERSE = "inverse"
_POSITION = "query"


def is_frame(value: Any) -> bool:
    """Whether a value is a data frame of polars or pandas."""
    return isinstance(value, pl.DataFrame) or _is_pandas(value)


def answered_frame(
    reasoner: "Reasoner", questions: Any, top: int, inverse: bool, new: bool, any_role: bool
) -> Any:
    """The questions, each with its best answers, as a frame of the same library; `query` counts them from 1.

    A question without answers keeps a row, whose answer is empty.
    """
    frame = _as_polars(questions)
    ids = [
        reasoner.question_ids(head, relation, backwards)
        for head, relation, backwards in zip(*_texts(frame), _directions(frame, inverse), strict=True)
    ]
    heads, relations = (np.array([question[i] for question in ids], np.int64) for i in range(2))
    try:
        answers = Answerer(reasoner, top, new, any_role=any_role).answer(heads, relations)
    finally:
        reasoner.engine.close()
    answers = answers.with_columns(pl.col("position") + 1).rename({"position": _POSITION})
    numbered = frame.with_columns(pl.int_range(1, len(frame) + 1, dtype=pl.Int64).alias(_POSITION))
    joined = numbered.select(_POSITION, pl.exclude(_POSITION)).join(
        answers, on=_POSITION, how="left", maintain_order="left_right"
    )
    return as_pandas(joined) if _is_pandas(questions) else joined


def _is_pandas(value: Any) -> bool:
    """Whether a value is a frame of pandas, which is not imported to find out."""
    kind = type(value)
    return kind.__name__ == "DataFrame" and kind.__module__.partition(".")[0] == "pandas"


def _as_polars(questions: Any) -> pl.DataFrame:
    columns = [str(name) for name in questions.columns]
    for name in _NAMES:
        if name not in columns:
            raise DataError(
                f"the frame of questions has no column '{name}' among {columns}; name its columns head and relation"
            )
    for name in columns:
        if columns.count(name) > 1:
            raise DataError(f"the frame of questions has two columns '{name}'; rename or drop one")
        if name in ANSWER_COLUMNS:
            raise DataError(f"a column '{name}' would clash with that of the answers; rename it")
    if isinstance(questions, pl.DataFrame):
        return questions
    # Values are taken one by one: pyarrow need not be there, and a column may hold values of several kinds.
    values = {name: questions.iloc[:, at].tolist() for at, name in enumerate(columns)}
    return pl.DataFrame({name: pl.Series(name, column, strict=False) for name, column in values.items()})


def _texts(frame: pl.DataFrame) -> tuple[list[str], list[str]]:
    """The heads and the relations, all of which must be texts."""
    for name in _NAMES:
        for row, value in enumerate(frame[name].to_list(), start=1):
            if not isinstance(value, str) or not value.strip():
                raise DataError(f"row {row:,} of the questions: the {name} is {shown(value)}; give it a name")
    return frame["head"].to_list(), frame["relation"].to_list()


def _directions(frame: pl.DataFrame, inverse: bool) -> list[bool]:
    """Whether each question is asked backwards: by its column, if there is one, and else all alike."""
    if _INVERSE not in frame.columns:
        return [inverse] * len(frame)
    if inverse:
        raise DataError("the frame of questions has a column 'inverse' already; leave out inverse=True")
    if frame[_INVERSE].dtype != pl.Boolean or frame[_INVERSE].null_count():
        raise DataError("the column 'inverse' of the questions must hold True or False in each row")
    return frame[_INVERSE].to_list()
