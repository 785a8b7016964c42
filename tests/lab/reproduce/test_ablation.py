"""The stronger model with one change at a time."""

from pathlib import Path
from typing import Any

import pytest
from made_analysis import Made, scored

from dpmpn.config import Config, with_overrides
from dpmpn.errors import ConfigError
from dpmpn.lab.reproduce.ablation import ABLATION, CHANGES, chosen
from dpmpn.lab.reproduce.making import make
from dpmpn.lab.reproduce.workshop import Request, Watch, config_for, dataset_named
from dpmpn.train.run_folder import RunFolder

QUICK = Request(quick=True, threads=1, epochs=0.05, only=("fewer-steps", "asked-as-trained", "paper"))
BY_NAME = {change.name: change for change in CHANGES}


@pytest.fixture(scope="module")
def exhibit(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("exhibit") / "ablation"
    make(ABLATION, QUICK, folder, Watch(), "dpmpn reproduce ablation")
    return Made(ABLATION, folder, [])


@pytest.fixture
def whole() -> Config:
    return config_for(Request(), dataset_named("countries"), 0, model="strong")


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.name)
@pytest.mark.parametrize(
    "settings",
    [{}, {"weight_average": 0.9, "joint_targets": 1, "max_sampling_per_relation": 5, "schedule": "constant"}],
    ids=["derived", "other"],
)
def test_every_change_changes_something_and_has_a_reason(change, settings, whole):
    whole = with_overrides(whole, settings)
    own = (
        whole
        if change.model == "strong"
        else config_for(Request(), dataset_named("countries"), 0, model="paper")
    )
    assert (with_overrides(own, change.settings(whole)) == own) == (change.name == "paper")
    assert change.reason and "\n" not in change.reason


def test_a_wider_or_narrower_training_leaves_asking_as_it_is(whole):
    for asking in (None, 70):
        keys = ("ask_attending_from_per_step", "ask_attending_to_per_step")
        before = with_overrides(whole, dict.fromkeys(keys, asking))
        for name in ("half-n1", "double-n1", "fewer-attended"):
            after = with_overrides(before, BY_NAME[name].settings(before))
            assert after.asking_horizon() == before.asking_horizon()
            assert after.horizon != before.horizon


def test_only_what_is_asked_for_is_made_beside_the_whole(exhibit):
    assert [row["change"] for row in exhibit.csv_rows()] == [
        "whole",
        "fewer-steps",
        "asked-as-trained",
        "paper",
    ]
    labels = {path.name for path in (exhibit.folder / "runs").iterdir()}
    assert labels == {"countries-seed0-strong", "countries-seed0-fewer-steps", "countries-seed0"}
    configs = {label: RunFolder.open(exhibit.folder / "runs" / label).config for label in labels}
    fewer, strong = configs["countries-seed0-fewer-steps"], configs["countries-seed0-strong"]
    assert fewer == strong.replace(n_steps_in_agnn=strong.model.n_steps_in_agnn - 2)
    assert configs["countries-seed0"].model.name == "paper"


def test_the_table_shows_the_results(exhibit):
    found = {one["change"]: one for one in exhibit.data()["results"].values()}
    whole = found["whole"]["scores"]["both"]["realistic"]["mrr"]
    for cells in exhibit.cells():
        one = found[cells[0].strip("*")]
        mrr = one["scores"]["both"]["realistic"]["mrr"]
        assert cells[2] == f"{100 * mrr:.1f}"
        assert cells[3] == ("-" if one["change"] == "whole" else f"{100 * (mrr - whole):+.1f}")
        assert one["scores"]["split"] == "valid"  # what to keep is not chosen on test facts
    as_trained = found["asked-as-trained"]
    assert as_trained["training"] == found["whole"]["training"]
    assert as_trained["scores"]["horizon"]["max_attending_from_per_step"] == 10
    assert found["whole"]["scores"]["horizon"]["max_attending_from_per_step"] > 10


def test_changes_can_be_added(exhibit):
    said: list[str] = []
    more = Request(quick=True, threads=1, epochs=0.05, only=("asked-as-trained", "no-gates"))
    make(ABLATION, more, exhibit.folder, Watch(say=said.append), "dpmpn reproduce ablation more")
    assert said[0] == "2 of 3 pieces of work are done already"
    assert [row["change"] for row in exhibit.csv_rows()] == ["whole", "no-gates", "asked-as-trained"]


def test_without_a_choice_all_are_made_and_unknown_ones_are_refused():
    assert [change.name for change in chosen(Request())] == ["whole", *ABLATION.parts]
    with pytest.raises(ConfigError, match="has no part 'gates'; there are one-map, "):
        ABLATION.check(Request(only=("gates",)))


def result(name: str, seed: int, mrr: float, **settings: Any) -> dict[str, Any]:
    return scored(mrr, change=name, settings=settings, parameters=9, planned_queries=100) | {"seed": seed}


def test_differences_are_of_the_same_seed():
    found = {
        f"{name}-{seed}": result(name, seed, mrr)
        for name, seed, mrr in (
            *(("whole", 0, 0.50), ("whole", 1, 0.54)),
            *(("no-gates", 0, 0.49), ("no-gates", 1, 0.52)),
        )
    }
    text = ABLATION.show(Request(seeds=(0, 1), only=("no-gates",)), found).text
    assert "| no-gates | - | 50.5 (2.1) | -1.5 (.7) |" in text
    assert "The runs of the whole model are 4.0 points apart." in text


def test_runs_of_the_exhibit_strong_have_the_same_names(exhibit, tmp_path: Path):
    from dpmpn.lab.reproduce.strong import STRONG

    request = Request(quick=True, threads=1, runs=exhibit.folder)
    make(STRONG, request, tmp_path / "strong", Watch(), "dpmpn reproduce strong")
    assert (tmp_path / "strong" / "strong.md").exists()
