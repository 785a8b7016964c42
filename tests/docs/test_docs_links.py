"""Links of all pages lead somewhere, to the heading they name."""

from pathlib import Path
from urllib.parse import unquote

import pytest
from docs_reading import PAGES, ROOT, anchors, links, page_name


def broken_links(page: Path, root: Path = ROOT) -> list[str]:
    """The links of a page that lead nowhere, or out of the repository."""
    return [link for link in links(page) if not is_elsewhere(link) and not leads_somewhere(page, link, root)]


def is_elsewhere(link: str) -> bool:
    return link.startswith(("http://", "https://", "mailto:"))


def leads_somewhere(page: Path, link: str, root: Path) -> bool:
    path, _, anchor = unquote(link).partition("#")
    target = (page.parent / path).resolve() if path else page
    return target.is_relative_to(root) and target.exists() and (not anchor or anchor in anchors(target))


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_links_lead_somewhere(page: Path) -> None:
    assert not broken_links(page)


def test_links_that_lead_nowhere_are_found(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# Here\n")
    page = tmp_path / "page.md"
    page.write_text(
        "[a](other.md#here) [b](other.md#there) [c](none.md) ![d](none.png) [e](..) [f](https://f.org)\n"
    )
    assert broken_links(page, tmp_path) == ["other.md#there", "none.md", "none.png", ".."]


def test_headings_that_repeat_have_anchors_of_their_own(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One: `two`\n\n## Again\n\n## Again\n")
    assert anchors(page) == {"one-two", "again", "again-1"}
