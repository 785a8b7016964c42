"""Errors in the one shape of all replies that are not what was asked for: a code, what to do, and near names."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from pydantic import BaseModel
from starlette.exceptions import HTTPException


class _Code(NamedTuple):
    status: int
    example: str = ""  # of a message; none for what no route is described to answer
    near: tuple[str, ...] = ()


CODES = {
    "invalid_request": _Code(422, "top: Input should be greater than or equal to 1"),
    "ambiguous_name": _Code(
        400,
        "'bank' is the label of several: bank_1 (a slope), bank_2 (an institution); "
        "give the identifier of the entity",
        ("bank_1", "bank_2"),
    ),
    "no_inverse": _Code(400, "relation 'has_part' has no inverse in this graph; ask it without inverse"),
    "unauthorised": _Code(401, "this server requires a token; send the header Authorization: Bearer TOKEN"),
    "unknown_entity": _Code(404, "unknown entity 'Serbja'; did you mean 'Serbia'?", ("Serbia",)),
    "unknown_relation": _Code(
        404, "unknown relation 'subregion'; did you mean 'in_subregion'?", ("in_subregion",)
    ),
    "not_reached": _Code(
        404, "no attention reached 'Oceania', so there is nothing to explain; ask why it is not the answer"
    ),
    "not_found": _Code(404),
    "method_not_allowed": _Code(405),
    "too_large": _Code(413, "the body has more than 1,000,000 bytes; send less"),
    "internal": _Code(500, "this server failed to answer; its log says why"),
    "overloaded": _Code(503, "too many questions are waiting; try again in a second"),
    "timeout": _Code(503, "no answer within 30 seconds; try again later, or ask for less"),
}
"""The codes, the status of the replies that carry them, and an example for the description."""

_MEANINGS = {
    400: "The name is not clear, the relation has no inverse, or the request is meant for another host.",
    401: "The token is missing or wrong.",
    404: "There is no such name, or nothing to explain.",
    408: "The body did not come in time.",
    413: "The body is too large.",
    422: "The request is not as described here.",
    500: "A mistake in the server.",
    503: "Too many requests, or no answer in time, or the server is stopping.",
}
_ALWAYS = ("unauthorised", "too_large", "internal", "overloaded", "timeout")
_ELSEWHERE = {400: "invalid_request", 408: "timeout"}  # of a request for another host, and of a slow body
_SOMETIMES = {
    "lookup": ("invalid_request",),
    "entity": ("ambiguous_name", "unknown_entity"),
    "question": ("ambiguous_name", "no_inverse", "unknown_entity", "unknown_relation", "invalid_request"),
    "relation": ("ambiguous_name", "no_inverse", "unknown_relation", "invalid_request"),
    "reached": ("not_reached",),
}

_SHOWN = 300  # letters of a message
_RETRY_AFTER = {"Retry-After": "1"}


class ErrorBody(BaseModel):
    """What was wrong: a code for programs, a sentence for people, names that were perhaps meant."""

    code: str
    message: str
    near: list[str]


class ProblemBody(BaseModel):
    """The shape of every error."""

    error: ErrorBody


class Problem(Exception):
    """Why a request has no other answer, with a sentence that says what to do."""

    def __init__(
        self,
        code: str,
        message: str,
        near: Sequence[str] = (),
        headers: Mapping[str, str] | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code, self.near = code, list(near)
        self.headers, self.status = dict(headers or {}), status or CODES[code].status

    def plain(self) -> dict[str, object]:
        """What the answer holds below "error"."""
        return {"code": self.code, "message": _sendable(str(self)), "near": [*map(_sendable, self.near)]}

    def response(self) -> Response:
        """The answer."""
        return json_reply({"error": self.plain()}, self.status, self.headers)


def json_reply(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A result, or an error, as the reply to a request."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Response(text.encode("utf-8", "backslashreplace"), status, headers, "application/json")


def overloaded(what: str) -> Problem:
    """The answer to a request that would have to wait for too many others."""
    return Problem("overloaded", f"{what}; try again in a second", headers=_RETRY_AFTER)


def refusals(*groups: str) -> dict[int | str, dict[str, Any]]:
    """The errors that a route can answer with, with an example of each."""
    examples = {status: {code: _example(code)} for status, code in _ELSEWHERE.items()}
    for code in (*_ALWAYS, *(code for group in groups for code in _SOMETIMES[group])):
        examples.setdefault(CODES[code].status, {})[code] = _example(code)
    return {
        status: {
            "model": ProblemBody,
            "description": _MEANINGS[status],
            "content": {"application/json": {"examples": some}},
        }
        for status, some in sorted(examples.items())
    }


def _example(code: str) -> dict[str, Any]:
    _, message, near = CODES[code]
    return {"value": {"error": {"code": code, "message": message, "near": list(near)}}}


def answer_problems(app: FastAPI) -> None:
    """Give all errors of an application the one shape, also those of the framework."""
    app.add_exception_handler(Problem, lambda _, error: error.response())
    app.add_exception_handler(RequestValidationError, _invalid)  # type: ignore[arg-type]
    app.add_exception_handler(HTTPException, _refused)  # type: ignore[arg-type]
    app.add_exception_handler(Exception, _failed)


async def _invalid(_: Request, error: RequestValidationError) -> Response:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"][1:])
    message = str(first["msg"]).removeprefix("Value error, ")
    if first["type"] == "json_invalid":
        where, message = "", "the body is not JSON; send an object with Content-Type: application/json"
    elif first["loc"] == ("body",):
        where, message = "", "send a JSON object with Content-Type: application/json"
    elif first["type"] == "extra_forbidden":
        message = "there is no such field; see /api/openapi.json for those there are"
    return Problem("invalid_request", f"{where}: {message}" if where else message).response()


async def _refused(request: Request, error: HTTPException) -> Response:
    if error.status_code == 404:
        return Problem(
            "not_found", f"there is nothing at {request.url.path}; see /api/openapi.json for what there is"
        ).response()
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "GET")
        return Problem(
            "method_not_allowed", f"use {allowed} for {request.url.path}", headers=error.headers
        ).response()
    # All that is left is a body that cannot be read as JSON.
    return Problem("invalid_request", "the body cannot be read as JSON; correct it").response()


async def _failed(_: Request, error: Exception) -> Response:
    """The traceback goes to the log, not to the client."""
    return Problem("internal", "this server failed to answer; its log says why").response()


def _sendable(text: str) -> str:
    """A text that UTF-8 can hold, and not as long as a name may be."""
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
