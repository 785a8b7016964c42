"""Lanes draw graphs by the root of their facts, ask each split to its end, and go on from any place."""

from itertools import pairwise

import numpy as np
import torch
from small_graphs import family_facts, numbered, small_settings

from dpmpn.models import build_model
from dpmpn.pretrain.lanes import Lane, Places, chances, drawn_graph
from dpmpn.pretrain.splits import Facts

FACTS = [numbered(family_facts(6, 0)), numbered(family_facts(24, 1))]


def lane(places: Places | None = None, number: int = 0) -> Lane:
    config, settings = small_settings()
    model = build_model(0, 0, config.model, 0)
    return Lane(model, FACTS, config, settings, number, places or [[0, 0], [0, 0]])


def test_graphs_are_drawn_by_the_root_of_their_facts() -> None:
    def of_size(n: int) -> Facts:
        return Facts(np.zeros((n, 3), np.int64), 1, 1)

    share = chances([of_size(n) for n in (100, 400, 2500)])
    assert np.allclose(share, [10 / 80, 20 / 80, 50 / 80])
    drawn = np.bincount([drawn_graph(share, 7, 0, step) for step in range(2000)], minlength=3) / 2000
    assert np.allclose(drawn, share, atol=0.04)


def test_lanes_draw_apart_from_each_other() -> None:
    share = np.array([0.5, 0.5])
    one, other = ([drawn_graph(share, 7, number, step) for step in range(50)] for number in range(2))
    assert one != other
    assert one != [drawn_graph(share, 8, 0, step) for step in range(50)]


def test_a_split_is_used_to_its_end() -> None:
    walked = lane()
    places = [walked.gradients(step).places for step in range(60)]
    for graph in range(2):
        seen = [tuple(place[graph]) for place in places]
        for before, after in pairwise(seen):
            assert after in (before, (before[0], before[1] + 1), (before[0] + 1, 0))
        assert seen[-1][0] > 1


def test_a_lane_goes_on_from_its_places() -> None:
    unbroken = lane()
    results = [unbroken.gradients(step) for step in range(12)]
    resumed = lane(results[5].places)
    for step in range(6, 12):
        again, before = resumed.gradients(step), results[step]
        assert torch.equal(again.gradients.shared, before.gradients.shared)
        assert (again.graph, again.places) == (before.graph, before.places)
