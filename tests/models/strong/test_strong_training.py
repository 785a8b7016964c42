"""Training the stronger model: it learns, goes on where it stopped, and keeps nothing of single entities."""

import dataclasses
import json

import pytest
import torch
from safetensors.torch import load_file
from strong_cases import strong_config

from dpmpn.data.importer import dataset_from_tuples, load_dataset
from dpmpn.models import build_model
from dpmpn.train.run_folder import RunFolder, read_lines
from dpmpn.train.trainer import train

TIMES = ("seconds", "cpu_seconds", "elapsed_seconds", "queries_per_s")


@pytest.fixture(scope="module")
def countries():
    return load_dataset("countries")


@pytest.fixture(scope="module")
def cycles():
    """A ring with shortcuts: 53 entities, of which no tensor of the network has as many of anything."""
    facts = [
        (f"e{i}", f"r{r}", f"e{(i + step) % 53}") for i in range(53) for r, step in enumerate((1, 1, 4, 9))
    ]
    return dataset_from_tuples(facts[12:], facts[:8], facts[8:12], "cycles")


def learning_config(**changes):
    return strong_config(
        **{
            "schedule": "linear",
            "weight_average": 0.99,
            "joint_targets": 4,
            "batch_size": 16,
            "learning_rate": 0.01,
            "n_epochs": 2,
            "validation_queries": 8,
            "checkpoint_every_seconds": 3600,
            **changes,
        }
    )


def test_the_loss_falls_on_the_bundled_dataset(tmp_path, countries):
    config = learning_config(n_dims=8, batch_size=32)
    run = RunFolder.create(tmp_path / "run", countries, config)
    result = train(run, countries, config, max_queries=1600)
    losses = [line["loss"] for line in read_lines(run.metrics) if line["kind"] == "train"]
    assert losses[-1] < 0.75 * losses[0]
    assert result.position == 1600
    assert result.best.mrr > 0.02  # by chance 0.01


def tensors_of(run, kind="checkpoint"):
    """Tensors of the last or best checkpoint, by name."""
    return load_file(run.path / json.loads((run.path / f"{kind}.json").read_text())["file"])


def timeless(run):
    return [{k: v for k, v in line.items() if k not in TIMES} for line in read_lines(run.metrics)]


def test_a_run_that_went_on_equals_an_unbroken_one(tmp_path, cycles):
    config = learning_config()
    whole, broken = (RunFolder.create(tmp_path / name, cycles, config) for name in ("whole", "broken"))
    expected = train(whole, cycles, config)
    epoch = expected.total // 2
    seen = []
    first = train(
        broken,
        cycles,
        config,
        progress=lambda p: seen.append(p.position),
        stop=lambda: max(seen, default=0) >= epoch,
    )
    assert (first.stopped_because, first.position) == ("interrupted", epoch)
    result = train(broken, cycles, config, resume=True)
    assert result.position == result.total == expected.total
    assert dataclasses.asdict(result.best) == dataclasses.asdict(expected.best)
    for kind in ("checkpoint", "best"):
        found, wanted = tensors_of(broken, kind), tensors_of(whole, kind)
        assert found.keys() == wanted.keys()
        assert all(torch.equal(found[name], wanted[name]) for name in wanted)
    assert timeless(broken) == timeless(whole)


def test_what_is_kept_is_the_average_of_weights(tmp_path, cycles):
    config = learning_config(n_epochs=1)
    run = RunFolder.create(tmp_path / "run", cycles, config)
    train(run, cycles, config)
    last, best = tensors_of(run), tensors_of(run, "best")
    for name, tensor in best.items():
        assert torch.equal(tensor, last["optimiser.average." + name.removeprefix("network.")])
    assert not torch.equal(best["network.queries"], last["network.queries"])


def test_a_checkpoint_has_no_row_for_each_entity(tmp_path, cycles):
    config = learning_config(n_epochs=0.1)
    run = RunFolder.create(tmp_path / "run", cycles, config)
    train(run, cycles, config)
    n_entities = cycles.graph.n_entities
    for kind in ("checkpoint", "best"):
        tensors = tensors_of(run, kind)
        assert tensors["network.entities"].numel() == 0
        assert [name for name, tensor in tensors.items() if n_entities in tensor.shape] == []


def test_the_size_of_the_network_follows_from_relations_alone(cycles):
    few = dataset_from_tuples([("a", f"r{r}", "b") for r in range(4)], [], [], "few").graph
    config = learning_config().model
    assert few.n_relations == cycles.graph.n_relations and few.n_entities != cycles.graph.n_entities
    small, large = (build_model(g.n_entities, g.n_relations, config, 7) for g in (few, cycles.graph))
    assert sum(p.numel() for p in small.parameters()) > 0
    for (name, one), (other_name, other) in zip(
        small.named_parameters(), large.named_parameters(), strict=True
    ):
        assert name == other_name and torch.equal(one, other)
