"""Puts what is made from the code into the pages: a comment `<!-- from the code: NAME -->` stands for it."""

import re
from collections.abc import Callable
from pathlib import Path

from _generators.commands import commands_reference
from _generators.names import names_reference
from _generators.plan import house_plan, rooms_table
from _generators.settings import presets_reference, settings_reference

DOCS = Path(__file__).parents[1]


def _index_first(page: Path) -> tuple[bool, Path]:
    return page.stem != "index", page


def results_toctree() -> str:
    """The part of the contents that grows with each result: all pages of `exhibits`, whichever there are."""
    found = [*DOCS.glob("compare*.md"), *sorted(DOCS.glob("exhibits/*.md"), key=_index_first)]
    pages = [
        "results",
        "../benchmarks/README",
        *(str(page.relative_to(DOCS).with_suffix("")) for page in found),
    ]
    return "\n".join(["```{toctree}", ":hidden:", ":caption: Results", "", *pages, "```"])


GENERATORS: dict[str, Callable[[], str]] = {
    "commands": commands_reference,
    "settings": settings_reference,
    "presets": presets_reference,
    "public names": names_reference,
    "plan": house_plan,
    "rooms": rooms_table,
    "pages of results": results_toctree,
}
_PLACE = re.compile(r"^<!-- from the code: (.+) -->$", re.MULTILINE)


def filled(text: str) -> str:
    """A page with every such comment replaced; one that nothing is made for is a KeyError."""
    return _PLACE.sub(lambda place: GENERATORS[place[1]](), text)
