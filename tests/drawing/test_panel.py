from hand_made import diamond, edge, node, subgraphs
from hypothesis import given, settings

from dpmpn.drawing.bundles import bundled
from dpmpn.drawing.labels import Box, edge_lines
from dpmpn.drawing.layout import lay_out, lay_out_pruned
from dpmpn.drawing.panel import draw_subgraph
from dpmpn.explain.subgraph import Subgraph


def weights(subgraph: Subgraph) -> list[float]:
    return [sum(edge.flow) for edge in subgraph.edges]


def test_facts_between_the_same_two_nodes_share_a_line():
    nodes = node("a"), node("b")
    subgraph = Subgraph(nodes, (edge(0, 1, "of"), edge(1, 0, "of"), edge(0, 1, "in", 0.1, inverse=True)))
    (line,) = bundled(subgraph, weights(subgraph))
    assert line.edges == (0, 1, 2)
    assert line.relations == (("of", True, True), ("in", False, True))
    assert edge_lines(line, 1) == ("↔ of", "← in")
    assert edge_lines(line, 1, ways=("↓", "↑")) == ("↕ of", "↑ in")
    assert edge_lines(line, 1, keys={"of": "a", "in": "b"}) == ("↔a ←b",)


def test_a_fact_and_its_way_back_go_in_the_direction_of_the_fact():
    subgraph = Subgraph((node("a"), node("b")), (edge(0, 1, "of"), edge(1, 0, "of", inverse=True)))
    (line,) = bundled(subgraph, weights(subgraph))
    assert (line.forward, line.backward) == (True, False)
    assert edge_lines(line, 1) == ("of",)


def test_only_the_heaviest_lines_are_drawn_and_those_that_are_kept():
    explanation = diamond()
    full, _ = lay_out(explanation.full, explanation.pruned, "head", "answer")
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
    discs = [Box.around(disc.x, disc.y, 2 * disc.radius, 2 * disc.radius) for disc in layout.discs]
    for at, box in enumerate(boxes):
        assert box.is_inside(layout.width, layout.height)
        assert not any(box.overlaps(other) for other in (*boxes[:at], *discs))


def test_boxes_overlap_if_they_share_more_than_an_edge():
    box = Box(0, 0, 10, 10)
    assert box.overlaps(Box(9, 9, 20, 20)) and box.overlaps(Box(2, 2, 3, 3))
    assert not box.overlaps(Box(10, 0, 20, 10)) and not box.overlaps(Box(0, 11, 10, 20))
