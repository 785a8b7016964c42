"""Colours and sizes of nodes: the head yellow, the answer red, the others by what attention they gained and when."""

from dpmpn.explain.subgraph import Node, Subgraph

HEAD = "#ffd21f"
ANSWER = "#d7261e"
LITTLE = "#c9c9c9"
EARLY = "#ffd21f"
BETWEEN = "#f58a1f"
LATE = "#d7261e"
OUTLINE = "#3c3c3c"
TEXT = "#1c1c1c"
FAINT_TEXT = "#4a4a4a"
LINE = "#4a5a6a"
FAINT_LINE = "#9aa6b2"


def gained(node: Node) -> tuple[float, float]:
    """The most attention a node ever had, and when it gained its attention: 0 is the first step, 1 the last."""
    rises = [
        max(0.0, after - before) for before, after in zip(node.attention, node.attention[1:], strict=False)
    ]
    total = sum(rises)
    if total <= 0 or len(rises) < 2:
        return max(node.attention, default=0.0), 0.0
    when = sum(t * rise for t, rise in enumerate(rises)) / total
    return max(node.attention), when / (len(rises) - 1)


def most_attention(subgraph: Subgraph, apart: tuple[int, ...]) -> float:
    """The most attention any node ever had but for those named apart: the head and the answer."""
    return max((gained(node)[0] for at, node in enumerate(subgraph.nodes) if at not in apart), default=0.0)


def strengths(subgraph: Subgraph, apart: tuple[int, ...], most: float | None = None) -> list[float]:
    """How much attention each node had, from 0 to 1 for the `most`: that of the strongest but for those named apart.

    The root of the part is taken: attention falls off so quickly that most nodes would look alike.
    """
    if most is None:
        most = most_attention(subgraph, apart)
    return [min(1.0, gained(node)[0] / most) ** 0.5 if most > 0 else 0.0 for node in subgraph.nodes]


def node_colour(strength: float, when: float) -> str:
    """Grey for little attention; else from yellow for early to red for late."""
    hue = _mix(EARLY, BETWEEN, when * 2) if when < 0.5 else _mix(BETWEEN, LATE, when * 2 - 1)
    return _mix(LITTLE, hue, min(1.0, max(0.0, strength)))


def _mix(first: str, second: str, part: float) -> str:
    """A colour between two: the first at 0, the second at 1."""
    parts = zip(_channels(first), _channels(second), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * part):02x}" for a, b in parts)


def _channels(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[at : at + 2], 16) for at in (1, 3, 5))
