"""Results as replies: numbers have six digits, as the seventh depends on what was asked at the same time."""

import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from dpmpn.ask.new_answers import MEASURED
from dpmpn.ask.results import QueryResult
from dpmpn.errors import ConfigError, DataError
from dpmpn.explain.explanation import Prediction
from dpmpn.render.decisive_text import decisive_text
from dpmpn.render.formats import FORMATS, Format
from dpmpn.serve.problems import Problem
from dpmpn.wording import six_digits

if TYPE_CHECKING:
    from dpmpn.explain.learnt import LearntRelation
    from dpmpn.reasoner.reasoner import Reasoner
    from dpmpn.render.formats import Explanation

Facts = list[tuple[str, str, str]]


def answers(result: QueryResult, top: int, new: bool, any_role: bool) -> dict[str, Any]:
    """A question and its best answers."""
    found = result.answers(top, new, any_role)
    return {
        "question": asdict(result.question),
        "answers": [_answer(each) for each in found],
        "notes": list(found.notes),
    }


def _answer(each: Prediction) -> dict[str, Any]:
    return {
        "name": each.answer,
        "label": each.label,
        "score": six_digits(each.score),
        **{name: six_digits(getattr(each, name)) for name in MEASURED},
        "rank": each.rank,
        "known": each.known,
        "held_out": each.held_out,
        "through_unseen": six_digits(each.through_unseen),
    }


def explanation(result: QueryResult, answer: int | None) -> dict[str, Any]:
    """Why a question has an answer, the first one if none is named."""
    explained = _explained(result, answer)
    return {"explanation": explained.to_dict(), "text": explained.text()}


def learnt(relation: "LearntRelation") -> dict[str, Any]:
    """What the model has learnt about a relation."""
    from dpmpn.render.learnt import LearntPatterns, relation_record

    return {"learnt": relation_record(relation), "text": LearntPatterns([relation]).text()}


def decisive(reasoner: "Reasoner", result: QueryResult, answer: int | None) -> dict[str, Any]:
    """The facts that decide about an answer, found by asking again."""
    explained = reasoner.with_decisive(_explained(result, answer))
    record = explained.to_dict()
    found = {name: record[name] for name in ("necessary", "sufficient", "decisive")}
    return {**found, "text": decisive_text(explained)}


def what_if(
    reasoner: "Reasoner", question: tuple[int, int, bool], answer: int | None, add: Facts, remove: Facts
) -> dict[str, Any]:
    """What becomes of an answer with some facts more or fewer."""
    try:
        found = reasoner.compared(reasoner.with_facts(add, remove), question, answer)
    except DataError as error:
        raise Problem("not_reached", str(error)) from error
    sides = {"before": found.before, "after": found.after, "first_after": found.first_after}
    return {**{name: each and _answer(each) for name, each in sides.items()}, "text": found.text}


def why_not(result: QueryResult, candidate: int) -> dict[str, Any]:
    """Where a candidate lost its attention."""
    reason = result.why_not(candidate)
    return {"why_not": reason.to_dict(), "text": reason.text()}


def picture(result: QueryResult, answer: int | None, full: bool) -> dict[str, Any]:
    """Why a question has an answer, as the page shows it; the full picture only where it is wanted.

    It is HTML, in which all names are escaped, and what the player moves in it.
    """
    from dpmpn.render.page import draw_fragment, verdict

    explained = _explained(result, answer)
    html, data = draw_fragment(explained, with_full=full)
    names = explained.graph.entities
    subgraphs = {"pruned": explained.pruned, "full": explained.full}
    return {
        "answer": {"name": explained.answer.answer, "label": explained.answer.label},
        "description": names.describe(names.id(explained.answer.answer)),
        "verdict": verdict(explained),
        "html": html,
        "data": data,
        "files": [format.suffix for format in FORMATS.values()],
        # As the API takes them; those in the data are as people read them.
        "names": {view: [node.name for node in subgraphs[view].nodes] for view in data["views"]},
    }


def download(result: QueryResult, answer: int | None, format: Format) -> tuple[bytes, str]:
    """An explanation as a file: what it holds, and its name."""
    explained = _explained(result, answer)
    try:
        content = format.content(explained)
    except ConfigError as error:  # what draws it is not installed here
        raise Problem("not_found", str(error)) from error
    return content, _file_name(explained, format.suffix)


def _explained(result: QueryResult, answer: int | None) -> "Explanation":
    """The explanation of an answer, or the problem that there is nothing to explain."""
    try:
        return result.explain(answer)
    except DataError as error:
        raise Problem("not_reached", str(error)) from error


def _file_name(explained: "Explanation", suffix: str) -> str:
    """A name that every system takes, whatever the entities are called."""
    question = explained.question
    words = "-".join([question.head_label, question.relation_label, explained.answer.label])
    plain = re.sub("[^A-Za-z0-9_]+", "-", words).strip("-")[:80]
    return f"{plain or 'explanation'}.{suffix}"
