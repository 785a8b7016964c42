"""The site is whole, holds every page, and loads nothing from another host."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from docs_reading import PAGES, ROOT

CHROMIUM = shutil.which("chromium")
LOADING = {"src", "srcset", "data", "poster", "action", "xlink:href"}  # attributes that make a browser load
LINKS_THAT_LOAD = {"stylesheet", "icon", "preload", "prefetch", "preconnect", "dns-prefetch", "manifest"}


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """A folder on an address of this machine."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class Loads(HTMLParser):
    """What a page makes a browser load."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.found += [value for name, value in values.items() if name in LOADING]
        self.found += re.findall(r"url\(([^)]*)\)", values.get("style", ""))
        if tag == "link" and LINKS_THAT_LOAD & set(values.get("rel", "").split()):
            self.found.append(values.get("href", ""))


def is_foreign(address: str) -> bool:
    return re.match(r"\s*['\"]?(?:[a-z]+:)?//", address) is not None


def test_every_page_is_there(site: Path) -> None:
    for page in PAGES:
        assert (site / page.relative_to(ROOT).with_suffix(".html")).is_file()
    assert "docs/index.html" in (site / "index.html").read_text("utf-8")


def test_pages_load_nothing_from_another_host(site: Path) -> None:
    for page in site.rglob("*.html"):
        loads = Loads(page.read_text("utf-8")).found
        assert not [address for address in loads if is_foreign(address)], page.name
    for style in site.rglob("*.css"):
        text = style.read_text("utf-8")
        named = re.findall(r"url\(([^)]*)\)", text) + re.findall(r"@import\s+([^;]*)", text)
        assert not [address for address in named if is_foreign(address)], style.name


def test_foreign_addresses_are_told_apart() -> None:
    page = '<link rel=stylesheet href="//a.org/x.css"><a href="https://b.org">b</a><img src="c.png" style="x:url(http://d.org)">'
    assert [address for address in Loads(page).found if is_foreign(address)] == [
        "//a.org/x.css",
        "http://d.org",
    ]


def test_formulas_are_drawn_by_the_browser(site: Path) -> None:
    html = (site / "docs" / "how-it-works.html").read_text("utf-8")
    assert html.count("<math ") > 20
    assert not [address for address in Loads(html).found if "mathjax" in address.lower()]


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_a_browser_opens_and_searches_it(site: Path) -> None:
    from playwright.sync_api import expect, sync_playwright

    with served(site) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        requests: list[str] = []
        errors: list[str] = []
        page.on("request", lambda request: requests.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"{address}/index.html")
        expect(page.get_by_role("heading", name="dpmpn")).to_be_visible()  # led on to docs/index.html
        page.goto(f"{address}/docs/architecture.html")
        expect(page.locator("svg.house")).to_be_visible()
        page.goto(f"{address}/search.html?q=horizon")
        expect(page.locator("#search-results li").first).to_be_visible()
        browser.close()
    assert not errors
    assert not [url for url in requests if not url.startswith((address, "data:"))]
