"""Some batches of a training by the authors' rules: queries, hidden facts, mean loss, clipping and Adam together.

Each rule has a test of its own elsewhere; here a training is repeated by hand, and must end with the same weights.
"""

from pathlib import Path

import numpy as np
import pytest
import torch
from section3 import Edge, Settings, section3

from dpmpn.config import Config
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.data.importer import dataset_from_tuples
from dpmpn.engine.engine import Engine
from dpmpn.models import initial_model
from dpmpn.train.batches import TrainingQueries
from dpmpn.train.run_folder import RunFolder
from dpmpn.train.trainer import train
from dpmpn.train.validation import training_queries

BATCH, BATCHES, RATE, MANY = 5, 3, 0.01, 1000


class KerasAdam:
    """One variable: its gradient's norm is clipped, and epsilon stands beside the uncorrected root."""

    def __init__(self, value: np.ndarray) -> None:
        self.value, self.t = value.astype(np.float64), 0
        self.m, self.v = np.zeros_like(self.value), np.zeros_like(self.value)

    def step(self, gradient: np.ndarray, limit: float | None) -> bool:
        """Move; whether the gradient was clipped."""
        norm = np.sqrt((gradient**2).sum())
        is_clipped = limit is not None and norm > limit
        if is_clipped:
            gradient = gradient * (limit / norm)
        self.t += 1
        self.m = 0.9 * self.m + 0.1 * gradient
        self.v = 0.999 * self.v + 0.001 * gradient**2
        rate = RATE * np.sqrt(1 - 0.999**self.t) / (1 - 0.9**self.t)
        self.value = self.value - rate * self.m / (np.sqrt(self.v) + 1e-7)
        return is_clipped


def seen_edges(graph: KnowledgeGraph, asked: list[Edge], leak_removal: str) -> list[Edge]:
    """The graph's edges without those the batch must not see."""
    rows = graph.edge_heads(np.arange(graph.n_edges)), graph.relations, graph.tails
    facts = {*asked, *((tail, int(graph.inverse[relation]), head) for head, relation, tail in asked)}
    pairs = {(head, tail) for head, _, tail in facts}
    return [
        edge
        for edge in zip(*(row.tolist() for row in rows), strict=True)
        if (edge not in facts if leak_removal == "triples" else (edge[0], edge[2]) not in pairs)
    ]


@pytest.mark.parametrize(("leak_removal", "limit"), [("triples", 0.001), ("pairs", None)])
def test_a_training_repeated_by_hand(tmp_path: Path, leak_removal: str, limit: float | None) -> None:
    rng = np.random.default_rng(5)
    facts = sorted({(f"e{rng.integers(7)}", f"r{rng.integers(2)}", f"e{rng.integers(7)}") for _ in range(25)})
    dataset = dataset_from_tuples(facts, facts[:2], facts[:2], "tiny")
    config = Config().replace(
        n_dims=4, n_dims_att=3, n_steps_in_ignn=1, n_steps_in_agnn=3, max_sampling_per_step=10,
        max_attending_from_per_step=3, max_sampling_per_node=MANY, max_attending_to_per_step=4,
        batch_size=BATCH, learning_rate=RATE, grad_clipnorm=limit, leak_removal=leak_removal, seed=3, threads=1,
    )  # fmt: skip
    run = RunFolder.create(tmp_path / "run", dataset, config)
    train(run, dataset, config, max_queries=BATCH * BATCHES)

    graph, model = dataset.graph, initial_model(dataset.graph, config)
    queries = TrainingQueries(graph, training_queries(dataset, config), config)
    engine = Engine(model, graph, config)
    adam = {name: KerasAdam(p.detach().numpy()) for name, p in model.named_parameters()}
    clipped = 0
    for position in range(0, BATCH * BATCHES, BATCH):
        batch, targets = queries.at(position, BATCH)
        rows = batch.heads, batch.relations, targets.entities
        asked = list(zip(*(row.tolist() for row in rows), strict=True))
        drawn = [
            list(zip(x.heads.tolist(), x.relations.tolist(), x.tails.tolist(), strict=True))
            for x in batch.ignn_edges
        ]
        edges = seen_edges(graph, asked, leak_removal)
        assert set(drawn[0]) <= set(edges) and len(set(drawn[0])) == min(10, len(edges))
        weights = {name: p.detach().double().numpy() for name, p in model.named_parameters()}
        expected = section3(weights, edges, drawn, asked, Settings(3, 3, MANY, 4, "edge", "last"))
        gradients = engine.gradients(batch, targets)
        assert gradients.loss == pytest.approx(expected.loss, rel=1e-4)
        shared = model.shared_parameters()
        parts = gradients.shared.split([p.numel() for p in shared.values()])
        found = {name: g.view_as(p).numpy() for (name, p), g in zip(shared.items(), parts, strict=True)}
        found["entities"] = np.zeros(tuple(model.entities.shape))
        found["entities"][gradients.entities] = gradients.rows.numpy()
        for name, parameter in model.named_parameters():
            clipped += adam[name].step(found[name].astype(np.float64), limit)
            parameter.data.copy_(torch.from_numpy(adam[name].value))
    assert (clipped > 0) == (limit is not None)
    for name, trained in run.model("last").named_parameters():
        np.testing.assert_allclose(
            trained.detach().numpy(), adam[name].value, rtol=0, atol=1e-5, err_msg=name
        )
