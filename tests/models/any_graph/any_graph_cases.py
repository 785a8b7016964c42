"""Networks for the tests of the model for any graph."""

import numpy as np
import torch

from dpmpn.config import Config
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.engine import Engine
from dpmpn.models import build_model


def any_graph_config(**changes) -> Config:
    small = {
        "model": "any-graph",
        "relation_vectors": "query",
        "n_dims": 6,
        "n_steps_in_agnn": 3,
        "threads": 1,
    }
    return Config().replace(**small | changes)


def any_graph_network(config, n_relations=0, seed=5):
    """Larger values than the initial ones, many of which are zeros, so that every term counts."""
    network = build_model(0, n_relations, config.model, seed).double()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    return network


def any_graph_engine(graph, config, n_relations=0, seed=5, **options) -> Engine:
    return Engine(any_graph_network(config, n_relations, seed), graph, config, **options)


def facts_of(graph) -> np.ndarray:
    """The facts that were given, without inverses."""
    every = np.arange(graph.n_edges)
    triples = np.stack([graph.edge_heads(every), graph.relations, graph.tails], 1)
    return triples[graph.relations < graph.n_forward]


def relations_renumbered(graph, new_id) -> KnowledgeGraph:
    """The same graph, with relations in another order; the inverse of r is still r + n_forward."""
    facts = facts_of(graph)
    facts[:, 1] = new_id[facts[:, 1]]
    return KnowledgeGraph.from_ids(facts, graph.n_entities, graph.n_forward)
