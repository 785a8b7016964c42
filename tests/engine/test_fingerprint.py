"""A fingerprint tells models, graphs and settings apart that answer differently."""

import pytest

import dpmpn
from dpmpn.engine.fingerprint import fingerprint


@pytest.fixture(scope="module")
def reasoner() -> dpmpn.Reasoner:
    train = [("a", "likes", name) for name in "bcd"] + [(name, "knows", "e") for name in "bcd"]
    small = {"n_dims": 6, "n_dims_att": 3, "n_steps_in_agnn": 2, "n_epochs": 1, "threads": 1}
    return dpmpn.Reasoner(model="paper", **small).fit(dpmpn.dataset_from_tuples(train))


def test_a_fingerprint_is_of_the_weights_the_facts_and_the_settings(reasoner: dpmpn.Reasoner) -> None:
    own = fingerprint(reasoner.engine, reasoner.dataset)
    assert own == fingerprint(reasoner.engine, reasoner.dataset)
    changed = reasoner.with_facts(remove=[("b", "knows", "e")])
    assert fingerprint(changed.engine, changed.dataset)["model_sha256"] != own["model_sha256"]
    assert set(own) == {"model_sha256", "horizon", "seed"}
