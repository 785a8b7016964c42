"""An exhibit is made piece by piece: what is done is kept, and what does not fit is refused."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from dpmpn.errors import ConfigError, RunError, Stopped
from dpmpn.lab.figures import new_figure
from dpmpn.lab.reproduce.exhibit import Exhibit, Piece
from dpmpn.lab.reproduce.making import make
from dpmpn.lab.reproduce.workshop import Request, Result, Watch


class Counted(Exhibit):
    """An exhibit of two pieces a seed that counts how often each was made."""

    name, title, place, claim = "counted", "What was counted", "Table 0", "counting is easy."
    fields = ("name", "length")

    def __init__(self, fails: str = "", **options: Any) -> None:
        self.made: list[str] = []
        self.fails = fails
        vars(self).update(options)

    def pieces(self, request: Request) -> list[Piece]:
        names = [f"{what}-seed{seed}" for seed in request.seeds for what in ("one", "two")]
        return [Piece(name, 60.0, lambda _, name=name: self.work(name)) for name in names]

    def work(self, name: str) -> dict:
        if name == self.fails:
            raise Stopped
        self.made.append(name)
        return {"name": name, "length": len(name)}

    def text(self, request: Request, results: Sequence[Result]) -> list[str]:
        return [f"{len(results)} pieces"]

    def plot(self, results: Sequence[Result]) -> Figure:
        figure, axes = new_figure(3, 2)
        axes.plot([result["length"] for result in results])
        return figure


def test_all_files_are_there_and_agree(tmp_path: Path) -> None:
    counted = Counted()
    files = make(counted, Request(), tmp_path / "x", Watch(), "dpmpn reproduce counted --out x")
    assert [path.name for path in files] == ["counted.md", "counted.svg", "counted.png"]
    assert all(path.stat().st_size for path in files)
    text = files[0].read_text()
    assert "2 pieces" in text and "dpmpn reproduce counted --out x" in text and "(counted.svg)" in text
    rows = list(csv.DictReader((tmp_path / "x/counted.csv").open()))
    assert rows == [{"name": "one-seed0", "length": "9"}, {"name": "two-seed0", "length": "9"}]
    record = json.loads((tmp_path / "x/exhibit.json").read_text())
    assert record["seeds"] == [0] and record["versions"]["dpmpn"] and record["machine"]["cores"]


def test_work_that_was_ended_goes_on(tmp_path: Path) -> None:
    ended = Counted(fails="two-seed0")
    with pytest.raises(Stopped):
        make(ended, Request(), tmp_path / "x", Watch(), "x")
    said: list[str] = []
    again = Counted()
    make(again, Request(), tmp_path / "x", Watch(say=said.append), "x")
    assert again.made == ["two-seed0"]
    assert said[:2] == ["1 of 2 pieces of work are done already", "to do: about 60 s on two cores"]


def test_seeds_can_be_added_but_other_options_are_another_exhibit(tmp_path: Path) -> None:
    make(Counted(), Request(), tmp_path / "x", Watch(), "first")
    more = Counted()
    make(more, Request(seeds=(0, 1)), tmp_path / "x", Watch(), "second")
    assert more.made == ["one-seed1", "two-seed1"]
    with pytest.raises(RunError, match="other options"):
        make(Counted(), Request(epochs=0.5), tmp_path / "x", Watch(), "third")


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(RunError, match="something else"):
        make(Counted(), Request(), tmp_path, Watch(), "x")
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_a_broken_result_is_named(tmp_path: Path) -> None:
    make(Counted(), Request(), tmp_path / "x", Watch(), "x")
    (tmp_path / "x/results/one-seed0.json").write_text("{")
    with pytest.raises(RunError, match=r"one-seed0\.json"):
        make(Counted(), Request(), tmp_path / "x", Watch(), "x")


def test_a_result_without_a_metric_is_made_again(tmp_path: Path) -> None:
    make(Counted(), Request(), tmp_path / "x", Watch(), "x")
    path = tmp_path / "x/results/one-seed0.json"
    scores = {"both": {"realistic": {"mrr": 0.5, "hits_at_1": 0.4, "hits_at_10": 0.6}}}
    path.write_text(json.dumps({**json.loads(path.read_text()), "scores": scores}))
    with pytest.raises(RunError, match=r"one-seed0\.json was made before there was H@3; remove it"):
        make(Counted(), Request(), tmp_path / "x", Watch(), "x")


@pytest.mark.parametrize(
    "options",
    [
        {"seeds": ()},
        {"seeds": (1, 1)},
        {"seeds": (-1,)},
        {"epochs": 0},
        {"max_minutes": float("nan")},
        {"runs": Path("x"), "epochs": 1},
        {"runs": Path("x"), "max_minutes": 1},
    ],
)
def test_odd_requests_are_refused(options: dict) -> None:
    with pytest.raises(ConfigError):
        Request(**options)


def test_the_default_dataset_need_not_be_named(tmp_path: Path) -> None:
    exhibit = Counted(datasets=("WN18RR", "FB15K-237"))
    make(exhibit, Request(dataset="WN18RR"), tmp_path / "x", Watch(), "x")
    make(exhibit, Request(), tmp_path / "x", Watch(), "x")
    assert len(exhibit.made) == 2
    with pytest.raises(RunError, match="other options"):
        make(exhibit, Request(dataset="FB15K-237"), tmp_path / "x", Watch(), "x")


def test_the_place_is_that_of_the_dataset(tmp_path: Path) -> None:
    exhibit = Counted(datasets=("WN18RR", "FB15K-237"), places=(("FB15K-237", "Figure 99"),))
    first, *_ = make(exhibit, Request(), tmp_path / "x", Watch(), "x")
    other, *_ = make(exhibit, Request(dataset="FB15K-237"), tmp_path / "y", Watch(), "x")
    assert "Table 0. The paper:" in first.read_text()
    assert "Figure 99. The paper:" in other.read_text()
    assert json.loads((tmp_path / "y/exhibit.json").read_text())["place"] == "Figure 99"


def test_the_first_command_is_kept_and_others_follow_it(tmp_path: Path) -> None:
    for command, seeds in (("first", (0,)), ("second", (0, 1)), ("first", (0,)), ("second", (0, 1))):
        text = make(Counted(), Request(seeds=seeds), tmp_path / "x", Watch(), command)[0].read_text()
    record = json.loads((tmp_path / "x/exhibit.json").read_text())
    assert (record["command"], record["commands"]) == ("first", ["second"])
    assert "Made by `first` and `second`." in text


def test_each_piece_says_what_made_it_and_the_exhibit_where_that_differs(tmp_path: Path) -> None:
    files = make(Counted(), Request(), tmp_path / "x", Watch(), "x")
    path = tmp_path / "x/results/one-seed0.json"
    result = json.loads(path.read_text())
    assert result["versions"]["dpmpn"] and result["machine"]["cores"]
    assert "different" not in files[0].read_text()
    result["versions"]["dpmpn"], result["machine"]["processor"] = "0.0.1", "abacus"
    path.write_text(json.dumps(result))
    make(Counted(), Request(), tmp_path / "x", Watch(), "x")
    assert "made by different versions of dpmpn: 0.0.1 and " in files[0].read_text()
    assert "made on different processors: " in files[0].read_text()


def test_a_folder_of_an_older_version_can_be_gone_on_with(tmp_path: Path) -> None:
    make(Counted(), Request(), tmp_path / "x", Watch(), "x")
    manifest, result = tmp_path / "x/exhibit.json", tmp_path / "x/results/one-seed0.json"
    older = json.loads(manifest.read_text())
    del older["request"]["runs"]
    manifest.write_text(json.dumps(older))
    result.write_text(json.dumps({"name": "one-seed0", "length": 9, "wall_seconds": 1.0}))
    again = Counted()
    files = make(again, Request(), tmp_path / "x", Watch(), "x")
    assert again.made == []
    assert "different" not in files[0].read_text()


def test_runs_of_another_exhibit_are_remembered(tmp_path: Path) -> None:
    (tmp_path / "lent/runs").mkdir(parents=True)
    make(Counted(), Request(runs=tmp_path / "lent"), tmp_path / "x", Watch(), "x")
    record = json.loads((tmp_path / "x/exhibit.json").read_text())
    assert record["request"]["runs"] == str(tmp_path / "lent")
    with pytest.raises(RunError, match="other options"):
        make(Counted(), Request(), tmp_path / "x", Watch(), "x")


def test_a_folder_without_runs_is_refused_before_anything_is_done(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="has no folder 'runs'"):
        make(Counted(), Request(runs=tmp_path), tmp_path / "x", Watch(), "x")
    assert not (tmp_path / "x").exists()


def test_an_exhibit_that_needs_its_own_trainings_refuses_others(tmp_path: Path) -> None:
    (tmp_path / "lent/runs").mkdir(parents=True)
    with pytest.raises(ConfigError, match="leave out --runs"):
        exhibit = Counted(takes_runs=False)
        make(exhibit, Request(runs=tmp_path / "lent"), tmp_path / "x", Watch(), "x")


def test_a_dataset_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="leave it out"):
        make(Counted(), Request(dataset="WN18"), tmp_path / "x", Watch(), "x")
