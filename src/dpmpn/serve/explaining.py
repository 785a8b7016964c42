"""Explanations as answers to requests: told, as data, and as files to download."""

import re
from typing import TYPE_CHECKING, Any

from dpmpn.ask.results import QueryResult
from dpmpn.errors import ConfigError, DataError
from dpmpn.serve.answers import six_digits
from dpmpn.serve.problems import Problem

if TYPE_CHECKING:
    from dpmpn.render.explanation import Explanation
    from dpmpn.render.formats import Format


def explained(asked: QueryResult, answer: int | None) -> dict[str, Any]:
    """Why a question has an answer, the first one if none is named."""
    explanation = explanation_of(asked, answer)
    return {"explanation": explanation.to_dict(), "text": explanation.text()}


def told_why_not(asked: QueryResult, candidate: int) -> dict[str, Any]:
    """Where a candidate lost its attention."""
    reason = asked.why_not(candidate)
    return {"why_not": six_digits(reason.to_dict()), "text": reason.text()}


def explanation_of(asked: QueryResult, answer: int | None) -> "Explanation":
    """The explanation of an answer, or the problem that there is nothing to explain."""
    try:
        return asked.explain(answer)
    except DataError as error:
        raise Problem("not_reached", str(error)) from error


def download(asked: QueryResult, answer: int | None, format: "Format") -> tuple[bytes, str]:
    """An explanation as a file: what it holds, and its name."""
    explanation = explanation_of(asked, answer)
    try:
        content = format.files(explanation)[format.main]
    except ConfigError as error:  # what draws it is not installed here
        raise Problem("not_found", str(error)) from error
    return content, _file_name(explanation, format.suffix)


def _file_name(explanation: "Explanation", suffix: str) -> str:
    """A name that every system takes, whatever the entities are called."""
    question = explanation.question
    names = "-".join([question.head_label, question.relation_label, explanation.answer.label])
    plain = re.sub("[^A-Za-z0-9_]+", "-", names).strip("-")[:80]
    return f"{plain or 'explanation'}.{suffix}"
