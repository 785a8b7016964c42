"""An explanation as the page shows it: words and pictures in HTML, and what the player moves in them."""

from typing import TYPE_CHECKING, Any

from dpmpn.ask.results import QueryResult
from dpmpn.serve.explaining import explanation_of

if TYPE_CHECKING:
    from dpmpn.render.explanation import Explanation


def pictured(asked: QueryResult, answer: int | None, full: bool) -> dict[str, Any]:
    """Why a question has an answer, the first one if none is named; the full picture only where it is wanted."""
    return picture_of(explanation_of(asked, answer), full)


def picture_of(explanation: "Explanation", full: bool) -> dict[str, Any]:
    """The picture of an explanation; in its HTML all names are escaped."""
    from dpmpn.render.formats import FORMATS
    from dpmpn.render.page import draw_fragment, verdict

    html, data = draw_fragment(explanation, with_full=full)
    names = explanation.graph.entities
    subgraphs = {"pruned": explanation.pruned, "full": explanation.full}
    return {
        "answer": {"name": explanation.answer.answer, "label": explanation.answer.label},
        "description": names.describe(names.id(explanation.answer.answer)),
        "verdict": verdict(explanation),
        "html": html,
        "data": data,
        "files": [format.suffix for format in FORMATS.values()],
        # As they are asked for; those in the data are as they are read.
        "names": {view: [node.name for node in subgraphs[view].nodes] for view in data["views"]},
    }
