"""The blocks of Python of all pages run."""

from pathlib import Path

import pytest
from docs_reading import PAGES, page_name, python_blocks

import dpmpn

TUTORIAL = "tutorial.md"  # has a test of its own
WITH_PYTHON = [page for page in PAGES if python_blocks(page) and page.name != TUTORIAL]


def test_there_are_snippets() -> None:
    expected = {"README.md", "any-graph.md", "complete.md", "new-facts.md", "python.md", "your-own-data.md"}
    assert expected <= {p.name for p in WITH_PYTHON}


@pytest.mark.parametrize("page", WITH_PYTHON, ids=page_name)
def test_snippets_run(
    page: Path, countries_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reasoner = dpmpn.Reasoner.load(countries_run, threads=1)
    # A page may train on the bundled graph; all pages share the model of one short training.
    fit = {"countries": reasoner}
    train = dpmpn.Reasoner.fit  # what is no dataset is small, and trained on in earnest
    quick = lambda self, facts: fit[facts.name] if isinstance(facts, dpmpn.Dataset) else train(self, facts)  # noqa: E731
    monkeypatch.setattr(dpmpn.Reasoner, "fit", quick)
    monkeypatch.chdir(tmp_path)
    names = {"reasoner": reasoner, "explanation": reasoner.explain("Serbia", "in_subregion")}
    for number, block in enumerate(python_blocks(page), 1):
        exec(compile(block, f"{page.name}, block {number}", "exec"), names)
