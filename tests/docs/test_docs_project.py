"""The files about the project agree with the package."""

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
