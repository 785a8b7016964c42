"""The OpenAPI description: examples for all bodies and errors, and the format of explanations."""

import json
from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI

from dpmpn.serve.bodies import ProblemBody
from dpmpn.serve.problems import STATUS

DESCRIPTION = """\
Names of entities and relations travel in bodies and queries, never in paths: they may hold anything. Where a name is
expected, its label will do, and so will another spelling of its case.

Every error has the same shape: `{"error": {"code", "message", "near"}}`. The message says what to do; `near` holds
names that were perhaps meant. After 503 with the code `overloaded`, try again when `Retry-After` says so."""

_EXAMPLES: dict[str, dict[str, Any]] = {
    "invalid_request": {"message": "top: Input should be greater than or equal to 1", "near": []},
    "ambiguous_name": {
        "message": "'bank' is the label of several: bank_1 (a slope), bank_2 (an institution); "
        "give the identifier of the entity",
        "near": ["bank_1", "bank_2"],
    },
    "no_inverse": {
        "message": "relation 'has_part' has no inverse in this graph; ask it without inverse",
        "near": [],
    },
    "unauthorised": {
        "message": "this server needs its token; send the header Authorization: Bearer TOKEN",
        "near": [],
    },
    "unknown_entity": {
        "message": "unknown entity 'Serbja'; did you mean 'Serbia'?",
        "near": ["Serbia"],
    },
    "unknown_relation": {
        "message": "unknown relation 'subregion'; did you mean 'in_subregion'?",
        "near": ["in_subregion"],
    },
    "not_reached": {
        "message": "no attention reached 'Oceania', so nothing carried it there; ask why not this one instead",
        "near": [],
    },
    "timeout": {
        "message": "no answer within 30 seconds; try again later, or ask for less",
        "near": [],
    },
    "too_large": {"message": "the body has more than 1,000,000 bytes; send less", "near": []},
    "internal": {"message": "this server failed to answer; its log says why", "near": []},
    "overloaded": {"message": "too many questions are waiting; try again in a second", "near": []},
}
_SAID = {
    400: "The name is not clear, the relation has no inverse, or the request is meant for another host.",
    401: "The token is missing or wrong.",
    404: "There is no such name, or nothing to explain.",
    408: "The body did not come in time.",
    413: "The body is too large.",
    422: "The request is not as described here.",
    500: "A mistake in the server.",
    503: "Too many requests, or no answer in time, or the server is stopping.",
}
_ALWAYS: dict[int, tuple[str, ...]] = {
    400: ("invalid_request",),
    401: ("unauthorised",),
    408: ("timeout",),
    413: ("too_large",),
    500: ("internal",),
    503: ("overloaded", "timeout"),
}
_SOMETIMES: dict[str, dict[int, tuple[str, ...]]] = {
    "lookup": {422: ("invalid_request",)},
    "entity": {400: ("ambiguous_name",), 404: ("unknown_entity",)},
    "question": {
        400: ("ambiguous_name", "no_inverse"),
        404: ("unknown_entity", "unknown_relation"),
        422: ("invalid_request",),
    },
    "reached": {404: ("not_reached",)},
    "many": {422: ("invalid_request",)},
}


def refusals(*kinds: str) -> dict[int | str, dict[str, Any]]:
    """The errors that a route can answer with, with an example of each."""
    codes: dict[int, list[str]] = {}
    for known in (_ALWAYS, *(_SOMETIMES[kind] for kind in kinds)):
        for status, some in known.items():
            codes.setdefault(status, []).extend(some)
    return {
        status: {
            "model": ProblemBody,
            "description": _SAID[status],
            "content": {"application/json": {"examples": dict(_examples(some))}},
        }
        for status, some in sorted(codes.items())
    }


def describe(app: FastAPI, has_token: bool) -> None:
    """Complete the description of an application: the format of explanations, the codes, the token."""
    plain = app.openapi

    def complete() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _completed(plain(), has_token)
        return app.openapi_schema

    app.openapi = complete  # type: ignore[method-assign]


def _examples(codes: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    for code in dict.fromkeys(codes):
        yield code, {"value": {"error": {"code": code, **_EXAMPLES[code]}}}


def _completed(description: dict[str, Any], has_token: bool) -> dict[str, Any]:
    from dpmpn.render.record import schema

    schemas = description["components"]["schemas"]
    # The parts of the format keep their names; references to them move along.
    record = json.loads(json.dumps(schema()).replace("#/$defs/", "#/components/schemas/explanation_"))
    for name, part in record.pop("$defs").items():
        schemas[f"explanation_{name}"] = part
    for key in ("$schema", "$id"):
        record.pop(key, None)
    schemas["explanation"] = record
    schemas["Explained"]["properties"]["explanation"] = {"$ref": "#/components/schemas/explanation"}
    schemas["WhyNotTold"]["properties"]["why_not"] = {"$ref": "#/components/schemas/explanation_why_not"}
    schemas["ErrorBody"]["properties"]["code"] = {"type": "string", "enum": sorted(STATUS)}
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    if has_token:
        description["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        for path, methods in description["paths"].items():
            if path.startswith("/api") or path == "/metrics":
                for operation in methods.values():
                    operation["security"] = [{"token": []}]
    return description
