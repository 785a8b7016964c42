"""Key facts are the planted ones: a small model learns the rules of some families, and its reasons are looked up."""

import numpy as np
from synthetic import family_graph

import dpmpn

# Chosen among several for learning all three rules with each of five pairs of seeds, of families and of model (H@1 at
# least 0.96, precision 0.988, recall 1). With half the dimensions two of four did not learn the chain of three facts.
SETTINGS = {
    "model": "paper",
    **{"n_dims": 32, "n_dims_att": 16, "n_steps_in_ignn": 0, "n_steps_in_agnn": 3, "batch_size": 32},
    **{"learning_rate": 0.01, "n_epochs": 8, "threads": 1, "seed": 0},
}


def test_key_facts_are_the_planted_proofs() -> None:
    planted = family_graph(10, seed=1)
    reasoner = dpmpn.Reasoner(**SETTINGS).fit(planted.dataset())
    judged = []
    for head, relation, tail in planted.splits["test"]:
        for asked, answer, inverse in ((head, tail, False), (tail, head, True)):
            explanation = reasoner.explain(asked, relation, answer, inverse)
            judged.append(planted.judge((head, relation, tail), [key.fact for key in explanation.key_facts]))
    precision, recall = np.mean(judged, 0)
    assert reasoner.evaluate("test")["both"]["realistic"]["hits_at_1"] > 0.9
    assert precision > 0.95
    assert recall > 0.95
