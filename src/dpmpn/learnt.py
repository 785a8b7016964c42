"""Asks a model for facts that it does not see, and puts together the patterns that brought it to them."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from dpmpn.ask.core import TRACED, flow_of
from dpmpn.engine.batch import removed_edges
from dpmpn.errors import ConfigError, DataError
from dpmpn.explain.flow import AnswerFlow
from dpmpn.explain.learnt import LearntRelation, PatternCollection

if TYPE_CHECKING:
    from dpmpn.reasoner.reasoner import Reasoner

SAMPLE, TOP = 100, 20  # facts asked for, and patterns shown, of a relation

Tick = Callable[[int, int], None]
"""Told how many facts were asked for, and of how many."""


def learnt_relations(
    reasoner: "Reasoner",
    relations: Sequence[str] | None = None,
    sample: int = SAMPLE,
    top: int = TOP,
    inverse: bool = False,
    progress: Tick | None = None,
) -> Iterator[LearntRelation]:
    """What a model has learnt about each relation, one after the other; about all that have facts if none is named.

    Facts of the graph are drawn, and asked for as in training: those of a batch are hidden from it. So the answer
    that is explained is right, and the fact itself is never the reason.
    """
    if sample < 1 or top < 1:
        raise ConfigError(f"sample and top must be at least 1, not {sample} and {top}")
    plan = [
        (asked, facts_to_ask(reasoner, asked, sample))
        for asked in relations_asked(reasoner, relations, inverse)
    ]
    total, done = sum(len(facts) for _, facts in plan), 0
    for asked, facts in plan:
        if not len(facts) and relations is None:
            continue
        collection = PatternCollection(reasoner.graph, asked)
        for start in range(0, len(facts), TRACED):
            batch = facts[start : start + TRACED]
            collection.add_all(flows_to(reasoner, batch))
            done += len(batch)
            if progress is not None:
                progress(done, total)
        yield collection.relation(top, reasoner.known.validation_of(asked))


def relations_asked(reasoner: "Reasoner", relations: Sequence[str] | None, inverse: bool) -> list[int]:
    """The ids of relations as they are asked."""
    graph = reasoner.graph
    if relations is None:
        ids = [id for id in range(graph.n_forward) if not graph.is_inverse[id]]
    else:
        ids = list(
            dict.fromkeys(graph.relation_names.id(name, "relation", graph.n_forward) for name in relations)
        )
    if not inverse:
        return ids
    if none := [id for id in ids if graph.inverse[id] < 0]:
        name = graph.relation_names.name(none[0])
        raise DataError(f"relation '{name}' has no inverse in this graph, so it cannot be asked backwards")
    return [int(graph.inverse[id]) for id in ids]


def facts_to_ask(reasoner: "Reasoner", asked: int, sample: int) -> np.ndarray:
    """Edges of a relation, drawn at random by the relation alone: n x 3, head, relation and tail."""
    graph = reasoner.graph
    edges = np.flatnonzero(graph.relations == asked)
    if len(edges) > sample:
        edges = np.sort(np.random.default_rng(asked).choice(edges, sample, replace=False))
    return np.stack([graph.edge_heads(edges), np.full(len(edges), asked), graph.tails[edges]], 1)


def flows_to(reasoner: "Reasoner", facts: np.ndarray) -> list[AnswerFlow]:
    """How attention came to the tails of some facts, asked together while the graph does not hold them."""
    engine = reasoner.engine
    removed = removed_edges(engine.graph, facts, "triples")
    _, trace = engine.trace(engine.asking_batch(facts[:, 0], facts[:, 1], removed))
    return [AnswerFlow.to(flow_of(trace, query), tail) for query, tail in enumerate(facts[:, 2].tolist())]
