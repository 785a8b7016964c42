"""The explorer's page in a real browser, before a real `dpmpn serve` of a tiny family with labels and hostile names."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest

import dpmpn

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = shutil.which("chromium")
IMAGE, RIGHT_TO_LEFT, LONG = "<img src=x onerror=document.title='broken'>", "\u202eאבא", "x" * 300
FACTS = [
    *((f"c{i}", "mother", f"m{i}") for i in range(8)),
    *((f"m{i}", "husband", f"f{i}") for i in range(8)),
    *((f"c{i}", "father", f"f{i}") for i in range(6)),
    (IMAGE, "mother", RIGHT_TO_LEFT),
    (RIGHT_TO_LEFT, "husband", LONG),
    *(("hub", "knows", f"c{i}") for i in range(8)),
    ("hall", "home_of", "club"),
    *(("club", "member", f"one{i}") for i in range(12)),
]
LABELS = [
    *((f"c{i}", f"Child {i}", f"the child of family {i}") for i in range(8)),
    *((f"m{i}", f"Mother {i}", "") for i in range(8)),
    *((f"f{i}", f"Father {i}", "") for i in range(7)),
    ("f7", "Father 7", "whom no fact calls the father"),
]
TINY = {
    "model": "paper",
    "n_dims": 6,
    "n_dims_att": 4,
    "n_steps_in_agnn": 3,
    "n_steps_in_ignn": 1,
    "batch_size": 10,
    "threads": 1,
}


class Opened:
    """The page in the browser, and all it complained of or asked for."""

    def __init__(self, page: "Page", url: str, view: str = "") -> None:
        self.page, self.url_begin = page, url
        self.troubles: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self._hear(message.text))
        page.on("pageerror", lambda error: self._hear(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(f"{url}/{view}")

    def _hear(self, text: str) -> None:
        if not text.startswith("Failed to load resource"):  # what the page is refused it tells itself
            self.troubles.append(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.page, name)

    @property
    def view(self) -> dict[str, str]:
        """What the address says."""
        return {key: values[0] for key, values in parse_qs(urlsplit(self.page.url).query).items()}

    def sees(self, selector: str, text: str | re.Pattern[str] | None = None) -> None:
        """Wait until something is seen, with a text in it."""
        from playwright.sync_api import expect

        found = self.page.locator(selector).first
        expect(found).to_be_visible(timeout=15_000)
        if text is not None:
            expect(found).to_contain_text(text, timeout=15_000)

    def has(self, selector: str, count: int) -> None:
        """Wait until there are so many of something."""
        from playwright.sync_api import expect

        expect(self.page.locator(selector)).to_have_count(count, timeout=15_000)

    def explained(self, label: str) -> None:
        """Wait until an answer is explained."""
        self.sees("#explanation-title", f"Why {label}?")
        self.sees("figure .node")

    def calls(self, route: str) -> int:
        return sum(f"/api/v1/{route}" in url for url in self.requests)

    def focused(self, what: str = "id") -> str:
        return str(self.page.evaluate(f"document.activeElement.{what}"))

    def scrolls_sideways(self) -> bool:
        return bool(self.page.evaluate("document.documentElement.scrollWidth > innerWidth"))


Open = Callable[..., Opened]


@pytest.fixture(scope="session")
def family(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The folder of a trained run, and a file of labels."""
    folder = tmp_path_factory.mktemp("explored")
    labels = folder / "labels.tsv"
    labels.write_text("id\tname\tdescription\n" + "".join("\t".join(row) + "\n" for row in LABELS), "utf-8")
    dataset = dpmpn.dataset_from_tuples(FACTS, test=[("c7", "father", "f7")], name="family")
    dpmpn.Reasoner(**TINY, n_epochs=1).fit(dataset, folder / "run")
    return folder / "run", labels


@pytest.fixture(scope="session")
def explorer(family: tuple[Path, Path]) -> Iterator[str]:
    """The address of `dpmpn serve`."""
    with served(family[0], "--labels", family[1]) as url:
        yield url


@contextmanager
def served(*arguments: object) -> Iterator[str]:
    """The address that `dpmpn serve` prints."""
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed: no page is opened")
    command = [sys.executable, "-m", "dpmpn", "serve", *map(str, arguments)]
    process = subprocess.Popen(
        [*command, "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    said = ""
    while not (found := re.search(r"http://\S+", said)):
        line = process.stdout.readline()
        assert line, said
        said += line
    yield found[0].rstrip("/")
    process.terminate()
    process.wait(20)


@pytest.fixture(scope="module")  # while it is open, no other test can run a loop of its own
def browser() -> "Iterator[Browser]":
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed: no page is opened")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def opened(browser: "Browser", request: pytest.FixtureRequest) -> Iterator[Open]:
    """Opens the page; at the end it must have complained of nothing and asked no other host."""
    pages: list[Opened] = []

    def open_page(view: str = "", url: str | None = None, **context: object) -> Opened:
        url = url or request.getfixturevalue("explorer")
        context = {"reduced_motion": "reduce", "viewport": {"width": 1280, "height": 900}, **context}
        page = browser.new_context(**context).new_page()  # type: ignore[arg-type]
        pages.append(Opened(page, url, view))
        return pages[-1]

    yield open_page
    for page in pages:
        assert page.troubles == []
        others = [url for url in page.requests if not url.startswith((page.url_begin, "blob:"))]
        assert others == []
        page.context.close()
