import numpy as np
from hand_made import diamond, edge, explained, node, subgraphs
from hypothesis import given, settings

from dpmpn.drawing.layout import END_RADIUS, lay_out, lay_out_pruned, place_of
from dpmpn.explain.subgraph import Subgraph


def laid_out(explanation, **sizes):
    return lay_out(explanation.full, explanation.pruned, "head", "answer", **sizes)


def test_the_head_is_left_and_the_answer_right_and_both_are_large():
    for layout in laid_out(diamond()):
        xs = [disc.x for disc in layout.discs]
        assert xs[layout.head] == min(xs[:4]) and xs[layout.answer] == max(xs[:4])
        assert layout.discs[layout.head].radius == layout.discs[layout.answer].radius == END_RADIUS
        assert all(disc.radius < END_RADIUS for disc in layout.discs[1:3])


def test_what_both_have_stands_at_the_same_place():
    full, pruned = laid_out(diamond(), widths=(300.0, 600.0))
    assert full.height == pruned.height
    for large, small in zip(full.discs, pruned.discs, strict=False):
        assert abs(large.x * 2 - small.x) < 0.3
        assert large.y == small.y


def test_the_same_subgraph_has_the_same_layout():
    assert laid_out(diamond()) == laid_out(diamond())


def test_others_go_right_with_time():
    ends = node("head", (1.0, 0, 0, 0)), node("answer", (0, 0, 0, 1.0))
    early = tuple(node(f"e{at}", (0, 0.1, 0, 0)) for at in range(12))
    late = tuple(node(f"l{at}", (0, 0, 0, 0.1)) for at in range(12))
    pruned = Subgraph(ends, (edge(0, 1),))
    explanation = explained(Subgraph((*ends, *early, *late), (edge(0, 1),)), pruned, "head", "answer")
    x = [disc.x for disc in laid_out(explanation)[0].discs]
    assert np.mean(x[2:14]) + 50 < np.mean(x[14:])


def test_a_place_is_found_by_name():
    assert place_of(diamond().pruned, "below") == 2


@settings(max_examples=40)
@given(subgraphs())
def test_discs_are_in_the_field_and_apart(subgraph: Subgraph):
    last = subgraph.nodes[-1].name
    layout = lay_out_pruned(subgraph, "n0", last, 540, 420)
    for at, disc in enumerate(layout.discs):
        assert disc.radius <= disc.x <= layout.width - disc.radius
        assert disc.radius <= disc.y <= layout.height - disc.radius
        for other in layout.discs[:at]:
            assert np.hypot(disc.x - other.x, disc.y - other.y) > disc.radius + other.radius


def test_a_node_has_the_same_size_in_both():
    full, pruned = laid_out(diamond())
    assert [disc.radius for disc in full.discs[:4]] == [disc.radius for disc in pruned.discs]
