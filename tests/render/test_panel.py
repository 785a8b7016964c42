import numpy as np
from hand_made import diamond, edge, explained, laid_out, node, subgraphs
from hypothesis import given, settings

from dpmpn.explain.explanation import Subgraph
from dpmpn.render.labels import Placer, edge_lines
from dpmpn.render.layout import lay_out_pruned
from dpmpn.render.panel import Panel, draw_subgraph
from dpmpn.render.shapes import Box, Disc, Layout, bundled, curve_of


def overlap(one: Box, other: Box) -> bool:
    """Whether two boxes share more than an edge."""
    beside = one.left < other.right and other.left < one.right
    return beside and one.top < other.bottom and other.top < one.bottom


def weights(subgraph: Subgraph) -> list[float]:
    return [sum(edge.flow) for edge in subgraph.edges]


def test_facts_between_the_same_two_nodes_share_a_line():
    nodes = node("a"), node("b")
    subgraph = Subgraph(nodes, (edge(0, 1, "of"), edge(1, 0, "of"), edge(0, 1, "in", 0.1, inverse=True)))
    (line,) = bundled(subgraph, weights(subgraph))
    assert line.edges == (0, 1, 2)
    assert line.relations == (("of", True, True), ("in", False, True))
    assert edge_lines(line, 1) == ("↔ of", "← in")
    assert edge_lines(line, 1, signs=("↓", "↑")) == ("↕ of", "↑ in")
    assert edge_lines(line, 1, keys={"of": "a", "in": "b"}) == ("↔a ←b",)


def test_a_fact_and_its_way_back_go_in_the_direction_of_the_fact():
    subgraph = Subgraph((node("a"), node("b")), (edge(0, 1, "of"), edge(1, 0, "of", inverse=True)))
    (line,) = bundled(subgraph, weights(subgraph))
    assert (line.forward, line.backward) == (True, False)
    assert edge_lines(line, 1) == ("of",)


def test_only_the_heaviest_lines_are_drawn_and_those_that_are_kept():
    explanation = diamond()
    full, _ = laid_out(explanation)
    panel = draw_subgraph(
        explanation.full, full, [0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0], 5, kept=explanation.pruned
    )
    assert [line.edges for line in panel.lines] == [(0,), (1,), (2,), (3,), (6,)]
    assert panel.shown_edges == 5
    heaviest = draw_subgraph(explanation.full, full, [0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0], 2)
    assert [line.edges for line in heaviest.lines] == [(6,), (5,)]


def test_every_node_and_line_of_a_small_subgraph_is_labelled():
    pruned = diamond().pruned
    panel = draw_subgraph(pruned, lay_out_pruned(pruned, "head", "answer", 540, 400), weights(pruned))
    assert set(panel.node_labels) == {0, 1, 2, 3}
    assert set(panel.edge_labels) == {0, 1, 2, 3}


@settings(max_examples=60)
@given(subgraphs())
def test_labels_overlap_neither_each_other_nor_nodes_nor_the_border(subgraph: Subgraph):
    layout = lay_out_pruned(subgraph, "n0", subgraph.nodes[-1].name, 400, 300)
    panel = draw_subgraph(subgraph, layout, weights(subgraph))
    boxes = [label.box for label in (*panel.node_labels.values(), *panel.edge_labels.values())]
    discs = [Box.around(disc.x, disc.y, 2 * disc.radius, 2 * disc.radius) for disc in layout.discs.values()]
    assert {layout.head, layout.answer} <= set(panel.node_labels)
    assert len(panel.node_labels) >= 0.8 * len(subgraph.nodes)
    for at, box in enumerate(boxes):
        assert min(box) >= 0 and box.right <= layout.width and box.bottom <= layout.height
        assert not any(overlap(box, other) for other in (*boxes[:at], *discs))


def test_boxes_overlap_if_they_share_more_than_an_edge():
    box = Box(0, 0, 10, 10)
    assert overlap(box, Box(9, 9, 20, 20)) and overlap(box, Box(2, 2, 3, 3))
    assert not overlap(box, Box(10, 0, 20, 10)) and not overlap(box, Box(0, 11, 10, 20))


def points_of(panel: Panel, layout: Layout) -> list[np.ndarray]:
    """Points along the lines of a panel, which avoid all nodes."""
    avoided = [True] * len(layout.discs)
    return [curve_of(line, layout, avoided).points(101) for line in panel.lines]


def covered(points: np.ndarray, boxes: list[Box]) -> float:
    """The part of a line that boxes cover."""
    x, y = points.T
    return float(
        np.any([(x > b.left) & (x < b.right) & (y > b.top) & (y < b.bottom) for b in boxes], axis=0).mean()
    )


