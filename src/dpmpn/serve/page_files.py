"""The files of the page: read from the package when the server starts, so that a request can reach no other."""

import hashlib
from importlib.resources import files
from typing import NamedTuple

from fastapi import FastAPI, Request
from fastapi.responses import Response

from dpmpn.serve.problems import Problem

_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".txt": "text/plain; charset=utf-8",
}
_INDEX = "index.html"
_SHARED = ("player.js", "player.css")  # with the page of one explanation


class _File(NamedTuple):
    content: bytes
    media_type: str
    tag: str  # by which a browser knows that it has it already


def add_page(app: FastAPI) -> None:
    """Serve the page at /, and its files below /page/."""
    found = _files()

    async def page(request: Request) -> Response:
        file = found.get(request.path_params.get("name", _INDEX))
        if file is None:
            raise Problem("not_found", "the page has no such file; open /")
        headers = {"Cache-Control": "no-cache", "ETag": file.tag}
        if request.headers.get("if-none-match") == file.tag:
            return Response(status_code=304, headers=headers)
        return Response(file.content, headers=headers, media_type=file.media_type)

    app.add_route("/", page, ["GET"], include_in_schema=False)
    app.add_route("/page/{name}", page, ["GET"], include_in_schema=False)


def _files() -> dict[str, _File]:
    """All files of the page by their names."""
    found = {}
    shared = (files("dpmpn.render").joinpath("page", name) for name in _SHARED)
    for file in (*files("dpmpn.serve").joinpath("page").iterdir(), *shared):
        media_type = _MEDIA_TYPES.get(file.name[file.name.rfind(".") :])
        if file.is_file() and media_type:
            content = file.read_bytes()
            found[file.name] = _File(content, media_type, f'"{hashlib.sha256(content).hexdigest()[:32]}"')
    return found
