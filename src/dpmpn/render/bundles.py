"""Facts between the same two nodes, drawn as one line with stacked labels."""

from collections.abc import Container, Sequence
from dataclasses import dataclass

from dpmpn.explain.subgraph import Subgraph


@dataclass(frozen=True)
class Bundle:
    """A line between two nodes: all edges that join them, whichever way attention or the facts go."""

    source: int  # places among the nodes; source < target, or the same
    target: int
    edges: tuple[int, ...]  # places among the subgraph's edges
    weight: float  # the sum of theirs
    relations: tuple[
        tuple[str, bool, bool], ...
    ]  # label, whether a fact goes from source to target, and back

    @property
    def forward(self) -> bool:
        """Whether a fact goes from source to target."""
        return any(forward for _, forward, _ in self.relations)

    @property
    def backward(self) -> bool:
        """Whether a fact goes from target to source."""
        return any(backward for _, _, backward in self.relations)

    @property
    def is_loop(self) -> bool:
        """Whether it joins a node with itself."""
        return self.source == self.target


def bundled(
    subgraph: Subgraph, weights: Sequence[float], between: Container[int] | None = None
) -> tuple[Bundle, ...]:
    """The lines of a subgraph, or of those `between` some of its nodes, the heaviest first."""
    groups: dict[tuple[int, int], list[int]] = {}
    for at, edge in enumerate(subgraph.edges):
        if between is not None and not (edge.source in between and edge.target in between):
            continue
        ends = min(edge.source, edge.target), max(edge.source, edge.target)
        groups.setdefault(ends, []).append(at)
    bundles = (_bundle(subgraph, *ends, places, weights) for ends, places in groups.items())
    return tuple(sorted(bundles, key=lambda b: (-round(b.weight, 9), b.source, b.target)))


def _bundle(
    subgraph: Subgraph, source: int, target: int, places: list[int], weights: Sequence[float]
) -> Bundle:
    """Relations stand in the order of the weight that went along them."""
    heaviest: dict[str, float] = {}
    directions: dict[str, tuple[str, bool, bool]] = {}
    for at in places:
        edge = subgraph.edges[at]
        forward = (edge.source == source) != edge.inverse
        label, was_forward, was_backward = directions.get(edge.relation, (edge.relation_label, False, False))
        directions[edge.relation] = label, was_forward or forward, was_backward or not forward
        heaviest[edge.relation] = heaviest.get(edge.relation, 0.0) + weights[at]
    order = sorted(directions, key=lambda relation: (-round(heaviest[relation], 9), relation))
    return Bundle(
        source,
        target,
        tuple(places),
        sum(weights[at] for at in places),
        tuple(directions[relation] for relation in order),
    )
