"""Paths along the same entities put together: parallel facts, such as a fact and its reverse, make equal ones."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.explain.naming import entity_label
from dpmpn.explain.paths import Fact, Path

if TYPE_CHECKING:
    from dpmpn.explain.explanation import Explanation


@dataclass(frozen=True)
class Way:
    """The paths along the same entities, and the part of the attention at their end that came along them."""

    entities: tuple[str, ...]  # from the head on
    labels: tuple[str, ...]
    hops: tuple[tuple[Fact, ...], ...]  # the facts between each two of them, those of stronger paths first
    share: float


def ways_of(explanation: "Explanation") -> list[Way]:
    """The explanation's paths, those along the same entities together, strongest first."""
    return ways_along(explanation.graph, explanation.question.head, explanation.paths)


def ways_along(graph: KnowledgeGraph, head: str, paths: Iterable[Path]) -> list[Way]:
    """Paths from a head, the strongest first, as ways in the order of their shares."""
    together: dict[tuple[str, ...], list[Path]] = {}
    for path in paths:
        together.setdefault(entities_along(head, path), []).append(path)
    ways = [
        Way(
            entities,
            tuple(entity_label(graph, name) for name in entities),
            tuple(tuple(dict.fromkeys(hop)) for hop in zip(*(path.facts for path in parallel), strict=True)),
            sum(path.share for path in parallel),
        )
        for entities, parallel in together.items()
    ]
    return sorted(ways, key=lambda way: -way.share)


def entities_along(head: str, path: Path) -> tuple[str, ...]:
    """The entities that a path visits from a head on: at each fact it goes to the fact's other end."""
    entities = [head]
    for start, _, end in path.facts:
        entities.append(end if entities[-1] == start else start)
    return tuple(entities)
