"""From the click on Ask to the first answer, in a real browser: python benchmarks/page_speed.py RUN_DIR --json FILE

Starts `dpmpn serve`, opens the explorer in Chromium, fills in questions of the test split that were not asked before,
and notes how long after the click the first answer, and then the picture of its explanation, can be seen.
"""

import argparse
import json
import shutil
from pathlib import Path

import numpy as np
from playwright.sync_api import Page, sync_playwright
from serve_load import questions_of, started

from dpmpn.files import write_whole

WARM_UP = 5
# The page notes the time itself, at the first frame in which something is there.
WATCH = """() => new Promise((resolve) => {
  const began = performance.now(), seen = {};
  const look = () => {
    if (!seen.answer && document.querySelector("#answers ol li")) seen.answer = performance.now() - began;
    if (!seen.picture && document.querySelector("#explanation figure .node")) seen.picture = performance.now() - began;
    if ((seen.answer && seen.picture) || performance.now() - began > 10000) resolve(seen);
    else requestAnimationFrame(look);
  };
  document.querySelector("#submit").click();
  look();
})"""


def timed(page: Page, url: str, question: dict) -> dict[str, float]:
    """Milliseconds until the answer and the picture of a question are seen."""
    page.goto(url)
    page.wait_for_selector("#examples button, #examples a")
    page.fill("#head", question["head"])
    page.wait_for_timeout(300)
    page.keyboard.press("Escape")
    page.fill("#relation", question["relation"])
    page.wait_for_timeout(200)
    page.keyboard.press("Escape")
    return page.evaluate(WATCH)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run_dir", type=Path)
    parser.add_argument("--questions", type=int, default=40)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    questions = [q for q in questions_of(given.run_dir) if not q.get("inverse")]
    process, url = started(given.run_dir, [])
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox"]
            )
            page = browser.new_page()
            rows = [timed(page, url, question) for question in questions[: given.questions + WARM_UP]][
                WARM_UP:
            ]
            browser.close()
    finally:
        process.terminate()
        process.wait(30)
    report = {"run": given.run_dir.name, "questions": len(rows)}
    for what in ("answer", "picture"):
        values = [row[what] for row in rows if what in row]
        report[what] = {
            "seen": len(values),
            **{f"p{q}_ms": round(float(np.percentile(values, q)), 1) for q in (50, 95, 100)},
        }
    print(json.dumps(report, indent=2))
    if given.json:
        write_whole(given.json, lambda path: path.write_text(json.dumps(report, indent=2) + "\n", "utf-8"))


if __name__ == "__main__":
    main()
