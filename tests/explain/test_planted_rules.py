"""Key facts are the planted ones: a small model learns the rules of some families, and its reasons are looked up."""

import numpy as np
import pytest

import dpmpn
from dpmpn.data.families import PlantedRules, family_graph

SETTINGS = {
    **{"n_dims": 16, "n_dims_att": 8, "n_steps_in_ignn": 1, "n_steps_in_agnn": 4, "batch_size": 32},
    **{"learning_rate": 0.01, "n_epochs": 6, "threads": 1, "seed": 0},
}


@pytest.fixture(scope="module")
def planted() -> PlantedRules:
    return family_graph(10, seed=1)


@pytest.fixture(scope="module")
def reasoner(planted: PlantedRules) -> dpmpn.Reasoner:
    return dpmpn.Reasoner(**SETTINGS).fit(planted.dataset())


def test_key_facts_are_the_planted_proofs(planted: PlantedRules, reasoner: dpmpn.Reasoner) -> None:
    judged = []
    for head, relation, tail in planted.splits["test"]:
        for asked, answer, inverse in ((head, tail, False), (tail, head, True)):
            explanation = reasoner.explain(asked, relation, answer, inverse)
            judged.append(planted.judge((head, relation, tail), [key.fact for key in explanation.key_facts]))
    precision, recall = np.mean(judged, 0)
    print(precision, recall, reasoner.evaluate("test")["both"]["realistic"]["hits_at_1"])
    assert precision > 0.9
    assert recall > 0.95
