"""The statistics of relations by their definition: tables of entities and relations, and of pairs and relations."""

import numpy as np

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.models.any_graph.statistics import RelationStatistics


def statistics_reference(graph: KnowledgeGraph) -> RelationStatistics:
    """What counting must come to; for small graphs."""
    heads, n = graph.all_heads().astype(np.int64), graph.n_relations
    has = np.zeros((graph.n_entities, n), np.int64)
    has[heads, graph.relations] = 1  # entities x relations
    pairs, of_pair = np.unique(heads * graph.n_entities + graph.tails, return_inverse=True)
    joins = np.zeros((len(pairs), n), np.int64)
    joins[of_pair, graph.relations] = 1  # pairs of entities x relations
    joined = joins.T @ joins
    np.fill_diagonal(joined, 0)  # a relation does not repeat itself
    return RelationStatistics(has.T @ has, joined, joins.sum(0), int(has.any(1).sum()), graph.inverse)
