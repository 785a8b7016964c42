"""Which settings a dataset gets for each model."""

import pytest

from dpmpn import suitable_config as module
from dpmpn.config import load_preset
from dpmpn.data.importer import dataset_from_tuples, load_dataset
from dpmpn.suitable_config import suitable_config


def test_a_graph_without_a_preset_gets_settings_of_the_model():
    facts = [(f"c{i}", "in", "country") for i in range(9)] + [("country", "on", "continent")]
    dataset = dataset_from_tuples(facts)
    assert suitable_config(dataset) == suitable_config(dataset, "strong")
    assert suitable_config(dataset, "paper")[0].model.name == "paper"
    config, reasons = suitable_config(dataset, "strong")
    assert config.model.name == "strong"
    # 10 facts both ways are 20 queries of 12 questions
    assert (
        "joint_targets = 1: a training question has 1.7 answers on average, so each is learnt alone"
        in reasons
    )


def test_a_known_dataset_gets_the_preset_of_the_model(monkeypatch: pytest.MonkeyPatch):
    countries = load_dataset("countries")
    assert suitable_config(countries, "paper") == (load_preset("countries"), ["preset countries"])
    monkeypatch.setattr(module, "preset_names", lambda: ["countries"])
    assert len(suitable_config(countries, "strong")[1]) > 5
    monkeypatch.setattr(module, "preset_names", lambda: ["countries", "countries-strong"])
    monkeypatch.setattr(module, "load_preset", lambda name: f"the preset {name}")
    assert suitable_config(countries, "strong") == (
        "the preset countries-strong",
        ["preset countries-strong"],
    )
