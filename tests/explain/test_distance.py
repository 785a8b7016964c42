"""Distances in facts agree with networkx, whichever way round edges can be followed."""

import networkx as nx
import numpy as np
import pytest

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.explain.distance import FARTHEST, NOT_CONNECTED, TOO_FAR, Levels, distances_to, facts_between


def as_digraph(graph: KnowledgeGraph) -> nx.DiGraph:
    """The graph's edges, without their relations."""
    digraph = nx.DiGraph()
    digraph.add_nodes_from(range(graph.n_entities))
    heads = graph.edge_heads(np.arange(graph.n_edges))
    digraph.add_edges_from(zip(heads.tolist(), graph.tails.tolist(), strict=True))
    return digraph


@pytest.mark.parametrize("add_inverses", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_distances_are_those_of_networkx(add_inverses: bool, seed: int) -> None:
    generator = np.random.default_rng(seed)
    triples = np.stack([generator.integers(0, n, 22) for n in (20, 2, 20)], 1)
    graph = KnowledgeGraph.from_ids(triples, 20, 2, add_inverses)
    lengths = dict(nx.all_pairs_shortest_path_length(as_digraph(graph)))
    for tail in range(20):
        near = distances_to(graph, tail, farthest=3)
        for head in range(20):
            length = lengths[head].get(tail, NOT_CONNECTED)
            assert facts_between(graph, head, tail) == length
            assert near[head] == (length if 0 <= length <= 3 else TOO_FAR)


@pytest.mark.parametrize("add_inverses", [True, False])
def test_levels_hold_what_leads_to_an_entity(add_inverses: bool) -> None:
    graph = KnowledgeGraph.from_tuples(
        [("a", "r", "b"), ("b", "r", "c"), ("d", "r", "c"), ("c", "r", "e")], add_inverses
    )
    levels = Levels(graph, graph.entities.id("c"), towards=True)
    found = [[graph.entities.name(entity) for entity in levels.advance()] for _ in range(3)]
    assert found == ([["b", "d", "e"], ["a"], []] if add_inverses else [["b", "d"], ["a"], []])


def test_very_long_chains_are_not_followed_to_their_end() -> None:
    n = FARTHEST + 10
    chain = np.array([(i, 0, i + 1) for i in range(n)])
    graph = KnowledgeGraph.from_ids(chain, n + 1, 1)
    assert facts_between(graph, 0, FARTHEST) == FARTHEST
    assert facts_between(graph, 0, FARTHEST + 1) is None
