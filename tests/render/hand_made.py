"""Subgraphs and explanations made by hand or drawn by hypothesis, for tests of the pictures."""

from types import SimpleNamespace
from typing import Any

from hypothesis import strategies as st

from dpmpn.explain.explanation import Edge, Node, Prediction, Question, Subgraph
from dpmpn.explain.paths import Path
from dpmpn.render.layout import index_of, lay_out_full, lay_out_pruned
from dpmpn.render.shapes import Layout, most_attention

N_STEPS = 3


def node(name: str, attention: tuple[float, ...] = (0.0, 0.5, 0.2, 0.1), label: str | None = None) -> Node:
    share = tuple(part / max(sum(attention), 1e-9) for part in attention)
    return Node(name, name if label is None else label, attention, share, (0.0,) * (len(attention) - 1))


def edge(source: int, target: int, relation: str = "r", flow: float = 0.5, inverse: bool = False) -> Edge:
    flows = (flow, flow / 2, 0.0)
    return Edge(source, target, relation, relation, inverse, flows, flows)


def explained(
    full: Subgraph, pruned: Subgraph, head: str, answer: str, paths: tuple[Path, ...] | None = None
) -> Any:
    """What the pictures read of an explanation."""
    if paths is None:
        paths = (Path(pruned.facts, 0.9),)
    return SimpleNamespace(
        question=Question(head, "asked", False, head, "asked"),
        answer=Prediction(answer, 0.687, 1, False, answer, 0.0),
        n_steps=N_STEPS,
        full=full,
        pruned=pruned,
        paths=paths,
        kept_share=sum(path.share for path in paths),
    )


def laid_out(
    explanation: Any, widths: tuple[float, float] = (440.0, 540.0), height: float = 440.0
) -> tuple[Layout, Layout]:
    """The layouts of the full and of the pruned subgraph of an explanation from "head" to "answer"."""
    full, pruned, ends = explanation.full, explanation.pruned, ("head", "answer")
    most = most_attention(full, tuple(index_of(full, end) for end in ends))
    small = lay_out_pruned(pruned, *ends, widths[1], height, most=most)
    return lay_out_full(full, pruned, small, widths[0]), small


def hub(n: int) -> Any:
    """The head, a hub and the answer in the pruned subgraph; in the full one the hub exchanges with many more."""
    nodes = node("head", (1.0, 0, 0, 0)), node("hub", (0, 0.5, 0.2, 0)), node("answer", (0, 0, 0.5, 1.0))
    edges = edge(0, 1), edge(1, 2)
    more = tuple(node(f"n{at:04}", (0.0, 0.0, 0.3 * (at + 1) / n, 0.0)) for at in range(n))
    exchanged = tuple(edge(1, at + 3, "of", 0.3 * (at + 1) / n) for at in range(n))
    full = Subgraph((*nodes, *more), (*edges, *exchanged))
    return explained(full, Subgraph(nodes, edges), "head", "answer")


def diamond(*labels: str) -> Any:
    """The head, two in the middle and the answer in the pruned subgraph; two more in the full one."""
    shown = [*labels, *("head", "above", "below", "answer")[len(labels) :]]
    nodes = [
        node(name, attention, label)
        for name, label, attention in zip(
            ("head", "above", "below", "answer"),
            shown,
            ((1.0, 0.2, 0.0, 0.0), (0.0, 0.5, 0.1, 0.0), (0.0, 0.3, 0.2, 0.1), (0.0, 0.0, 0.6, 0.8)),
            strict=True,
        )
    ]
    edges = (edge(0, 1, "of"), edge(0, 2, "in"), edge(1, 3, "of", 0.4), edge(2, 3, "in", 0.2, True))
    others = (node("other", (0.0, 0.01, 0.0, 0.0)), node("late", (0.0, 0.0, 0.0, 0.1)))
    full = Subgraph(
        (*nodes, *others), (*edges, edge(0, 4, "of", 0.01), edge(4, 4, "like", 0.01), edge(3, 5, "x", 0.1))
    )
    return explained(full, Subgraph(tuple(nodes), edges), "head", "answer")


_ODD = st.sampled_from(
    [
        "",
        "a",
        "<&\">'",
        "x" * 300,
        "concept_personnorthamerica_michael_turner",
        "日本語の長い名前のテスト",
        "שלום עולם",
        "🎉👩‍👩‍👧",
        "a\x00\nb",
        "\ud800",
    ]
)


@st.composite
def subgraphs(draw: st.DrawFn, most_nodes: int = 9) -> Subgraph:
    """Nodes with odd labels, the first the head and the last the answer, and any edges between them."""
    n = draw(st.integers(1, most_nodes))
    parts = st.floats(0, 1, allow_nan=False)
    nodes = tuple(
        node(
            f"n{at}", tuple(draw(st.lists(parts, min_size=4, max_size=4))), draw(_ODD | st.text(max_size=30))
        )
        for at in range(n)
    )
    ends = st.integers(0, n - 1)
    drawn = draw(
        st.lists(st.tuples(ends, ends, st.sampled_from("rst"), parts, st.booleans()), max_size=2 * n)
    )
    unique = {(s, t, relation, inverse): flow for s, t, relation, flow, inverse in drawn}
    return Subgraph(nodes, tuple(edge(s, t, r, flow, i) for (s, t, r, i), flow in sorted(unique.items())))
