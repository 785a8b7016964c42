"""A model for any graph tuned to one: what it begins as, what it must not become, and where it says it came from."""

import json
import shutil

import numpy as np
import pytest
import torch

from dpmpn.data.importer import dataset_from_tuples
from dpmpn.engine.engine import Engine
from dpmpn.errors import ConfigError, RunError
from dpmpn.models import build_model
from dpmpn.reasoner.reasoner import Reasoner
from dpmpn.suitable_config import suitable_config
from dpmpn.train.pretrained import load_pretrained, write_pretrained
from dpmpn.train.run_folder import RunFolder, read_lines
from dpmpn.train.trainer import train
from dpmpn.train.tuning import first_model, start_named, tuned_config
from dpmpn.train.validation import Validator

QUICK = {
    "batch_size": 7,
    "n_epochs": 1.5,
    "validate_every_queries": 100,
    "checkpoint_every_seconds": 0,
    "max_attending_from_per_step": 10,
    "max_attending_to_per_step": 20,
    "threads": 1,
}


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """The folder of a tiny model for any graph, of random weights."""
    folder = tmp_path_factory.mktemp("weights") / "mine"
    folder.mkdir()
    config = start_named("any-graph").config.replace(n_dims=5, n_steps_in_agnn=2, n_relation_layers=1)
    write_pretrained(folder, build_model(0, 0, config.model, 3), config, {"made": "for a test"})
    return folder


@pytest.fixture(scope="module")
def start(weights):
    return load_pretrained(weights)


def tuned_run(path, dataset, start, **changes):
    config, _ = tuned_config(dataset, start, QUICK | changes)
    return RunFolder.create(path, dataset, config, start)


def outcome(run):
    times = {"seconds", "cpu_seconds", "queries_per_s"}
    return [{k: v for k, v in line.items() if k not in times} for line in read_lines(run.metrics)]


def test_it_begins_as_the_model_for_any_graph(dataset, start):
    config, _ = tuned_config(dataset, start, {"threads": 1})
    engines = [
        Engine(m, dataset.graph, config) for m in (start.model, first_model(start, dataset.graph, config))
    ]
    heads, relations = np.arange(6), np.arange(6)
    one, other = (engine.answer(engine.asking_batch(heads, relations)) for engine in engines)
    np.testing.assert_array_equal(one.nodes, other.nodes)
    torch.testing.assert_close(one.attention, other.attention)


def test_the_first_validation_is_of_what_it_begins_as(tmp_path, dataset, start):
    run = tuned_run(tmp_path / "run", dataset, start)
    train(run, dataset, run.config)
    first, *others = [line for line in outcome(run) if line["kind"] == "validation"]
    zero_shot = Engine(start.model, dataset.graph, run.config)
    expected = Validator(zero_shot, dataset, run.config, lambda: False).validate(0)
    assert (first["position"], first["best"]) == (0, True)
    assert first["mrr"] == pytest.approx(expected.mrr)
    assert max(line["mrr"] for line in others) > first["mrr"]


def test_it_is_never_worse_than_what_it_began_as(tmp_path, dataset, start, monkeypatch):
    scores = iter([0.5, 0.4, 0.3, 0.2, 0.1])
    measured = Validator.validate

    def falling(self, position):
        found = measured(self, position)
        found.mrr = next(scores)
        return found

    monkeypatch.setattr(Validator, "validate", falling)
    run = tuned_run(tmp_path / "run", dataset, start)
    best = train(run, dataset, run.config).best
    assert (best.position, best.mrr) == (0, 0.5)
    own = first_model(start, dataset.graph, run.config).state_dict()
    assert all(torch.equal(x, own[name]) for name, x in run.model("best").state_dict().items())
    assert not all(torch.equal(x, own[name]) for name, x in run.model("last").state_dict().items())


def test_ended_before_anything_was_saved_it_goes_on_the_same(tmp_path, dataset, start, monkeypatch):
    whole, broken = (tuned_run(tmp_path / name, dataset, start) for name in ("whole", "broken"))
    train(whole, dataset, whole.config)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Validator, "validate", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        train(broken, dataset, broken.config)
    assert not broken.has_weights()
    again = RunFolder.open(shutil.move(broken.path, tmp_path / "elsewhere"))
    train(again, again.dataset(), again.config, resume=True)
    assert outcome(again) == outcome(whole)
    for which in ("best", "last"):
        pairs = zip(again.model(which).parameters(), whole.model(which).parameters(), strict=True)
        assert all(torch.equal(a, b) for a, b in pairs)


