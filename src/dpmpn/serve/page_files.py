"""The files of the page: read from the package when the server starts, so that a request can reach no other."""

import hashlib
from importlib.resources import files
from typing import NamedTuple

_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".txt": "text/plain; charset=utf-8",
}
INDEX = "index.html"
_SHARED = ("player.js", "player.css")  # with the page of one explanation


class PageFile(NamedTuple):
    """A file as it is sent."""

    content: bytes
    kind: str
    tag: str  # by which a browser knows that it has it already


def page_files() -> dict[str, PageFile]:
    """All files of the page by their names."""
    found = {}
    shared = (files("dpmpn.render").joinpath("page", name) for name in _SHARED)
    for file in (*files("dpmpn.serve").joinpath("page").iterdir(), *shared):
        kind = _KINDS.get(file.name[file.name.rfind(".") :])
        if file.is_file() and kind:
            content = file.read_bytes()
            found[file.name] = PageFile(content, kind, f'"{hashlib.sha256(content).hexdigest()[:32]}"')
    return found
