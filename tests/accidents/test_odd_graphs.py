"""Graphs nobody would make on purpose: training, measuring and asking go on, or end with one sentence."""

import json
from pathlib import Path

import pytest
from accident_data import SETTINGS, write_facts
from forked_cli import ForkedCli

LONG = "n" * 10_000
PLAIN = [("a", "likes", "b"), ("b", "likes", "c")]

GRAPHS = {
    "one entity": ([("a", "knows", "a")], [], ("a", "knows")),
    "a single fact": ([("a", "likes", "b")], [], ("a", "likes")),
    "valid of unknown entities": (PLAIN, [("x", "likes", "y"), ("y", "hates", "z")], ("a", "likes")),
    "names with blanks and quotes": (
        [('it\'s a "name"', "is  not, é", "'"), ("'", "[bold]r[/]", "\\"), ("😀", "🧡", 'it\'s a "name"')],
        [("😀", "🧡", "'")],
        ('it\'s a "name"', "is  not, é"),
    ),
    "very long names": ([(LONG, "r" * 10_000, "b"), ("b", "s", LONG)], [("b", "s", "b")], ("b", "s")),
    "a relation named like an inverse": (
        [("a", "x", "b"), ("b", "x_inv", "c"), ("c", "self_loop", "a"), ("a", "x_inv_inv", "c")],
        [("b", "x_inv", "a")],
        ("b", "x_inv"),
    ),
    "an entity without a way out": ([*PLAIN, ("d", "likes", "e")], [("a", "likes", "d")], ("d", "likes")),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_odd_graphs(cli: ForkedCli, tmp_path: Path, name: str) -> None:
    train, held_out, question = GRAPHS[name]
    splits = {"train": train} | ({"valid": held_out, "test": held_out} if held_out else {})
    folder = write_facts(tmp_path / "graph", **splits)
    run = tmp_path / "run"
    trained = cli.run("train", folder, "--out", run, *SETTINGS)
    assert (trained.code, trained.err) == (0, ""), trained
    asked = cli.run("predict", run, *question, "--any-role", "--json", "-", "--why")
    assert (asked.code, asked.err) == (0, ""), asked
    answers = json.loads(asked.out)
    assert answers and abs(sum(answer["score"] for answer in answers) - 1) < 0.01
    assert cli.run("predict", run, *question, "--why").code == 0
    if held_out:
        measured = cli.run("evaluate", run)
        assert (measured.code, measured.err) == (0, ""), measured


def test_no_facts_at_all(cli: ForkedCli, tmp_path: Path) -> None:
    folder = write_facts(tmp_path / "graph", train=[])
    ended = cli.run("train", folder, "--out", tmp_path / "run", *SETTINGS)
    assert ended.code == 2
    assert ended.err.startswith("dpmpn: ") and ended.err.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_limits_that_are_no_numbers(cli: ForkedCli, family: Path, tmp_path: Path) -> None:
    for minutes in ("nan", "-1", "0"):
        ended = cli.run("train", family, "--out", tmp_path / "run", "--max-minutes", minutes)
        assert ended.code == 2 and "--max-minutes" in ended.err
