"""Entities the model was not trained on: which they are, and how much of an answer depends on them."""

import numpy as np

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.answer import Answer
from dpmpn.engine.trace import ReasoningTrace


def unseen_entities(trained: KnowledgeGraph, graph: KnowledgeGraph) -> np.ndarray:
    """Which entities of a grown graph have no edge in the graph of the training."""
    unseen = np.ones(graph.n_entities, bool)
    unseen[np.flatnonzero(np.diff(trained.offsets))] = False
    unseen[trained.tails] = False  # where relations have no inverses, tails have no edge of their own
    return unseen


def through_unseen(answer: Answer, trace: ReasoningTrace, unseen: np.ndarray) -> np.ndarray:
    """The part of each answer's attention that came through unseen entities; 1 if the answer or its head is one.

    Of a node's attention a^{t+1} the part sum(flow * part of the sender) / a^{t+1} came that way; an unseen
    sender's part is 1.
    """
    n_entities = len(unseen)
    keys = np.arange(len(trace.heads)) * n_entities + trace.heads  # (query, node) as one number, ascending
    parts = unseen[trace.heads].astype(np.float64)
    for step in trace.steps:
        senders = parts[np.searchsorted(keys, step.from_query * n_entities + step.from_node)]
        flow = step.flow
        through = flow * np.repeat(senders, np.diff(step.edge_offsets))
        whole, part = (np.bincount(step.edge_slot, x, len(step.slot_node)) for x in (flow, through))
        parts = np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)
        parts[unseen[step.slot_node]] = 1.0
        query = np.repeat(np.arange(len(trace.heads)), np.diff(step.slot_offsets))
        keys = query * n_entities + step.slot_node
        order = np.argsort(keys)
        keys, parts = keys[order], parts[order]
    query = np.repeat(np.arange(len(trace.heads)), np.diff(answer.offsets))
    of_answer: np.ndarray = np.minimum(parts[np.searchsorted(keys, query * n_entities + answer.nodes)], 1.0)
    return of_answer
