"""Questions to begin with: those of facts that the graph does not state, of as many relations as there are."""

from typing import Any

import numpy as np

from dpmpn.ask.reasoner import Reasoner

_MOST = 8
_LOOKED_AT = 2000  # facts: more would only take longer


def example_questions(reasoner: Reasoner, most: int = _MOST) -> list[dict[str, Any]]:
    """Questions about well connected heads, from the test facts or, where there are none, from others."""
    graph, relation_names = reasoner.graph, reasoner.graph.relation_names
    splits = (reasoner.dataset.split(split) for split in ("test", "valid", "train"))
    facts = next((split for split in splits if len(split)), np.zeros((0, 3), np.int64))
    facts = facts[np.linspace(0, len(facts) - 1, min(len(facts), _LOOKED_AT)).astype(np.int64)]
    degrees = np.diff(graph.offsets)[facts[:, 0]]
    facts = facts[degrees > 0][np.argsort(-degrees[degrees > 0], kind="stable")]
    rounds = _nth_of_its_kind(facts[:, 1])
    questions = dict.fromkeys(
        (head, relation) for head, relation, _ in facts[np.argsort(rounds, kind="stable")].tolist()
    )
    return [
        {
            "head": graph.entities.name(head),
            "relation": relation_names.name(relation),
            "inverse": False,
            "head_label": graph.entities.label(head),
            "relation_label": relation_names.label(relation),
        }
        for head, relation in list(questions)[:most]
    ]


def _nth_of_its_kind(kinds: np.ndarray) -> np.ndarray:
    """For each element how many equal ones come before it."""
    order = np.argsort(kinds, kind="stable")
    ordered = kinds[order]
    first = np.searchsorted(ordered, ordered)
    counts = np.empty(len(kinds), np.int64)
    counts[order] = np.arange(len(kinds)) - first
    return counts
