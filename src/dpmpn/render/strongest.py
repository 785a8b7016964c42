"""The part of a large pruned subgraph that a picture has room for: that of its strongest paths."""

from collections.abc import Sequence

from dpmpn.explain.paths import Fact, Path
from dpmpn.explain.subgraph import Edge, Subgraph


def strongest_part(pruned: Subgraph, paths: Sequence[Path], most_lines: int) -> tuple[Subgraph, int]:
    """What the strongest paths are made of, as many as need no more lines than given, and how many these are.

    At least one path with facts is shown, and all if they fit; whole paths are taken, so no line ends nowhere.
    """
    facts: set[Fact] = set()
    n_paths = 0
    for path in paths:
        more = facts | set(path.facts)
        if facts and len(_lines(more)) > most_lines:
            break
        facts, n_paths = more, n_paths + 1
    if n_paths == len(paths):
        return pruned, n_paths
    return _part(
        pruned, facts, {name for path in paths[:n_paths] for h, _, t in path.facts for name in (h, t)}
    ), n_paths


def _lines(facts: set[Fact]) -> set[frozenset[str]]:
    return {frozenset((head, tail)) for head, _, tail in facts}


def _part(pruned: Subgraph, facts: set[Fact], names: set[str]) -> Subgraph:
    kept = [at for at, node in enumerate(pruned.nodes) if node.name in names]
    place = {at: new for new, at in enumerate(kept)}
    edges = [edge for edge in pruned.edges if pruned.fact(edge) in facts]
    return Subgraph(tuple(pruned.nodes[at] for at in kept), tuple(_moved(edge, place) for edge in edges))


def _moved(edge: Edge, place: dict[int, int]) -> Edge:
    return edge._replace(source=place[edge.source], target=place[edge.target])
