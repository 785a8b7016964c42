"""Reasoning to explain: a small one written down by hand, with known shares, and one of a tiny trained model."""

from dataclasses import replace
from functools import cache

import numpy as np
import polars as pl

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.data.sources.base import LABELS
from dpmpn.engine.settings import Horizon
from dpmpn.explain.explanation import Prediction, Question
from dpmpn.explain.flow import AnswerFlow, QueryFlow, StepFlow
from dpmpn.reasoner.reasoner import Reasoner
from dpmpn.render.formats import Explanation

Move = tuple[str, str, str, float]  # from, relation ("=" waits, "^r" goes against r), to, flow

FACTS = [
    ("Kosovo", "borders", "Serbia"),
    ("Serbia", "borders", "Kosovo"),
    ("Kosovo", "in", "Europe"),
    ("Hungary", "borders", "Serbia"),
    ("Hungary", "in", "Europe"),
]
# Of Europe's 0.8 came 0.2 through Hungary and 0.6 through Kosovo, and there 4/7 against one fact and 3/7 along another.
MOVES: list[list[Move]] = [
    [
        ("Serbia", "^borders", "Kosovo", 0.4),
        ("Serbia", "borders", "Kosovo", 0.3),
        ("Serbia", "^borders", "Hungary", 0.2),
        ("Serbia", "=", "Serbia", 0.1),
    ],
    [
        ("Kosovo", "in", "Europe", 0.6),
        ("Kosovo", "=", "Kosovo", 0.1),
        ("Hungary", "in", "Europe", 0.2),
        ("Serbia", "=", "Serbia", 0.1),
    ],
]

MEASURED = {
    "probability": 0.62,
    "probability_low": 0.4,
    "probability_high": 0.998,
    "probability_if_missing": 0.87,
    "cases": 1200,
}


def explained(
    answer: str = "Europe",
    labels: dict[str, str] | None = None,
    facts: list[tuple[str, str, str]] = FACTS,
    moves: list[list[Move]] = MOVES,
    head: str = "Serbia",
    relation: str = "in",
    inverse: bool = False,
    add_inverses: bool = True,
    prior: float | None = None,
    horizon: Horizon = Horizon(),  # noqa: B008
    types: dict[str, str] | None = None,
    **prediction: object,
) -> Explanation:
    """The explanation of an answer to which the given flows led."""
    graph = KnowledgeGraph.from_tuples(facts, add_inverses)
    if labels:
        rows = [(id, name, None, (types or {}).get(id)) for id, name in labels.items()]
        graph = graph.labelled(pl.DataFrame(rows, LABELS, orient="row"))
    names, relations = graph.entities, graph.relation_names
    flow = _flow(graph, moves, names.id(head))
    entity = names.id(answer)
    given = Prediction(answer, float(flow.attention[-1, entity]), 1, False, names.label(entity), 0.0)
    return Explanation(
        Question(
            head,
            relation,
            inverse,
            names.label(names.id(head)),
            relations.label(relations.id(relation, "relation")),
        ),
        replace(given, **prediction),  # type: ignore[arg-type]
        horizon,
        graph,
        AnswerFlow.to(flow, entity),
        prior,
    )


def _flow(graph: KnowledgeGraph, moves: list[list[Move]], head: int) -> QueryFlow:
    """Every entity is a node, at the place of its id."""
    attention = np.zeros((len(moves) + 1, graph.n_entities))
    attention[0, head] = 1.0
    attended_from = np.zeros((len(moves), graph.n_entities), bool)
    steps = []
    for t, step in enumerate(moves):
        sources, targets = (np.array([graph.entities.id(move[end]) for move in step]) for end in (0, 2))
        flow = np.array([move[3] for move in step])
        np.add.at(attention[t + 1], targets, flow)
        attended_from[t, sources] = True
        relations = np.array([_relation(graph, move[1]) for move in step])
        steps.append(StepFlow(sources, relations, targets, flow))
    nodes = np.arange(graph.n_entities)
    return QueryFlow(head, nodes, attention, attention, attended_from, attention[1:] > 0, tuple(steps))


def _relation(graph: KnowledgeGraph, relation: str) -> int:
    if relation == "=":
        return graph.self_loop
    forward = graph.relation_names.id(relation.lstrip("^"), "relation")
    return int(graph.inverse[forward]) if relation.startswith("^") else forward


@cache
def reasoner() -> Reasoner:
    """A model that was trained for a moment on families."""
    from dpmpn import dataset_from_tuples

    train = [
        *((f"child{i}", "mother", f"mother{i}") for i in range(8)),
        *((f"mother{i}", "husband", f"father{i}") for i in range(8)),
        *((f"child{i}", "father", f"father{i}") for i in range(6)),
        *((f"child{i}", "friend", f"child{(i + 3) % 8}") for i in range(8)),
    ]
    held_out = [[("child6", "father", "father6")], [("child7", "father", "father7")]]
    return Reasoner(n_dims=6, n_steps_in_agnn=3, batch_size=10, threads=1, n_epochs=1).fit(
        dataset_from_tuples(train, *held_out, "family")
    )
