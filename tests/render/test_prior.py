"""Explanations of the stronger model say what the answer had before any step; the paper's model has no prior."""

import numpy as np
import pytest
from small_reasoning import explained

import dpmpn
from dpmpn.models.strong.reference import profile_features
from dpmpn.render.page import verdict

FACTS = [
    *(("hub", "likes", f"leaf{i}") for i in range(6)),
    *((f"leaf{i}", "knows", f"far{i}") for i in range(0, 6, 2)),
    ("far0", "knows", "hub"),
]


@pytest.fixture(scope="module")
def reasoner() -> dpmpn.Reasoner:
    settings = {"model": "strong", "n_dims": 6, "n_steps_in_agnn": 2, "n_epochs": 10, "threads": 1}
    settings |= {"weight_average": 0.0, "learning_rate": 0.05, "batch_size": 2}  # so that priors differ soon
    return dpmpn.Reasoner(**settings).fit(dpmpn.dataset_from_tuples(FACTS, name="leaves"))


def test_each_answer_has_its_own_prior_also_when_asked_together(reasoner: dpmpn.Reasoner) -> None:
    graph, network = reasoner.graph, reasoner.engine.model
    questions = [reasoner.question_ids("hub", "knows"), reasoner.question_ids("leaf1", "likes", inverse=True)]
    relations = np.array([relation for _, relation, _ in questions])
    rows = network.asked(relations, graph.inverse).prior
    profile = profile_features(graph, np.empty(0, np.int64), are_on=True).to(rows)
    expected = (rows @ profile.t()).softmax(1).detach().numpy()
    for asked, prior in zip(reasoner.ask(questions), expected, strict=True):
        assert len(asked.reached.entities) > 2 and len(set(prior[asked.reached.entities])) > 1
        for kept in (asked, asked.alone()):
            found = [kept.explain(int(node)).prior for node in asked.reached.entities]
            assert found == pytest.approx(prior[asked.reached.entities], rel=1e-4)


def test_without_a_trace_or_in_the_papers_model_there_is_none(reasoner: dpmpn.Reasoner) -> None:
    (asked,) = reasoner.ask([reasoner.question_ids("hub", "knows")], traced=False)
    assert asked.reached.prior is None
    small = {"n_dims": 6, "n_steps_in_agnn": 2, "n_epochs": 1, "threads": 1}
    papers = dpmpn.Reasoner(model="paper", **small).fit(dpmpn.dataset_from_tuples(FACTS, name="leaves"))
    assert papers.explain("hub", "knows").prior is None


@pytest.mark.parametrize(("prior", "told"), [(0.25, "25%."), (0.0004, "0.04%.")])
def test_the_page_says_it(prior: float, told: str) -> None:
    assert f"Before the first step, its relations alone gave it {told}" in verdict(explained(prior=prior))
    assert "Before the first step" not in verdict(explained())
