"""Explanations of reasoning that is written down by hand, so that pictures of it can be tested without a model."""

from dataclasses import replace

import numpy as np

from dpmpn.config import Horizon
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.explain.explanation import Prediction, Question
from dpmpn.explain.flow import AnswerFlow, QueryFlow, StepFlow
from dpmpn.render.explanation import Explanation

Move = tuple[str, str, str, float]  # from, relation ("=" waits, "^r" goes against r), to, flow

SERBIA: list[list[Move]] = [
    [
        ("Serbia", "^neighbour", "Kosovo", 0.5),
        ("Serbia", "neighbour", "Hungary", 0.3),
        ("Serbia", "=", "Serbia", 0.2),
    ],
    [
        ("Kosovo", "region", "Europe", 0.3),
        ("Kosovo", "=", "Kosovo", 0.2),
        ("Hungary", "region", "Europe", 0.1),
        ("Hungary", "capital", "Budapest", 0.1),
        ("Hungary", "region", "Asia", 0.1),
        ("Serbia", "^neighbour", "Kosovo", 0.2),
    ],
    [
        ("Europe", "=", "Europe", 0.4),
        ("Kosovo", "region", "Europe", 0.4),
        ("Budapest", "=", "Budapest", 0.1),
        ("Asia", "=", "Asia", 0.1),
    ],
]


def explained(
    steps: list[list[Move]] = SERBIA,
    head: str = "Serbia",
    relation: str = "region",
    answer: str = "Europe",
    rename: dict[str, str] | None = None,
) -> Explanation:
    """The explanation of an answer to which the flows of some steps led; entities and relations may be renamed."""
    names = rename or {}

    def called(name: str) -> str:
        return "^" + called(name[1:]) if name.startswith("^") else names.get(name, name)

    moves = [[(called(a), called(r), called(b), flow) for a, r, b, flow in step] for step in steps]
    head, relation, answer = called(head), called(relation), called(answer)
    facts = [
        (b, r[1:], a) if r.startswith("^") else (a, r, b) for step in moves for a, r, b, _ in step if r != "="
    ]
    graph = KnowledgeGraph.from_tuples(list(dict.fromkeys(facts)))
    query = _query_flow(graph, moves, head)
    probability = float(query.attention[-1, query.index(graph.entities.id(answer))])
    return Explanation(
        Question(head, relation, False, head, relation),
        Prediction(answer, probability, 1, False, answer, 0.0, "test"),
        replace(Horizon(), max_attending_from_per_step=20),
        graph,
        AnswerFlow.to(query, graph.entities.id(answer)),
    )


def _query_flow(graph: KnowledgeGraph, moves: list[list[Move]], head: str) -> QueryFlow:
    """Nodes stand at their entities' ids: every entity is one."""
    shape = len(moves), graph.n_entities
    attention = np.zeros((shape[0] + 1, shape[1]))
    attention[0, graph.entities.id(head)] = 1.0
    attended_from = np.zeros(shape, bool)
    steps = []
    for t, step in enumerate(moves):
        heads, tails = (np.array([graph.entities.id(move[end]) for move in step]) for end in (0, 2))
        flow = np.array([move[3] for move in step])
        np.add.at(attention[t + 1], tails, flow)
        attended_from[t, heads] = True
        steps.append(StepFlow(heads, np.array([_relation(graph, move[1]) for move in step]), tails, flow))
    return QueryFlow(
        graph.entities.id(head),
        np.arange(shape[1]),
        attention,
        attention,
        attended_from,
        attention[1:] > 0,
        tuple(steps),
    )


def _relation(graph: KnowledgeGraph, relation: str) -> int:
    if relation == "=":
        return graph.self_loop
    if relation.startswith("^"):
        return int(graph.inverse[graph.relation_names.id(relation[1:], "relation")])
    return graph.relation_names.id(relation, "relation")
