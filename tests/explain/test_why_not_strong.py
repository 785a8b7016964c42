"""The stronger model leaves nodes out before they have attention: why-not says so, and what would keep them."""

import numpy as np
import pytest

import dpmpn

FACTS = [
    *(("hub", "likes", f"leaf{i}") for i in range(12)),
    *((f"leaf{i}", "likes", f"far{i}") for i in range(12)),
    ("far0", "knows", "hub"),
]


@pytest.fixture(scope="module")
def reasoner() -> dpmpn.Reasoner:
    settings = {
        "model": "strong", "n_dims": 6, "n_steps_in_agnn": 2, "n_epochs": 1, "threads": 1,
        "max_attending_from_per_step": 100, "max_sampling_per_node": 1000, "max_attending_to_per_step": 4,
        "ask_attending_to_per_step": 4,
    }  # fmt: skip
    return dpmpn.Reasoner(**settings).fit(dpmpn.dataset_from_tuples(FACTS, name="leaves"))


def test_what_was_left_out_is_told_with_its_rank_and_would_be_kept(reasoner: dpmpn.Reasoner) -> None:
    graph = reasoner.graph
    (asked,) = reasoner.ask([reasoner.question_ids("hub", "knows")])
    visited = set(asked.reached.entities.tolist())
    left_out = [entity for entity in range(graph.n_entities) if entity not in visited]
    assert len(left_out) > 10
    distances = set()
    for candidate in left_out:
        why = asked.why_not(candidate)
        assert (why.reason, why.limit) == ("not_attended_to", 4)  # all edges were drawn
        (near,) = why.near
        choice = asked.flow.choices[near.step - 1]
        place = np.flatnonzero(choice.node == graph.entities.id(near.name))[0]
        assert not choice.is_kept[place] and (near.rank, near.scanned) == (place + 1, len(choice.node))
        assert near.attention <= why.weakest_kept.attention
        assert dict(why.settings)["ask_attending_to_per_step"] >= near.rank
        assert "but was not kept" in why.text()
        distances.add(near.distance)
    assert distances == {0, 1}
