"""What is added where an edge has the relation asked or its inverse, in numbers."""

import numpy as np
import torch

from dpmpn.models.strong.asked import relations_asked
from dpmpn.models.strong.model import StrongModel
from dpmpn.models.strong.settings import StrongSettings

INVERSE = np.array([2, 3, 0, 1, -1])  # the last relation has none


def test_the_relation_asked_and_its_inverse() -> None:
    assert relations_asked(np.array([0, 3, 4]), INVERSE).tolist() == [[0, 2], [3, 1], [4, -1]]


def test_the_prior_of_having_them_and_how_often() -> None:
    network = StrongModel(9, 5, StrongSettings(n_dims=2))
    with torch.no_grad():
        network.prior_asked[:] = torch.tensor([1.0, 2.0, 3.0, 4.0])
        rows = network.prior_rows(torch.zeros(2, 2), relations_asked(np.array([1, 4]), INVERSE), 5)
    # Five relations: whether an entity has each, the logarithm of how often; a constant, the degree.
    assert rows.tolist() == [
        [0, 1, 0, 3, 0, 0, 2, 0, 4, 0, 0, 0],
        [0, 0, 0, 0, 1, 0, 0, 0, 0, 2, 0, 0],
    ]


def test_what_they_add_to_a_message() -> None:
    network = StrongModel(9, 5, StrongSettings(n_dims=2, relation_vectors="query")).double()
    step = network.steps[0]
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.zero_()
        step.asked[0], step.asked[1] = 1.0, 10.0
        asked, every = network.asked(np.array([1]), INVERSE), torch.arange(6)
        rows = network.relation_vectors(step, asked, torch.zeros_like(every), every)
    assert rows[:, 0].tolist() == [0, 1, 0, 10, 0, 0]
    assert (rows == rows[:, :1]).all()
