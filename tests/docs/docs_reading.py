"""The pages of the documentation, read as a Markdown parser reads them: blocks of code, links, headings, commands."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from _generators.pages import filled
from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    page
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").glob("*.md")]
    if "_build" not in page.parts
)
_PARSER = MarkdownIt("commonmark").enable("table")


def page_name(page: Path) -> str:
    """How a page is called in reports of tests."""
    return str(page.relative_to(ROOT))


@cache
def tokens(page: Path) -> list[Token]:
    """A page with all that is made from the code, as tokens."""
    return _PARSER.parse(filled(page.read_text("utf-8")))


def _inline(page: Path) -> Iterator[Token]:
    for token in tokens(page):
        yield from token.children or ()


@dataclass(frozen=True)
class Block:
    """A block of code: its language, "" where none is said, and its text."""

    language: str
    text: str


def blocks(page: Path) -> list[Block]:
    """All blocks of code of a page, fenced or indented."""
    return [
        Block(token.info.strip(), token.content)
        for token in tokens(page)
        if token.type in ("fence", "code_block")
    ]


def python_blocks(page: Path) -> list[str]:
    """The blocks of Python of a page."""
    return [block.text for block in blocks(page) if block.language == "python"]


def spans(page: Path) -> list[str]:
    """All pieces of code within sentences."""
    return [token.content for token in _inline(page) if token.type == "code_inline"]


def links(page: Path) -> list[str]:
    """Where the links and pictures of a page lead."""
    found = [token.attrGet("href") or token.attrGet("src") for token in _inline(page)]
    return [str(target) for target in found if target]


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors that code hosts and the site give to the headings of a page."""
    found: list[str] = []
    every = tokens(page)
    for at, token in enumerate(every):
        if token.type == "heading_open":
            text = "".join(child.content for child in every[at + 1].children or ())
            slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            repeated = sum(re.fullmatch(re.escape(slug) + r"(-\d+)?", other) is not None for other in found)
            found.append(f"{slug}-{repeated}" if repeated else slug)
    return frozenset(found)


def typed_lines(page: Path) -> list[str]:
    """Everything a page tells to type: lines of blocks and pieces of code that begin with a program's name."""
    lines = [line for block in blocks(page) for line in block.text.replace("\\\n", " ").splitlines()]
    typed = [line.strip().removeprefix("$ ").split("  #")[0].strip() for line in [*lines, *spans(page)]]
    programs = ("dpmpn ", "make ", "python benchmarks/", "python examples/")
    return [line for line in typed if line.startswith(programs)]


def words(line: str) -> list[str]:
    """A line that is typed, as words; brackets around what may be left out do not count."""
    plain = line.replace("[", "").replace("]", "")
    try:
        return shlex.split(plain)
    except ValueError:  # an apostrophe in a sentence
        return plain.split()
