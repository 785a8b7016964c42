"""The stronger model beside the paper's."""

from pathlib import Path
from typing import Any

import pytest
from made_analysis import Made, files_of, made, scored

from dpmpn.evaluate.metrics import TITLES
from dpmpn.lab.reproduce.making import make
from dpmpn.lab.reproduce.strong import STRONG, model_config
from dpmpn.lab.reproduce.workshop import Request, Watch, dataset_named
from dpmpn.train.run_folder import RunFolder


@pytest.fixture(scope="module")
def exhibit(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return made(STRONG, tmp_path_factory.mktemp("exhibit") / "strong")


def result(model: str, mrr: float, dataset: str = "WN18RR", seed: int = 0, joint: int = 1) -> dict[str, Any]:
    more = {
        "model": model,
        "parameters": 1234,
        "dataset": dataset,
        "seed": seed,
        "joint_targets": joint,
        "planned_queries": 500,
    }
    return scored(mrr, 500, **more)


def shown(*results: dict[str, Any], **request: Any) -> str:
    found = {f"{one['model']}-{one['seed']}": one for one in results}
    seeds = tuple(sorted({one["seed"] for one in results}))
    return STRONG.show(Request(seeds=seeds, **request), found).text


def test_each_model_is_trained_with_settings_of_its_own(exhibit):
    paper, strong = (
        RunFolder.open(exhibit.folder / "runs" / label).config
        for label in ("countries-seed0", "countries-seed0-strong")
    )
    assert (paper.model.name, strong.model.name) == ("paper", "strong")
    assert paper.training.n_epochs == strong.training.n_epochs == 0.3


def test_all_files_are_written_and_the_table_shows_the_results(exhibit):
    assert {f"strong.{suffix}" for suffix in ("json", "csv", "md")} <= set(files_of(exhibit.folder))
    results = {found["model"]: found for found in exhibit.data()["results"].values()}
    lines = {line["model"]: line for line in exhibit.csv_rows()}
    by_name = {cells[0]: cells for cells in exhibit.cells()}
    for model, name in (("paper", "the paper's model"), ("strong", "the stronger model")):
        cells, scores = by_name[f"**{name}, here**"], results[model]["scores"]["both"]["realistic"]
        assert cells[1:5] == [f"{100 * scores[metric]:.1f}" for metric in TITLES]
        assert cells[9] == f"{results[model]['parameters']:,}"
        assert float(lines[model]["mrr"]) == scores["mrr"]
        assert float(lines[model]["epochs"]) == pytest.approx(0.3, abs=0.01)
    text = exhibit.text()
    assert "Not in the paper. Both models on the same engine" in text and "The paper:" not in text


def test_finished_models_are_used_as_they_are(exhibit, tmp_path: Path):
    request = Request(quick=True, threads=1, runs=exhibit.folder)
    make(STRONG, request, tmp_path / "again", Watch(), "dpmpn reproduce strong")
    again = Made(STRONG, tmp_path / "again", [])
    assert not (again.folder / "runs").exists()
    same = ("model", "mrr", "hits_at_10", "queries", "parameters")
    assert [[row[key] for key in same] for row in again.csv_rows()] == [
        [row[key] for key in same] for row in exhibit.csv_rows()
    ]


def test_published_systems_stand_beside_ours_by_their_mrr():
    text = shown(result("paper", 0.485), result("strong", 0.565), max_minutes=60)
    systems = [line.split(" | ")[0].removeprefix("| ") for line in text.splitlines() if line.startswith("| ")]
    ours = systems.index("**the stronger model, here**")
    assert systems.index("One-shot-subgraph") < ours < systems.index("AdaProp")
    assert systems.index("DPMPN") > systems.index("**the paper's model, here**") > systems.index("NBFNet")
    assert systems[-1] == "MINERVA"  # printed without an MRR
    assert "MRR +8.0, H@1 +8.0" in text and "Each training had 60 minutes" in text
    assert "Published figures" in text


def test_without_published_figures_nothing_is_said_of_them():
    text = shown(result("paper", 0.5, "Kinship"), result("strong", 0.6, "Kinship", joint=8))
    assert "Published" not in text
    assert "a question with up to 8 of its answers" in text


def test_seeds_are_averaged():
    runs = [result(model, mrr, "UMLS", seed) for model, seed, mrr in
            (("paper", 0, 0.5), ("paper", 1, 0.52), ("strong", 0, 0.6), ("strong", 1, 0.64))]  # fmt: skip
    text = shown(*runs)
    assert "| **the stronger model, here** | 62.0 (2.8) |" in text and "MRR +11.0" in text
    assert "of 2 runs" in text


def test_whole_nell995_is_not_trained_with_the_settings_of_its_tasks(monkeypatch: pytest.MonkeyPatch):
    countries = dataset_named("countries")
    preset = model_config(Request(), countries, 0, "paper")
    monkeypatch.setattr("dpmpn.lab.reproduce.strong._PRESET_OF_TASKS", "countries")
    derived = model_config(Request(), countries, 0, "paper")
    assert derived != preset and derived.model.name == "paper"
