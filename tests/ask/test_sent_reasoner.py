"""A reasoner is copied, and goes to another process as the place of its run; what cannot go says why."""

import copy
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from dpmpn import Reasoner, RunError, dataset_from_tuples
from dpmpn.data.graph import KnowledgeGraph

FACTS = [
    *((f"child{i}", "mother", f"mother{i}") for i in range(5)),
    *((f"mother{i}", "husband", f"father{i}") for i in range(5)),
    *((f"child{i}", "father", f"father{i}") for i in range(4)),
]
SETTINGS = {"model": "strong", "n_dims": 4, "threads": 1, "n_steps_in_agnn": 2}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sent") / "run"
    Reasoner(**SETTINGS).fit(dataset_from_tuples(FACTS), path)
    return path


def answers(reasoner: Reasoner) -> list[tuple[str, float]]:
    found = reasoner.predict("child4", "father", any_role=True)
    return [(answer.answer, answer.score) for answer in found]


def test_it_is_pickled_as_its_folder_and_settings(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(run.parent)
    reasoner = Reasoner.load("run", ask_attending_to_per_step=3)
    expected = answers(reasoner)
    sent = pickle.dumps(reasoner)
    assert len(sent) < 2000  # not the graph, not the weights
    monkeypatch.chdir("/")
    again = pickle.loads(sent)
    assert answers(again) == expected
    assert again.config == reasoner.config


def test_another_process_answers_the_same(run: Path) -> None:
    reasoner = Reasoner.load(run)
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        assert pool.submit(answers, reasoner).result() == answers(reasoner)


def test_copies_answer_the_same(run: Path) -> None:
    reasoner = Reasoner.load(run)
    expected = answers(reasoner)
    for other in (copy.copy(reasoner), copy.deepcopy(reasoner), copy.deepcopy(Reasoner.load(run))):
        assert answers(other) == expected
    changed = reasoner.with_facts([("child9", "mother", "mother1")])
    assert answers(copy.deepcopy(changed)) == answers(changed)


def test_a_copy_keeps_a_temporary_run(run: Path) -> None:
    reasoner = Reasoner(**SETTINGS).fit(dataset_from_tuples(FACTS))
    expected, other = answers(reasoner), copy.deepcopy(reasoner)
    del reasoner
    assert answers(other) == expected
    with pytest.raises(RunError, match=r"temporary folder.*save it"):
        pickle.dumps(other)


def test_one_that_was_not_trained_yet(run: Path) -> None:
    again = pickle.loads(pickle.dumps(Reasoner("countries", n_dims=7)))
    with pytest.raises(RunError, match="has not been trained"):
        again.predict("a", "b")
    assert copy.deepcopy(again)._settings == {"n_dims": 7}


def test_facts_in_memory_do_not_go(run: Path) -> None:
    reasoner = Reasoner.load(run)
    for changed in (reasoner.with_facts(FACTS[:1]), reasoner.on(dataset_from_tuples(FACTS))):
        with pytest.raises(RunError, match=r"cannot be sent.*send the one it was made from"):
            pickle.dumps(changed)


def test_answers_and_graphs_go_as_they_are(run: Path) -> None:
    reasoner = Reasoner.load(run)
    found = reasoner.predict("child4", "father", any_role=True)
    again = pickle.loads(pickle.dumps(found))
    assert list(again) == list(found)
    assert again.explain().text() == found.explain().text()
    graph = pickle.loads(pickle.dumps(reasoner.graph))
    assert isinstance(graph, KnowledgeGraph) and graph.entities.names == reasoner.graph.entities.names
    assert not graph.tails.flags.writeable and (graph.tails == reasoner.graph.tails).all()


def test_a_training_that_fails_leaves_the_model_before_it(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reasoner = Reasoner(**SETTINGS).fit(dataset_from_tuples(FACTS))

    def fails(*_, **__):
        raise RunError("the disk is full")

    monkeypatch.setattr("dpmpn.train.trainer.train", fails)
    with pytest.raises(RunError, match="the disk is full"):
        reasoner.fit(dataset_from_tuples(FACTS))
    assert answers(reasoner)
