"""Errors in the one shape of all answers that are not what was asked for: a code, what to do, and near names."""

import json
from collections.abc import Mapping, Sequence

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

STATUS = {
    "invalid_request": 422,
    "ambiguous_name": 400,
    "no_inverse": 400,
    "unauthorised": 401,
    "unknown_entity": 404,
    "unknown_relation": 404,
    "not_reached": 404,
    "not_found": 404,
    "method_not_allowed": 405,
    "too_large": 413,
    "internal": 500,
    "overloaded": 503,
    "timeout": 503,
}
"""The codes, and the status of the answers that carry them."""

_SHOWN = 300  # letters of a message
RETRY_AFTER = {"Retry-After": "1"}


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
        self.headers, self.status = dict(headers or {}), status or STATUS[code]

    def plain(self) -> dict[str, object]:
        """What the answer holds below "error"."""
        return {"code": self.code, "message": _sendable(str(self)), "near": [*map(_sendable, self.near)]}

    def response(self) -> Response:
        """The answer."""
        content = json.dumps({"error": self.plain()}, ensure_ascii=False).encode()
        return Response(content, self.status, self.headers, "application/json")


def overloaded(what: str) -> Problem:
    """The answer to a request that would have to wait for too many others."""
    return Problem("overloaded", f"{what}; try again in a second", headers=RETRY_AFTER)


def answer_problems(app: FastAPI) -> None:
    """Give all errors of an application the one shape, also those of the framework."""
    app.add_exception_handler(Problem, lambda _, error: error.response())  # type: ignore[arg-type,union-attr,return-value]
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
