"""The files about the project agree with the package."""

import re
import tomllib
from importlib.metadata import version

import yaml
from docs_reading import ROOT


def test_the_citation_is_of_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == version("dpmpn")
    assert (
        citation["license"]
        == tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["license"]
    )
    assert [author["name"] for author in citation["authors"]] == ["The dpmpn developers"]
    (paper,) = citation["references"]
    assert [author["family-names"] for author in paper["authors"]] == [
        "Xu",
        "Feng",
        "Jiang",
        "Xie",
        "Sun",
        "Deng",
    ]


def test_the_changelog_has_this_version() -> None:
    assert f"\n## {version('dpmpn')}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_make_docs_takes_warnings_for_errors() -> None:
    recipe = (ROOT / "Makefile").read_text("utf-8").partition("\ndocs: ")[2].partition("\n\n")[0]
    assert "-m sphinx -W " in recipe


def test_the_readme_is_short_and_has_the_two_commands() -> None:
    lines = (ROOT / "README.md").read_text("utf-8").splitlines()
    assert len(lines) < 130
    assert {line.split("  #")[0].strip() for line in lines if line.startswith("    make ")} == {
        "make demo",
        "make test",
    }


def test_the_readmes_figures_have_result_files() -> None:
    spans = re.findall(r"`([\w*/.-]+)`", (ROOT / "README.md").read_text("utf-8"))
    named = [span for span in spans if span.endswith(".json") or span.startswith("exhibits/")]
    assert len(named) > 8
    assert not [name for name in named if not list((ROOT / "benchmarks" / "results").glob(name))]
