"""Probabilities of a model that has never seen the graph: some of the graph's own facts are hidden and asked for."""

import numpy as np
import pytest

from dpmpn.ask.reasoner import Reasoner
from dpmpn.complete import calibration_of, complete
from dpmpn.complete.measure import HIDDEN_SHARE
from dpmpn.data.changed_graph import with_hidden
from dpmpn.data.importer import dataset_from_tuples
from dpmpn.errors import DataError

N = 60
FACTS = [
    *((f"child{i}", "mother", f"mother{i}") for i in range(N)),
    *((f"mother{i}", "husband", f"father{i}") for i in range(N)),
    *((f"child{i}", "father", f"father{i}") for i in range(N)),
]


@pytest.fixture(scope="module")
def asked() -> Reasoner:
    return Reasoner.pretrained(threads=1).on(FACTS)


def test_hidden_facts_are_validation_facts_and_no_edges() -> None:
    dataset = dataset_from_tuples(FACTS)
    hidden = with_hidden(dataset, HIDDEN_SHARE)
    assert len(hidden.valid) == round(HIDDEN_SHARE * len(FACTS))
    assert len(hidden.train) + len(hidden.valid) == len(FACTS)
    assert hidden.graph.n_edges == 2 * len(hidden.train)
    assert (hidden.graph.find_edges(*hidden.graph.either_way(hidden.valid).T) < 0).all()
    assert (np.diff(hidden.graph.offsets) > 0).all()  # nobody lost all facts
    assert hidden.graph.relation_names is dataset.graph.relation_names


def test_probabilities_are_measured_with_them(asked: Reasoner) -> None:
    calibration = calibration_of(asked)
    assert calibration is not None and 0 < calibration.facts <= round(HIDDEN_SHARE * len(FACTS))
    assert not len(asked.dataset.valid)  # of the graph that is asked nothing is hidden
    facts = complete(asked, top=5, min_probability=0.0)
    assert facts["probability"].null_count() == 0 and facts["probability"].is_between(0, 1).all()
    assert calibration_of(asked) == calibration  # the same facts are hidden each time


def test_validation_facts_go_first() -> None:
    dataset = dataset_from_tuples(FACTS[:-6], valid=FACTS[-6:])
    calibration = calibration_of(Reasoner.pretrained(threads=1).on(dataset))
    assert calibration is not None and calibration.facts <= 6


def test_a_graph_with_nothing_to_hide() -> None:
    reasoner = Reasoner.pretrained(threads=1).on([("a", "r", "b"), ("c", "r", "d")])
    assert calibration_of(reasoner) is None
    with pytest.raises(DataError, match="no fact of this graph can be hidden"):
        complete(reasoner, min_probability=0.5)
    assert complete(reasoner, top=3)["probability"].null_count() == len(complete(reasoner, top=3))
