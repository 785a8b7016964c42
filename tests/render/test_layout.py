import numpy as np
from hand_made import diamond, edge, explained, hub, laid_out, node, subgraphs
from hypothesis import given, settings

from dpmpn.explain.explanation import Subgraph
from dpmpn.render.layout import END_RADIUS, MOST_OTHERS, index_of, lay_out_pruned


def test_the_head_is_left_and_the_answer_right_and_both_are_large():
    for layout in laid_out(diamond()):
        xs = [disc.x for disc in layout.discs.values()]
        assert xs[layout.head] == min(xs[:4]) and xs[layout.answer] == max(xs[:4])
        assert layout.discs[layout.head].radius == layout.discs[layout.answer].radius == END_RADIUS
        assert all(disc.radius < END_RADIUS for disc in (layout.discs[1], layout.discs[2]))


def test_what_both_have_stands_at_the_same_place():
    full, pruned = laid_out(diamond(), widths=(300.0, 600.0))
    assert full.height == pruned.height
    for large, small in zip(full.discs.values(), pruned.discs.values(), strict=False):
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
    x = [disc.x for disc in laid_out(explanation)[0].discs.values()]
    assert np.mean(x[2:14]) + 50 < np.mean(x[14:])


def test_a_place_is_found_by_name():
    assert index_of(diamond().pruned, "below") == 2


@settings(max_examples=40)
@given(subgraphs())
def test_discs_are_in_the_field_and_apart(subgraph: Subgraph):
    last = subgraph.nodes[-1].name
    layout = lay_out_pruned(subgraph, "n0", last, 540, 420)
    assert list(layout.discs) == list(range(len(subgraph.nodes)))
    for at, disc in layout.discs.items():
        assert disc.radius <= disc.x <= layout.width - disc.radius
        assert disc.radius <= disc.y <= layout.height - disc.radius
        for other in (layout.discs[before] for before in range(at)):
            assert np.hypot(disc.x - other.x, disc.y - other.y) > disc.radius + other.radius


def test_a_node_has_the_same_size_in_both():
    full, pruned = laid_out(diamond())
    assert [full.discs[at].radius for at in range(4)] == [disc.radius for disc in pruned.discs.values()]


def test_of_many_nodes_the_strongest_have_a_place_and_those_of_the_pruned_subgraph():
    full, pruned = laid_out(hub(3 * MOST_OTHERS))
    weaker = 2 * MOST_OTHERS
    assert list(full.discs) == [0, 1, 2, *range(3 + weaker, 3 + 3 * MOST_OTHERS)]
    assert (full.head, full.answer) == (0, 2) and list(pruned.discs) == [0, 1, 2]


def test_no_node_lies_on_the_lines_of_the_pruned_subgraph():
    full, _ = laid_out(hub(60))
    for start, end in ((0, 1), (1, 2)):
        a, b = (np.array([full.discs[at].x, full.discs[at].y]) for at in (start, end))
        along = (b - a) / np.hypot(*(b - a))
        for disc in (full.discs[at] for at in range(3, 63)):
            off = np.array([disc.x, disc.y]) - a
            if 0 < off @ along < np.hypot(*(b - a)):
                assert abs(off @ [-along[1], along[0]]) > disc.radius + 2
