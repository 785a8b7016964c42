"""A model is a folder and a line of the table: everything else takes it as it is."""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from walk.settings import WalkSettings  # pytest finds it: it stands beside this file

import dpmpn
from dpmpn.config import Config, all_settings
from dpmpn.models import MODELS
from dpmpn.train.run_folder import RunFolder

FOLDER = str(Path(__file__).parent)

FAMILY = [
    *((f"child{i}", "mother", f"mother{i}") for i in range(8)),
    *((f"mother{i}", "husband", f"father{i}") for i in range(8)),
    *((f"child{i}", "father", f"father{i}") for i in range(6)),
]
HELD_OUT = [("child6", "father", "father6")], [("child7", "father", "father7")]


@pytest.fixture(autouse=True)
def line(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The line of the table."""
    monkeypatch.setitem(MODELS, "walk", WalkSettings)
    search = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", f"{FOLDER}{os.pathsep}{search}")  # for worker processes
    all_settings.cache_clear()
    yield
    all_settings.cache_clear()


@pytest.fixture
def reasoner() -> dpmpn.Reasoner:
    settings = {"n_epochs": 10, "learning_rate": 0.1, "batch_size": 8, "threads": 2, "sharpness": 2.0}
    dataset = dpmpn.dataset_from_tuples(FAMILY, *HELD_OUT, "family")
    return dpmpn.Reasoner(model="walk", **settings).fit(dataset)


def test_it_is_trained_asked_measured_and_explained(reasoner: dpmpn.Reasoner) -> None:
    assert reasoner.predict("child7", "father")[0].answer == "father7"
    assert reasoner.evaluate("test")["both"]["realistic"]["mrr"] > 0.6
    (path,) = reasoner.explain("child7", "father").paths[:1]
    assert [fact[1] for fact in path.facts] == ["mother", "husband"]
    assert np.isclose(sum(p.score for p in reasoner.predict("child7", "father", top=100, any_role=True)), 1)


def test_it_is_saved_loaded_and_asked_on_other_graphs(reasoner: dpmpn.Reasoner, tmp_path: Path) -> None:
    reasoner.save(tmp_path / "run")
    assert RunFolder.open(tmp_path / "run").config.model == reasoner.config.model
    loaded = dpmpn.Reasoner.load(tmp_path / "run")
    renamed = [(f"x{head}", relation, f"x{tail}") for head, relation, tail in FAMILY]
    other = loaded.on(dpmpn.dataset_from_tuples(renamed, name="others"))
    assert other.predict("xchild7", "father")[0].answer == "xfather7"


def test_its_settings_are_its_own() -> None:
    assert Config().replace(model="walk", sharpness=3).model == WalkSettings(sharpness=3.0)
    with pytest.raises(
        dpmpn.ConfigError, match="'sharpness' is a setting of the model 'walk', and this is 'paper'"
    ):
        Config().replace(sharpness=3)
    with pytest.raises(
        dpmpn.ConfigError,
        match="'gates' is a setting of the model 'strong' and 'any-graph', and this is 'walk'",
    ):
        Config().replace(model="walk", gates="off")
