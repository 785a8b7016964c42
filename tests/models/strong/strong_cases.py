"""Graphs, networks and targets for the tests of the stronger model."""

import itertools

import numpy as np
import torch

from dpmpn.config import Config, all_settings
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.engine import Engine
from dpmpn.engine.learning import Targets
from dpmpn.models import build_model

WIDE = {
    "max_attending_from_per_step": 1000,
    "max_sampling_per_node": 1000,
    "max_attending_to_per_step": 1000,
}
"""A horizon that leaves nothing out of a small graph."""

_CHOICES = {leaf.key: leaf.choices for leaf in all_settings() if leaf.section == "model"}
SWITCHES = {key: _CHOICES[key] for key in ("relation_vectors", "profiles", "gates") if key in _CHOICES}
"""Parts of the model that can be changed or left out."""
VARIANTS = [dict(zip(SWITCHES, chosen, strict=True)) for chosen in itertools.product(*SWITCHES.values())]


def random_graph(rng, n_entities, n_relations, n_triples):
    """A graph with a hub (node 0), parallel edges, self-loop facts; the last two nodes have no edge."""
    some = max(1, n_entities - 2)
    heads = rng.integers(0, some, n_triples)
    tails = np.where(rng.random(n_triples) < 0.3, 0, rng.integers(0, some, n_triples))
    triples = np.stack([heads, rng.integers(0, n_relations, n_triples), tails], 1)
    return KnowledgeGraph.from_ids(triples, n_entities, n_relations)


def strong_config(**changes) -> Config:
    small = {"model": "strong", "n_dims": 6, "n_steps_in_agnn": 3, "threads": 1}
    return Config().replace(**small | changes)


def strong_network(graph, config, seed=5, dtype=torch.float64):
    """Larger values than the initial ones, many of which are zeros, so that every term counts."""
    network = build_model(graph.n_entities, graph.n_relations, config.model, seed).to(dtype)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            parameter.add_(0.2 * noise.to(dtype))
    return network


def strong_engine(graph, config, seed=5, **options) -> Engine:
    return Engine(strong_network(graph, config, seed), graph, config, **options)


def random_engine(seed, n_queries=9, **changes):
    """An engine on a random graph, with heads and relations of questions."""
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, int(rng.integers(2, 40)), 3, int(rng.integers(1, 150)))
    engine = strong_engine(graph, strong_config(**changes), seed)
    heads = rng.integers(0, graph.n_entities, n_queries)
    return engine, heads, rng.integers(0, graph.n_relations, n_queries)


def random_targets(rng, n_queries, n_entities, most=3):
    """Up to `most` answers of each query, at least one in all, and some that are known."""

    def rows(least):
        size = [
            int(rng.integers(min(least, n_entities), min(most, n_entities) + 1)) for _ in range(n_queries)
        ]
        found = [np.sort(rng.choice(n_entities, n, replace=False)) for n in size]
        return np.concatenate([[0], np.cumsum(size)]), np.concatenate(found).astype(np.int64)

    answers, known = rows(0), rows(0)
    return Targets(*(answers if len(answers[1]) else rows(1)), *known)


def by_query(answer):
    """Nodes and probabilities of each query."""
    parts = [slice(a, b) for a, b in itertools.pairwise(answer.offsets)]
    return [(answer.nodes[part], answer.attention[part].numpy()) for part in parts]


def assert_same_gradients(found, expected, network, rtol=1e-7):
    """Each parameter's gradients, compared on the scale of the largest of them."""
    shared = network.shared_parameters()
    sizes = [parameter.numel() for parameter in shared.values()]
    parts = found.shared.split(sizes), expected.shared.split(sizes)
    for name, one, other in zip(shared, *parts, strict=True):
        if not len(other):
            continue
        scale = other.abs().max().clamp(min=1e-6)
        torch.testing.assert_close(
            one / scale, other / scale, rtol=rtol, atol=1e-8, msg=lambda m, n=name: f"{n}: {m}"
        )
