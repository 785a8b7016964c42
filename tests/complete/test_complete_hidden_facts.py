"""Probabilities of a model that has never seen the graph: some of the graph's own facts are hidden and asked for."""

import numpy as np
import pytest

from dpmpn.ask.measure import HIDDEN_SHARE
from dpmpn.complete import complete
from dpmpn.data.changed_graph import with_hidden
from dpmpn.data.importer import dataset_from_tuples
from dpmpn.errors import DataError
from dpmpn.reasoner.reasoner import Reasoner

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
    assert asked.calibration is None  # until somebody wants them
    calibration = asked.calibrate()
    assert calibration is not None and sum(calibration.cases) == 2 * round(HIDDEN_SHARE * len(FACTS))
    assert not len(asked.dataset.valid)  # of the graph that is asked nothing is hidden
    facts = complete(asked, top=5, min_probability=0.0)
    assert facts["probability"].null_count() == 0 and facts["probability"].is_between(0, 1).all()
    again = asked.calibrate(again=True)  # the same facts are hidden each time
    assert again is not None and again.to_dict() == calibration.to_dict()


def test_one_relation_alone_is_quicker() -> None:
    reasoner = Reasoner.pretrained(threads=1).on(
        [
            *((f"a{i % 80}", "r", f"b{(i * i) % 23}") for i in range(500)),
            *((f"b{i % 23}", "s", f"c{(3 * i) % 31}") for i in range(500)),
        ]
    )
    whole = reasoner.calibrate()
    alone = reasoner.calibrate(again=True, relation=0)
    assert whole is not None and alone is not None
    assert alone.asked < whole.asked and alone.cases[0] > 0 and not any(alone.cases[1:])


def test_validation_facts_go_first() -> None:
    dataset = dataset_from_tuples(FACTS[:-12], valid=FACTS[-12:])
    calibration = Reasoner.pretrained(threads=1).on(dataset).calibrate()
    assert calibration is not None and sum(calibration.cases) == 2 * 12


def test_a_graph_with_nothing_to_hide() -> None:
    reasoner = Reasoner.pretrained(threads=1).on([("a", "r", "b"), ("c", "r", "d")])
    assert reasoner.calibrate() is None
    with pytest.raises(DataError, match="too few facts of this graph are held out"):
        complete(reasoner, min_probability=0.5)
    assert complete(reasoner, top=3)["probability"].null_count() == len(complete(reasoner, top=3))
