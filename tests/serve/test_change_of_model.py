"""A server whose model is changed while it is asked: every question is answered, and it says which model does."""

import threading
from pathlib import Path

import pytest
from serving import QUESTION, Gate, serving

import dpmpn
from dpmpn.reasoner.reasoner import Reasoner
from dpmpn.serve.app import Explorer
from dpmpn.serve.guard import LIMITS
from dpmpn.train.pretrained import shipped
from dpmpn.train.run_folder import RunFolder
from dpmpn.train.tuning import tuned_config

FACTS = [
    *((f"child{i}", "mother", f"mother{i}") for i in range(8)),
    *((f"mother{i}", "husband", f"father{i}") for i in range(8)),
    *((f"child{i}", "father", f"father{i}") for i in range(6)),
]
QUICK = {"n_epochs": 1, "batch_size": 8, "threads": 1}


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """The folder of a run that begins from the model for any graph, and was not trained yet."""
    dataset = dpmpn.dataset_from_tuples(FACTS, valid=[("child7", "father", "father7")], name="family")
    config, _ = tuned_config(dataset, shipped(), QUICK)
    return RunFolder.create(tmp_path / "run", dataset, config, shipped()).path


def tuned(run: Path) -> Reasoner:
    from dpmpn.train.trainer import train

    folder = RunFolder.open(run)
    train(folder, folder.dataset(), folder.config)
    return Reasoner.load(run).in_memory()


def test_every_question_is_answered_and_the_server_says_by_which_model(begun: Path) -> None:
    with serving(begun) as server:
        before = server.client.get("/api/v1/tuning").json()
        assert before == {"model": "any-graph", "state": "off"}
        assert server.client.get("/api/v1/model").json()["model"] == "any-graph"
        reasoner, codes, ended = tuned(begun), [], threading.Event()

        def ask() -> None:
            while not ended.is_set():
                codes.append(server.ask(f"child{len(codes) % 8}").status_code)

        asking = [threading.Thread(target=ask) for _ in range(3)]
        for thread in asking:
            thread.start()
        server.explorer.change(reasoner, begun)
        server.explorer.change(Reasoner.load(begun).in_memory(), begun)
        ended.set()
        for thread in asking:
            thread.join(30)
        assert len(codes) > 3 and set(codes) == {200}
        card = server.client.get("/api/v1/model").json()
        assert (
            card["model"] == "tuned"
            and card["metrics"]["mrr"] > 0
            and card["versions"]["trained_with"]["start"]
        )
        answer = server.ask(**QUESTION).json()["answers"][0]
        expected = server.explorer.reasoner.predict("child7", "father", top=1)[0]
        assert answer["name"] == expected.answer


def test_what_was_asked_before_is_answered_by_the_old_model(begun: Path) -> None:
    with serving(begun) as server:
        reasoner, replies = tuned(begun), []
        with Gate(server) as gate:
            asking = threading.Thread(target=lambda: replies.append(server.ask("child1")))
            asking.start()
            assert gate.held.wait(30)
            changing = threading.Thread(target=server.explorer.change, args=(reasoner, begun))
            changing.start()
            while server.explorer.reasoner is not reasoner:
                changing.join(0.05)
            assert server.ask("child2").status_code == 200  # by the new one, while the old one is held
            assert not replies
            gate.open()
            asking.join(30)
            changing.join(30)
        assert replies[0].status_code == 200


def test_a_model_that_comes_after_the_end_changes_nothing(begun: Path) -> None:
    explorer = Explorer(Reasoner.load(begun).in_memory(), None, LIMITS)
    explorer.close()
    explorer.change(Reasoner.load(begun).in_memory(), None)
    assert not explorer.engine.is_alive
