"""What nodes and lines are called in pictures: by their labels, with the identifier where two share one."""

from dpmpn.explain.explanation import Question
from dpmpn.explain.naming import ShownNames
from dpmpn.explain.subgraph import Node, Subgraph


def names_of(subgraph: Subgraph, question: Question) -> ShownNames:
    """The names of all nodes and relations that may be shown together."""
    relations = {edge.relation: edge.relation_label for edge in subgraph.edges}
    return ShownNames(
        {node.name: node.label or node.name for node in subgraph.nodes},
        {question.relation: question.relation_label, **relations},
    )


def renamed(subgraph: Subgraph, names: ShownNames) -> Subgraph:
    """A subgraph with what is to be shown in the place of labels."""
    relations = {edge.relation for edge in subgraph.edges}
    shown = {relation: names.relation(relation) for relation in relations}  # each once: edges are many
    return Subgraph(
        tuple(node._replace(label=names.entity(node.name)) for node in subgraph.nodes),
        tuple(edge._replace(relation_label=shown[edge.relation]) for edge in subgraph.edges),
    )


def exactly(node: Node) -> str:
    """A node's label with its identifier, unless it is that or ends with it already."""
    shown, identifier = node.label or node.name, f"({node.name})"
    return shown if shown == node.name or shown.endswith(identifier) else f"{shown} {identifier}"
