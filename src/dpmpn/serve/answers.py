"""Results as JSON: numbers have six digits, as the seventh depends on what was asked at the same time."""

import json
from dataclasses import asdict
from typing import Any

from fastapi.responses import Response

from dpmpn.ask.reasoner import Reasoner
from dpmpn.ask.results import QueryResult


def json_answer(value: Any) -> Response:
    """A result as the answer to a request."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Response(text.encode("utf-8", "backslashreplace"), media_type="application/json")


def answered(reasoner: Reasoner, asked: QueryResult, top: int, new: bool) -> dict[str, Any]:
    """A question and its best answers."""
    return {
        "question": asdict(asked.question),
        "answers": [
            {
                "name": each.answer,
                "label": each.label,
                "probability": six_digits(each.probability),
                "rank": each.rank,
                "known": each.known,
                "held_out": each.held_out,
                "through_unseen": six_digits(each.through_unseen),
            }
            for each in asked.answers(top, new)
        ],
    }


def six_digits(value: Any) -> Any:
    """A value with its numbers rounded, whatever it holds."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: six_digits(each) for key, each in value.items()}
    return [six_digits(each) for each in value] if isinstance(value, list | tuple) else value
