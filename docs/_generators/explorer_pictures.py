"""Records the explorer for the README and the documentation: python docs/_generators/explorer_pictures.py

Starts `dpmpn serve demo`, the trained run that comes with the package, on a free port, and drives the real page in
Chromium from a name to the explained answer. The screenshots become docs/images/explorer.webp, which moves, and its
first picture docs/images/explorer.png. Run the command again whenever the page has changed; it takes half a minute and
needs Chromium and the packages of `pip install 'dpmpn[test]'`. `--frames DIR` keeps every screenshot, too.
"""

import argparse
import io
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

IMAGES = Path(__file__).parents[1] / "images"
QUESTION = ("Serbia", "in_subregion")
WIDTH, HEIGHT = 1344, 1060  # wide enough for the page to put the paths beside the picture
STEP = 1700  # the page plays a step in so many milliseconds
MOMENTS = (80, 240, 400, 560, 720, 880, 1040)  # of a step, in milliseconds, that are recorded
AFTER = (80, 400)  # the same, once the answer has its attention and little moves any more

# Sets everything that moves to a moment, however long a screenshot takes. What would have ended by then is ended.
SEEK = """(moment) => document.getAnimations().forEach((moving) => {
  if (moment >= moving.effect.getComputedTiming().endTime) return moving.finish();
  moving.pause();
  moving.currentTime = moment;
})"""


@dataclass
class Film:
    """Screenshots, and for how many milliseconds each is shown."""

    page: Page
    frames: list[Image.Image] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)

    def take(self, length: int, moment: float = 2000) -> None:
        """A screenshot that is shown for some milliseconds."""
        self.page.evaluate(SEEK, moment)
        picture = Image.open(io.BytesIO(self.page.screenshot(caret="initial"))).convert("RGB")
        self.frames.append(picture)
        self.lengths.append(length)


@contextmanager
def explorer() -> Iterator[str]:
    """The address of the explorer, which runs meanwhile."""
    command = [sys.executable, "-m", "dpmpn", "serve", "demo", "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = ""
    try:
        while not (found := re.search(r"http://\S+", said)):
            line = server.stdout.readline() if server.stdout else ""
            if not line:
                raise SystemExit(said)
            said += line
        yield found[0].rstrip("/")
    finally:
        server.terminate()
        server.wait(20)


def record(page: Page, url: str) -> Film:
    """The whole film: the result, as a first picture that makes sense alone; then how one comes to it."""
    head, relation = QUESTION
    film = Film(page)
    show_result(page, f"{url}/?head={head}&relation={relation}")
    film.take(1500)
    type_question(film, url)
    show_result(page)
    page.mouse.move(1, 1)
    film.take(1800)
    play(film)
    page.click("#whole", force=True)
    page.click("[data-path='0']", force=True)
    page.evaluate("document.activeElement.blur()")
    film.take(3000)
    return film


def show_result(page: Page, url: str | None = None) -> None:
    """Wait until an answer is explained."""
    if url:
        page.goto(url)
    page.wait_for_selector("#explanation figure .node")
    page.wait_for_timeout(400)


def type_question(film: Film, url: str) -> None:
    """From the first letter to the press of Ask."""
    head, relation = QUESTION
    page = film.page
    page.goto(url)
    page.wait_for_selector("#examples button, #examples a")
    film.take(900)
    page.focus("#head")
    for letter in head[:4]:
        page.keyboard.type(letter)
        page.wait_for_timeout(400)  # the server names what begins like this
        film.take(160)
    film.lengths[-1] = 700
    page.keyboard.press("ArrowDown")
    film.take(300)
    page.keyboard.press("Enter")
    page.wait_for_timeout(500)
    film.take(400)
    page.focus("#relation")
    page.keyboard.type(relation[:6])
    page.wait_for_timeout(400)
    film.take(900)
    page.keyboard.press("ArrowDown")
    film.take(300)
    page.keyboard.press("Enter")
    page.wait_for_timeout(300)
    if not page.query_selector("#explanation figure"):
        film.take(300)
        page.click("#submit")


def play(film: Film) -> None:
    """Every step of the reasoning, at some of its moments."""
    page = film.page
    page.clock.install()
    steps = int(page.get_attribute("#step", "max") or 0)
    page.click("#play", force=True)
    page.mouse.move(1, 1)
    page.evaluate("document.activeElement.blur()")
    film.take(700)
    for step in range(1, steps + 1):
        page.clock.run_for(STEP)
        moments = MOMENTS if step <= steps // 2 else AFTER
        for moment in moments:
            film.take(1120 // len(MOMENTS) if moments is MOMENTS else 350, moment)
    film.lengths[-1] = 900


def save(film: Film, folder: Path) -> list[Path]:
    """The film without loss of colours, and its first picture."""
    moving, still = folder / "explorer.webp", folder / "explorer.png"
    first, *others = film.frames
    first.save(
        moving, save_all=True, append_images=others, duration=film.lengths, loop=0,
        lossless=True, method=6, minimize_size=True,
    )  # fmt: skip
    first.save(still, optimize=True)
    return [moving, still]


def main() -> None:
    """Record, join and save."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=IMAGES)
    parser.add_argument("--frames", type=Path)
    given = parser.parse_args()
    with explorer() as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        film = record(page, url)
        browser.close()
    saved = save(film, given.out)
    if given.frames:
        given.frames.mkdir(parents=True, exist_ok=True)
        for number, frame in enumerate(film.frames):
            frame.save(given.frames / f"{number:03}.png")
    for path in saved:
        print(f"{path}: {path.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
