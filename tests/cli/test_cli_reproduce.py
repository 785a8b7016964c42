"""`dpmpn reproduce` as a user meets it."""

import json
import re
from inspect import signature

import pytest

from dpmpn.cli.lab import reproduce
from dpmpn.lab.reproduce.making import EXHIBITS


def test_the_list_has_every_exhibit(call):
    listed = json.loads(call("reproduce", "--list", "--json", "-").out)
    assert [exhibit["name"] for exhibit in listed] == list(EXHIBITS)
    assert all(exhibit["claim"].endswith(".") for exhibit in listed)


def test_the_list_shows_what_the_paper_says(call):
    shown = call("reproduce", "--list").out
    assert all(exhibit.claim in " ".join(shown.split()) for exhibit in EXHIBITS.values())
    names = [line.split()[0] for line in shown.splitlines() if not line.startswith(" ")]
    assert names == list(EXHIBITS)
    assert all(len(line) <= 80 for line in shown.splitlines() if not line.startswith(" "))


def test_the_help_names_the_exhibits_that_take_a_dataset():
    option = signature(reproduce).parameters["dataset"].annotation.__metadata__[0]
    words = set(re.findall(r"[\w-]+", option.help))
    taking = {name for name, exhibit in EXHIBITS.items() if len(exhibit.datasets) > 1}
    assert words & set(EXHIBITS) == taking
    assert {"WN18RR", "FB15K-237", "YAGO3-10-quarter"} <= words


def test_an_exhibit_is_made_and_said_where(call, tmp_path):
    out = tmp_path / "table"
    result = call("reproduce", "datasets", "--quick", "--out", out)
    assert result.code == 0
    assert f"made {out / 'datasets.md'}" in result.out
    assert "countries" in (out / "datasets.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["reproduce"], "--list shows all"),
        (["reproduce", "datasets"], "--out"),
        (["reproduce", "convergance", "--out", "x"], "convergence"),
        (["reproduce", "datasets", "--out", "x", "--seeds", "one"], "'one'"),
        (["reproduce", "datasets", "--out", "x", "--epochs", "2"], "no trainings that could be shortened"),
        (["reproduce", "wn18rr", "--out", "x", "--dataset", "mine"], "use WN18RR"),
        (["reproduce", "wn18", "--quick", "--out", "x", "--runs", "nowhere"], "nowhere has no folder 'runs'"),
        (["reproduce", "time-cost", "--out", "x", "--runs", "nowhere"], "leave out --runs"),
    ],
)
def test_mistakes_are_one_line(arguments, said, tmp_path, monkeypatch, call):
    monkeypatch.chdir(tmp_path)
    result = call(*arguments)
    assert result.code == 2
    assert said in result.err and result.err.count("\n") == 1
    assert not (tmp_path / "x").exists()
