"""Table 1: statistics of the datasets beside the paper's."""

from pathlib import Path

import pytest
from made_analysis import Made, files_of, made

from dpmpn.data.registry import known_dataset
from dpmpn.errors import ConfigError, Stopped
from dpmpn.lab.reproduce.paper_tables import DATASETS, PAPER, differences
from dpmpn.lab.reproduce.workshop import Request, Watch, Workshop


@pytest.fixture(scope="module")
def exhibit(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return made(DATASETS, tmp_path_factory.mktemp("exhibit") / "datasets")


def as_printed(name: str) -> dict:
    """A measurement that agrees with the paper."""
    counts = known_dataset(name).published
    assert counts is not None
    return {"name": name, **counts._asdict(), **PAPER[name]._asdict()}


def test_the_quick_form_shows_the_bundled_graph_alone(exhibit):
    assert {f"datasets.{kind}" for kind in ("json", "csv", "md")} <= set(files_of(exhibit.folder))
    assert exhibit.cells() == [["countries", "1,026", "13", "2,984", "153", "220", "19.1", "0.0", "2.27"]]
    (line,) = exhibit.csv_rows()
    (result,) = exhibit.data()["results"].values()
    assert (line["by"], line["entities"]) == ("ours", "1026")
    assert float(line["pme_train"]) == result["pme_train"]


def test_made_again_nothing_is_measured_anew(exhibit):
    before = files_of(exhibit.folder)
    assert made(DATASETS, exhibit.folder).said == ["1 of 1 pieces of work are done already"]
    assert files_of(exhibit.folder) == before


def test_figures_differ_only_where_they_are_printed_differently():
    results = {name: as_printed(name) for name in PAPER}
    assert differences(results) == []
    results["WN18"]["average_shortest_path_valid"] = 1.188  # printed 1.19, the paper's 1.18
    results["FB15K"]["pme_train"] = 0.81155  # printed 81.2, as the paper's
    results["WN18RR"]["test"] -= 1
    assert differences(results) == [("WN18", "average_shortest_path_valid"), ("WN18RR", "test")]


def test_differences_are_told_with_both_figures_and_why():
    results = {name: as_printed(name) for name in PAPER}
    assert "All figures measured here are the paper's.\n" in DATASETS.show(Request(), results).text
    results["NELL-995"]["pme_train"] = 0.252
    results["WN18RR"]["valid"] = 3_033
    text = DATASETS.show(Request(), results).text
    assert "- NELL-995, PME train, %: 25.2 here, 100.0 in the paper. The training file" in text
    assert "- WN18RR, valid: 3,033 here, 3,034 in the paper. We do not know why." in text
    assert "Not found" not in text


def test_a_dataset_that_is_not_here_is_shown_as_the_paper_has_it(tmp_path, monkeypatch):
    monkeypatch.setenv("DPMPN_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    (tmp_path / "WN18").mkdir()
    assert [piece.name for piece in DATASETS.pieces(Request())] == ["WN18"]
    shown = DATASETS.show(Request(), {"WN18": as_printed("WN18")})
    assert [(row["dataset"], row["by"]) for row in shown.rows] == [
        ("FB15K", "paper"),
        ("FB15K-237", "paper"),
        ("WN18", "ours"),
        ("WN18", "paper"),
        ("WN18RR", "paper"),
        ("NELL-995", "paper"),
        ("YAGO3-10", "paper"),
    ]
    assert (
        "Not found on this machine, so not measured: FB15K, FB15K-237, WN18RR, NELL-995 and YAGO3-10;"
        in shown.text
    )


def test_the_quarter_of_yago_is_marked_as_not_comparable():
    quarter = {**as_printed("YAGO3-10"), "name": "YAGO3-10-quarter", "train": 269_760}
    shown = DATASETS.show(Request(), {"YAGO3-10-quarter": quarter})
    assert shown.rows[-1]["dataset"] == "YAGO3-10-quarter"
    assert "| YAGO3-10-quarter | 123,188 | 37 | 269,760 |" in shown.text
    assert "its figures are not comparable" in shown.text


def test_the_user_can_end_it(tmp_path: Path):
    (piece,) = DATASETS.pieces(Request(quick=True))
    workshop = Workshop(tmp_path, Request(quick=True), Watch(stop=lambda: True))
    with pytest.raises(Stopped):
        piece.work(workshop)


def test_what_only_trainings_have_is_refused():
    with pytest.raises(ConfigError, match="no trainings that could be shortened"):
        DATASETS.check(Request(epochs=1))
