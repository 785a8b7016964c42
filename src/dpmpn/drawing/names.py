"""What nodes are called in pictures: by their labels, with the identifier where two of them share one."""

from collections import Counter

from dpmpn.explain.subgraph import Node, Subgraph


def told_apart(subgraph: Subgraph, among: Subgraph) -> Subgraph:
    """A subgraph whose nodes have their identifiers after labels that several nodes of another one have."""
    uses = Counter(_shown(node) for node in among.nodes)
    nodes = (node._replace(label=exactly(node)) if uses[_shown(node)] > 1 else node for node in subgraph.nodes)
    return Subgraph(tuple(nodes), subgraph.edges)


def exactly(node: Node) -> str:
    """A node's label with its identifier, unless it is that or ends with it already."""
    shown, identifier = _shown(node), f"({node.name})"
    return shown if shown == node.name or shown.endswith(identifier) else f"{shown} {identifier}"


def _shown(node: Node) -> str:
    return node.label or node.name