def test_without_what_it_begins_from_it_does_not_begin(tmp_path, dataset, start):
    run = tuned_run(tmp_path / "run", dataset, start)
    shutil.rmtree(run.path / "start")
    with pytest.raises(RunError, match=r"start/weights.json is missing"):
        train(run, dataset, run.config)


def test_a_run_says_what_it_began_from(tmp_path, dataset, weights, start):
    run = tuned_run(tmp_path / "run", dataset, start)
    said = json.loads((run.path / "versions.json").read_text())
    assert (said["start"], said["start_sha256"]) == (
        "mine",
        json.loads((weights / "weights.json").read_text())["sha256"],
    )
    assert (run.path / "start" / "weights.safetensors").read_bytes() == (
        weights / "weights.safetensors"
    ).read_bytes()
    assert run.start().card == {"made": "for a test"}
    assert start_named("any-graph").name == "any-graph"


def test_sizes_are_those_of_the_weights_and_the_rest_suits_the_graph(dataset, start):
    config, reasons = tuned_config(dataset, start, {"batch_size": "9"})
    model = config.model
    assert (model.n_dims, model.n_steps_in_agnn, model.n_relation_layers) == (5, 2, 1)
    assert (model.relation_network, model.relation_vectors) == ("kept", "each_step")
    assert config.training.batch_size == 9
    assert config.training.learning_rate < suitable_config(dataset, "any-graph")[0].training.learning_rate
    assert sum(reason.startswith("n_dims = ") for reason in reasons) == 1
    assert "n_dims = 5: as in mine, which training begins from" in reasons


@pytest.mark.parametrize("setting", ["n_dims", "n_steps_in_agnn", "n_relation_layers"])
def test_sizes_that_the_weights_do_not_have_are_refused(dataset, start, setting):
    with pytest.raises(ConfigError, match=f"'{setting}' is . in the model that training begins from"):
        tuned_config(dataset, start, {setting: 8})
    with pytest.raises(ConfigError, match="plain"):
        tuned_config(dataset, start, {"relation_vectors": "plain"})


def test_what_is_no_model_for_any_graph_is_named(tmp_path, dataset, start):
    tuned_run(tmp_path / "run", dataset, start)
    (tmp_path / "file").write_text("")
    for name, says in (
        ("run", "is a run"),
        ("file", "is no folder"),
        ("none", "is not there"),
        ("", "no weights"),
    ):
        with pytest.raises(ConfigError, match=f"{says}.*--from takes any-graph"):
            start_named(str(tmp_path / name))


def test_many_relations_make_no_run_that_cannot_be_read(tmp_path, start):
    """Weights are fewer than pairs of relations."""
    facts = [(f"e{i}", f"r{i % 150}", f"e{i * 7 % 200}") for i in range(300)]
    run = tuned_run(tmp_path / "run", dataset_from_tuples(facts, name="many"), start)
    assert len(run.dataset().valid) == 0
    train(run, run.dataset(), run.config, max_queries=7)
    assert run.model("best").n_relations == 300
    assert read_lines(run.metrics)[0]["kind"] == "train"  # there was nothing to validate with


def test_from_python(tmp_path, dataset, weights):
    reasoner = Reasoner.pretrained(weights, **QUICK)
    assert reasoner.fit(dataset, out=tmp_path / "run") is reasoner
    assert not reasoner.is_pretrained and reasoner.config.model.n_dims == 5
    expected = reasoner.predict("e1", "r1", top=3, any_role=True)
    loaded = Reasoner.load(tmp_path / "run").predict("e1", "r1", top=3, any_role=True)
    assert [each.answer for each in loaded] == [each.answer for each in expected]
    reasoner.fit(dataset, out=tmp_path / "again")  # from where it began at first
    assert outcome(RunFolder.open(tmp_path / "again")) == outcome(RunFolder.open(tmp_path / "run"))


def test_a_run_that_is_not_trained_yet_answers_with_what_it_begins_from(tmp_path, dataset, start, weights):
    run = tuned_run(tmp_path / "run", dataset, start)
    reasoner, before = Reasoner.load(run.path, threads=1), run.identity()
    head, relation, _ = (int(part) for part in dataset.train[0])
    names = dataset.graph.entities.names[head], dataset.graph.relation_names.names[relation]
    expected = Reasoner.pretrained(weights, threads=1).on(dataset).predict(*names, any_role=True)
    assert reasoner.is_pretrained and list(reasoner.predict(*names, any_role=True)) == list(expected)
    train(run, dataset, run.config)
    assert not Reasoner.load(run.path).is_pretrained and run.identity() != before