def star(n: int) -> Subgraph:
    """A node with a long name between the head, the answer and others all around it."""
    ends = node("head", (1.0, 0, 0, 0)), node("answer", (0, 0, 0, 1.0))
    others = tuple(node(f"other_{at}", (0, 0.1, 0.2, 0)) for at in range(n))
    middle = node("a_name_that_is_long", (0, 0.5, 0.5, 0))
    heavy = edge(0, 2, "plays_in", 0.9), edge(2, 1, "of", 0.9)
    return Subgraph((*ends, middle, *others), (*heavy, *(edge(2, at + 3, "of", 0.1) for at in range(n))))


def test_labels_leave_at_least_half_of_every_line_to_be_seen():
    for n in range(9):
        subgraph = star(n)
        layout = lay_out_pruned(subgraph, "head", "answer", 540, 400)
        panel = draw_subgraph(subgraph, layout, weights(subgraph))
        assert len(panel.node_labels) == len(subgraph.nodes)
        for at, points in enumerate(points_of(panel, layout)):
            others = [label.box for other, label in panel.edge_labels.items() if other != at]
            assert covered(points, [label.box for label in panel.node_labels.values()] + others) <= 0.5


def test_a_node_in_the_midst_of_lines_does_not_hide_the_heaviest():
    around = [(x, y) for x in (150.0, 200.0, 250.0) for y in (15.0, 185.0)]
    subgraph = star(len(around))
    places = [(40.0, 100.0), (400.0, 100.0), (200.0, 100.0), *around]
    discs = {at: Disc(x, y, 13.0 if at < 2 else 5.0) for at, (x, y) in enumerate(places)}
    layout = Layout(440.0, 200.0, discs, 0, 1, 0.5)
    panel = draw_subgraph(subgraph, layout, weights(subgraph))
    assert panel.node_labels[2].lines == ("a_name_that_is_long",)
    heaviest = points_of(panel, layout)[:2]
    assert [covered(points, [panel.node_labels[2].box]) for points in heaviest] == [0.0, 0.0]


def test_a_label_rather_crosses_light_lines_than_lies_along_a_heavy_one():
    level = np.stack([np.linspace(0, 100, 41), np.full(41, 50.0)], 1)
    steep = np.stack([np.full(41, 30.0), np.linspace(0, 40, 41)], 1)
    placer = Placer(100, 100, np.stack([level, steep]), np.array([1.0, 0.1]))
    along, across = Box(5, 45, 75, 55), Box(5, 20, 75, 30)
    assert placer.place([(along, 0.0), (across, 0.5)]) == across
    assert placer.place([(Box(20, 0, 60, 10), 9.0), (along, 0.0)], own=0) == along


def test_what_labels_cover_of_a_line_adds_up():
    level = np.stack([np.linspace(0, 100, 101), np.full(101, 50.0)], 1)
    placer = Placer(100, 100, level[None], np.array([0.0]))
    placer.place([(Box(0, 45, 45, 55), 0.0)])
    more, beside = (Box(55, 45, 90, 55), 0.0), (Box(55, 20, 90, 30), 3.0)
    assert placer.place([more, beside]) == beside[0]
    empty = Placer(100, 100, level[None], np.array([0.0]))
    assert empty.place([more, beside]) == more[0]


@settings(max_examples=40)
@given(subgraphs())
def test_lines_stay_in_the_field_those_from_a_node_to_itself_too(subgraph: Subgraph):
    last = subgraph.nodes[-1].name
    loops = tuple(edge(at, at, "like") for at in range(len(subgraph.nodes)))
    whole = Subgraph(subgraph.nodes, (*subgraph.edges, *loops))
    layout = lay_out_pruned(whole, "n0", last, 540, 420)
    panel = draw_subgraph(whole, layout, weights(whole))
    for points in points_of(panel, layout):
        assert (points >= 0).all() and (points <= [layout.width, layout.height]).all()


def test_lines_from_nodes_to_themselves_stay_in_the_field_of_the_full_subgraph():
    nodes = node("head", (1.0, 0, 0, 0)), node("answer", (0, 0, 0, 1.0))
    more = tuple(node(f"n{at}", (0, 0.1, 0, 0)) for at in range(40))
    loops = tuple(edge(at, at, "like") for at in range(42))
    full = Subgraph((*nodes, *more), (edge(0, 1), *loops))
    layout, _ = laid_out(explained(full, Subgraph(nodes, (edge(0, 1),)), "head", "answer"), height=200.0)
    panel = draw_subgraph(full, layout, weights(full), 100)
    assert len(panel.lines) == 43
    assert all((points >= 2).all() for points in points_of(panel, layout))


def test_a_fact_from_a_node_to_itself_is_labelled_above_it():
    subgraph = Subgraph((node("head", (1.0, 0, 0, 0)), node("answer")), (edge(0, 1), edge(0, 0, "is_like")))
    layout = lay_out_pruned(subgraph, "head", "answer", 540, 400)
    panel = draw_subgraph(subgraph, layout, weights(subgraph))
    (loop,) = (at for at, line in enumerate(panel.lines) if line.is_loop)
    assert panel.edge_labels[loop].lines == ("is_like",)
    assert panel.edge_labels[loop].box.bottom < layout.discs[0].y - layout.discs[0].radius
