"""The tasks of NELL995, and the quick ones made of the bundled graph."""

import json
from pathlib import Path
from typing import Any

import pytest
from made_analysis import Made, files_of, made

from dpmpn.errors import DataError
from dpmpn.lab.reproduce.attention_flow import ATTENTION_FLOW
from dpmpn.lab.reproduce.making import make
from dpmpn.lab.reproduce.nell995 import NELL995, QUICK_TASKS, TASKS, shortfall, task_run
from dpmpn.lab.reproduce.subgraphs import SUBGRAPHS
from dpmpn.lab.reproduce.workshop import Request, Watch, Workshop


@pytest.fixture(scope="module")
def exhibit(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return made(NELL995, tmp_path_factory.mktemp("exhibit") / "nell995")


def result(task: str, seed: int, value: float, queries: int = 240, ties: float = 0.0) -> dict[str, Any]:
    """A result with one value for MAP over triples, a tenth less over heads, and 20 of 100 facts held out."""

    def maps(shift: float) -> dict[str, float]:
        return {"map_over_triples": value + shift, "map_over_heads": value + shift - 0.1}

    return {
        "task": task,
        "seed": seed,
        "train_facts": 100,
        "queries_of_an_epoch": 80,
        "scores": {"map": {"realistic": maps(0), "optimistic": maps(ties), "pessimistic": maps(-ties)}},
        "training": {"queries": queries, "training_seconds": 30.0, "cpu_seconds": 50.0},
    }


def test_the_quick_form_writes_all_files_and_the_table_shows_the_results(exhibit):
    assert {f"nell995.{kind}" for kind in ("json", "csv", "md")} <= set(files_of(exhibit.folder))
    found = exhibit.data()["results"]
    assert [cells[0] for cells in exhibit.cells()] == list(QUICK_TASKS)
    for cells, line in zip(exhibit.cells(), exhibit.csv_rows(), strict=True):
        maps = found[f"{cells[0]}-seed0"]["scores"]["map"]
        assert cells[1] == f"{100 * maps['realistic']['map_over_triples']:.1f}"
        assert cells[2] == f"{100 * maps['realistic']['map_over_heads']:.1f}"
        assert float(line["map_over_heads_optimistic"]) == maps["optimistic"]["map_over_heads"]
    assert "nothing here compares with the paper" in exhibit.text()
    assert "M-Walk" not in exhibit.text()


def test_made_again_nothing_is_trained_anew(exhibit):
    before = files_of(exhibit.folder)
    assert made(NELL995, exhibit.folder).said == ["2 of 2 pieces of work are done already"]
    assert files_of(exhibit.folder) == before


def test_the_run_of_a_task_is_opened_again_where_it_was_trained(exhibit):
    request = Request(quick=True, threads=1)
    metrics = exhibit.folder / "runs" / "in_region-seed0" / "metrics.jsonl"
    before = metrics.read_bytes()
    run, dataset = task_run(Workshop(exhibit.folder, request), request, "in_region", 0)
    assert run.path == metrics.parent
    assert metrics.read_bytes() == before
    assert dataset.candidates is not None
    assert not dataset.both_directions


@pytest.mark.parametrize(
    ("ours", "printed", "points"),
    [(0.8394, "83.9 (0.5)", 0.0), (0.83849, "83.9 (0.5)", 0.1), (0.65, "62.7", -2.3)],
)
def test_a_shortfall_is_told_at_the_precision_of_the_table(ours, printed, points):
    assert shortfall(ours, printed) == points


def test_ours_stands_beside_the_other_systems_and_is_compared_with_the_paper():
    found = {f"{task}-{seed}": result(task, seed, 0.9, ties=0.003) for task in TASKS for seed in (0, 1)}
    for seed in (0, 1):
        found[f"athletehomestadium-{seed}"] = result("athletehomestadium", seed, 0.936)
    found["worksfor-0"] = result("worksfor", 0, 0.80)
    found["worksfor-1"] = result("worksfor", 1, 0.81)
    shown = NELL995.show(Request(seeds=(0, 1)), found)
    assert (
        "| worksfor | 80.5 (.7) | 70.5 (.7) | 86.8 (0.0) | 84.2 (0.6) | 82.7 (0.5) | 69.9 (0.3) |"
        in shown.text
    )
    assert "| teamplaysinleague | 90.0 (.0) | 80.0 (.0) | 97.2 (0.3) | - | - | - | - | - |" in shown.text
    # 90.0 is above the paper's 83.9, 84.1, 88.4, 84.7 and 89.3; 93.6 is the paper's.
    assert (
        "at or above the paper's figure on 6 of 12 tasks; the largest shortfall is 8.6 points" in shown.text
    )
    assert "points, on athleteplayssport." in shown.text
    assert "differ by 0.6 points at most" in shown.text
    assert "Trainings saw 3 epochs, as in the paper. 20 % of the training facts" in shown.text
    assert len(shown.rows) == 24
    assert shown.rows[0]["map_over_triples_optimistic"] == pytest.approx(0.903)


def test_nothing_is_said_of_a_shortfall_where_there_is_none():
    found = {task: result(task, 0, 0.99) for task in TASKS}
    assert "at or above the paper's figure on 12 of 12 tasks.\n" in NELL995.show(Request(), found).text


def test_what_was_shortened_is_told():
    found = {task: result(task, 0, 0.9, queries=40 + 40 * (task == "worksfor")) for task in TASKS}
    text = NELL995.show(Request(epochs=1, max_minutes=1), found).text
    assert (
        "Trainings saw 0.5 to 1 epochs; the paper's saw 3. Ours were limited by --epochs 1 and --max-minutes 1. 20 %"
        in text
    )


@pytest.mark.parametrize(
    ("request_made", "told"),
    [
        (Request(epochs=1), "one epoch; the paper's saw 3. Ours were limited by --epochs 1. 20 %"),
        (
            Request(max_minutes=2.5),
            "one epoch; the paper's saw 3. Ours were limited by --max-minutes 2.5. 20 %",
        ),
        (Request(), "one epoch; the paper's saw 3. 20 %"),
        (Request(runs=Path("x")), "one epoch; the paper's saw 3. 20 %"),
    ],
)
def test_what_ended_the_trainings_is_told(request_made, told):
    found = {task: result(task, 0, 0.9, queries=80) for task in TASKS}
    assert f"Trainings saw {told}" in NELL995.show(request_made, found).text


def test_its_models_serve_other_exhibits_which_leave_them_as_they_are(exhibit, tmp_path):
    lent = {path: path.read_bytes() for path in exhibit.folder.rglob("*") if path.is_file()}
    for other in (ATTENTION_FLOW, SUBGRAPHS):
        said: list[str] = []
        request = Request(quick=True, threads=1, runs=exhibit.folder)
        make(other, request, tmp_path / other.name, Watch(say=said.append), "command")
        assert f"using in_region-seed0 of {exhibit.folder}" in said
        assert not (tmp_path / other.name / "runs").exists()
        result = json.loads((tmp_path / other.name / "results" / "in_region-seed0.json").read_text())
        assert result["training"] == exhibit.data()["results"]["in_region-seed0"]["training"]
    assert {path: path.read_bytes() for path in exhibit.folder.rglob("*") if path.is_file()} == lent


def test_all_tasks_must_be_there_before_any_is_trained(tmp_path, monkeypatch):
    monkeypatch.setenv("DPMPN_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    for task in TASKS:
        (tmp_path / "NELL-995-tasks" / task).mkdir(parents=True)
    pieces = NELL995.pieces(Request(seeds=(0, 1)))
    assert [piece.name for piece in pieces] == [f"{task}-seed{seed}" for seed in (0, 1) for task in TASKS]
    (tmp_path / "NELL-995-tasks" / "worksfor").rmdir()
    with pytest.raises(DataError, match="worksfor"):
        NELL995.pieces(Request())
