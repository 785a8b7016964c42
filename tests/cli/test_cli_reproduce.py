"""`dpmpn reproduce` as a user meets it."""

import json

import pytest

from dpmpn.reproduce.catalogue import EXHIBITS


def test_the_list_has_every_exhibit(call):
    listed = json.loads(call("reproduce", "--list", "--json", "-").out)
    assert [exhibit["name"] for exhibit in listed] == list(EXHIBITS)
    assert all(exhibit["claim"].endswith(".") for exhibit in listed)


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
        (["reproduce", "datasets", "--out", "x", "--epochs", "2"], "trains nothing"),
        (["reproduce", "wn18rr", "--out", "x", "--dataset", "mine"], "use WN18RR"),
    ],
)
def test_mistakes_are_one_line(arguments, said, tmp_path, monkeypatch, call):
    monkeypatch.chdir(tmp_path)
    result = call(*arguments)
    assert result.code == 2
    assert said in result.err and result.err.count("\n") == 1
    assert not (tmp_path / "x").exists()
