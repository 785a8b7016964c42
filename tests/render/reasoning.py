"""Explanations of reasoning that is written down by hand, so that pictures of it can be tested without a model."""

import small_reasoning
from small_reasoning import Move

from dpmpn.engine.settings import Horizon
from dpmpn.render.formats import Explanation

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
    return small_reasoning.explained(
        answer,
        facts=list(dict.fromkeys(facts)),
        moves=moves,
        head=head,
        relation=relation,
        horizon=Horizon(max_attending_from_per_step=20),
        held_out="test",
    )
