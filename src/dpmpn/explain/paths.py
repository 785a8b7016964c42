"""The chains of facts along which the attention came from a query's head to an answer."""

from collections.abc import Iterable
from dataclasses import dataclass

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.explain.flow import AnswerFlow
from dpmpn.explain.naming import entity_label, relation_label
from dpmpn.explain.walks import Edge, Walk, strongest_walks

Fact = tuple[str, str, str]  # head, relation and tail, in the direction of the file


@dataclass(frozen=True)
class Path:
    """A chain of facts, by their identifiers, and the part of the answer's attention that came along it."""

    facts: tuple[Fact, ...]
    share: float


def strongest_paths(flow: AnswerFlow, graph: KnowledgeGraph, top: int = 3) -> list[Path]:
    """The chains of facts that brought the answer most of its attention, strongest first."""
    return named_paths(graph, strongest_walks(flow, top))


def named_paths(graph: KnowledgeGraph, walks: Iterable[Walk]) -> list[Path]:
    """The facts of walks by their names."""
    walks = list(walks)
    facts = {edge: named_fact(graph, fact_of(graph, edge)) for walk in walks for edge in walk.edges}
    return [Path(tuple(facts[edge] for edge in walk.edges), walk.share) for walk in walks]


def shown_facts(graph: KnowledgeGraph, path: Path) -> tuple[Fact, ...]:
    """The facts of a path as people read them: labels in the place of identifiers."""
    return tuple(
        (entity_label(graph, head), relation_label(graph, relation), entity_label(graph, tail))
        for head, relation, tail in path.facts
    )


def fact_of(graph: KnowledgeGraph, edge: Edge) -> Edge:
    """The fact an edge stands for: an edge of an inverse relation is read backwards."""
    head, relation, tail = edge
    if graph.is_inverse[relation]:
        return tail, int(graph.inverse[relation]), head
    return edge


def named_fact(graph: KnowledgeGraph, fact: Edge) -> Fact:
    """The names of a fact's ids."""
    head, relation, tail = fact
    return graph.entities.name(head), graph.relation_names.name(relation), graph.entities.name(tail)
