"""Checkpoints come back exactly, and whatever is wrong with one is said."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from dpmpn.config import TrainingConfig
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.learning import Gradients
from dpmpn.errors import RunError
from dpmpn.models import build_model
from dpmpn.train.checkpoint import (
    LoopState,
    LossWindow,
    Validation,
    check_size,
    has_checkpoint,
    load_checkpoint,
    load_network,
    loop_state,
    save_best,
    save_checkpoint,
)
from dpmpn.train.optimiser import Adam

STATE = LoopState(
    position=42,
    elapsed_seconds=0.1 + 0.2,
    cpu_seconds=1 / 3,
    best=Validation(21, 0.4321, {"coverage": 0.5}),
    validations_without_improvement=2,
    validated_position=35,
    validation_due=True,
    lines=4,
    window=LossWindow(14, 1e-17 + 2 / 3, 9, 0.7, 20),
)


def make(config, seed, adam="dense"):
    network = build_model(6, 4, config.model, seed)
    return network, Adam(network, TrainingConfig(adam=adam))


def step(network, optimiser, seed=0):
    torch.manual_seed(seed)
    n_shared = sum(parameter.numel() for parameter in network.shared_parameters().values())
    rows = torch.randn(3, network.entities.shape[1])
    optimiser.step(Gradients(1.0, 2, torch.randn(n_shared), np.array([0, 2, 5]), rows))


def equal(one, other):
    return all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


@pytest.fixture
def saved(tmp_path, config):
    network, optimiser = make(config, 1)
    step(network, optimiser)
    save_checkpoint(tmp_path, network, optimiser, STATE)
    return tmp_path


def refusal(folder, config, **changes):
    with pytest.raises(RunError) as caught:
        load_checkpoint(folder, *make(config.replace(**changes), 2), loop_state)
    assert str(folder) in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("adam", ["dense", "rows"])
def test_everything_comes_back_and_goes_on_the_same(tmp_path, config, adam):
    network, optimiser = make(config, 1, adam)
    step(network, optimiser)
    assert not has_checkpoint(tmp_path)
    save_checkpoint(tmp_path, network, optimiser, STATE)
    assert has_checkpoint(tmp_path)
    other_network, other_optimiser = make(config, 2, adam)
    assert load_checkpoint(tmp_path, other_network, other_optimiser, loop_state) == STATE
    assert equal(network, other_network)
    for state in (network, optimiser), (other_network, other_optimiser):
        step(*state, seed=5)
    assert equal(network, other_network)
    assert other_optimiser.step_count == 2


def test_older_tensors_go_and_leftovers_of_a_killed_run_too(saved, config):
    (saved / ".dpmpn-0123456789abcdef.partial").write_bytes(b"cut off")
    network, optimiser = make(config, 1)
    save_best(saved, network, 40, STATE.best)
    save_checkpoint(saved, network, optimiser, LoopState(position=77))
    names = {file.name for file in saved.iterdir()}
    tensors = {"checkpoint-000000000077.safetensors", "best-000000000040.safetensors"}
    assert names == tensors | {"checkpoint.json", "best.json"}


def test_best_is_the_network_alone_and_last_without_one(saved, config):
    network, _ = make(config, 9)
    assert load_network(saved, network, "best") == 42
    best, _ = make(config, 3)
    save_best(saved, best, 21, STATE.best)
    assert load_network(saved, network, "best") == 21
    assert equal(network, best)
    assert load_network(saved, network, "last") == 42
    assert not equal(network, best)
    assert json.loads((saved / "best.json").read_text())["validation"]["mrr"] == 0.4321


def test_changed_cut_or_missing_tensors_are_refused(saved, config):
    file = next(saved.glob("*.safetensors"))
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert "SHA-256" in refusal(saved, config)
    file.write_bytes(content[:-10])
    assert "bytes instead of" in refusal(saved, config)
    file.unlink()
    assert "missing" in refusal(saved, config)


def test_tensors_that_do_not_fit_are_refused(saved, config):
    assert "'network.entities' is F32 (6, 8) instead of F32 (6, 16)" in refusal(saved, config, n_dims=16)
    with pytest.raises(RunError, match="last_step"):
        load_checkpoint(saved, *make(config, 1, "rows"), loop_state)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": "other"}, "format 'other'"),
        ({"version": 99}, "newer"),
        ({"version": True}, "version True"),
        ({"file": "../elsewhere.safetensors"}, "does not name its file"),
        ({"file": "best-" + "0" * 300 + ".safetensors"}, "does not name its file"),
        ({"position": None}, "'position' is None"),
        ({"position": -1}, "'position' is -1"),
        ({"window": None}, "'window' is None"),
        ({"window": {}}, "lacks 'queries'"),
        ({"elapsed_seconds": float("nan")}, "NaN is not a finite number"),
        ({"elapsed_seconds": 1e308}, "'elapsed_seconds' is 1e+308"),
        ({"lines": 1.5}, "'lines' is 1.5"),
        ({"best": {"position": 1, "mrr": "high", "summary": {}}}, "'mrr' is 'high'"),
    ],
)
def test_broken_manifests_are_refused(saved, config, change, said):
    path = saved / "checkpoint.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    assert said in refusal(saved, config)


@pytest.mark.parametrize("text", ["", "[]", '{"format":', "\x00", '{"a":' * 100_000, "1" * 10_000])
def test_manifests_that_are_no_json_objects_are_refused(saved, config, text):
    (saved / "checkpoint.json").write_text(text)
    refusal(saved, config)


def test_a_position_that_comes_twice_does_not_overwrite_what_a_manifest_names(saved, config, monkeypatch):
    network, optimiser = make(config, 5)
    step(network, optimiser, seed=3)

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("dpmpn.train.checkpoint.write_json", killed)
        with pytest.raises(KeyboardInterrupt):
            save_checkpoint(saved, network, optimiser, STATE)
    assert load_checkpoint(saved, *make(config, 2), loop_state) == STATE
    for _ in range(3):
        save_checkpoint(saved, network, optimiser, STATE)
        loaded, _ = make(config, 2)
        load_network(saved, loaded, "last")
        assert equal(loaded, network)
        assert len(list(saved.glob("*.safetensors"))) == 1


def test_a_network_takes_memory_only_once_it_can_fit(saved, config):
    graph = KnowledgeGraph.from_tuples([(f"e{i}", f"r{i % 2}", f"e{i + 1}") for i in range(5)])
    assert (graph.n_entities, graph.n_relations) == (6, 4)
    values = sum(parameter.numel() for parameter in make(config, 1)[0].parameters())
    least = config.model.least_values(graph)
    assert values / 30 < least < values
    check_size(saved, "best", least)
    for n_dims in (10**3, 10**5):
        with pytest.raises(RunError, match="smaller than a network"):
            check_size(saved, "last", config.replace(n_dims=n_dims).model.least_values(graph))


def test_others_read_what_was_written(saved, config):
    network, _ = make(config, 1)
    load_network(saved, network, "last")
    tensors = load_file(next(saved.glob("*.safetensors")))
    assert all(torch.equal(tensors[f"network.{name}"], x) for name, x in network.state_dict().items())
    assert tensors["optimiser.step_count"].shape == ()


def test_no_checkpoint_says_what_to_do(tmp_path, config):
    assert "--resume" in refusal(tmp_path, config)
