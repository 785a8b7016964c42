import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from hand_made import diamond, edge, explained, hub, node, subgraphs
from hypothesis import given, settings

from dpmpn.explain.explanation import Subgraph
from dpmpn.explain.paths import Path
from dpmpn.render.layout import MOST_OTHERS
from dpmpn.render.shapes import ANSWER, HEAD
from dpmpn.render.svg import FULL_LINES, PRUNED_LINES, draw_svg, strongest_part

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    return [text.text or "" for text in ET.fromstring(svg).iter(f"{SVG}text")]


def test_the_same_explanation_gives_the_same_picture():
    assert draw_svg(diamond()) == draw_svg(diamond())


def test_it_says_what_was_asked_and_answered_and_how_much_is_shown():
    written = texts(draw_svg(diamond()))
    assert "<head, asked, ?>" in written
    assert "Answer: answer, score 0.687, rank 1" in written
    assert "full subgraph: 6 nodes, 7 edges" in written
    assert "pruned: 4 nodes, 4 facts that carried 90% of the answer's attention" in written
    assert {"head", "answer", "gained attention early … late", "little (grey, small)"} <= set(written)


def test_a_measured_probability_comes_before_the_score():
    explanation = diamond()
    explanation.answer = replace(explanation.answer, probability=0.9973)
    assert "Answer: answer, probability >0.99, score 0.687, rank 1" in texts(draw_svg(explanation))


def test_head_and_answer_have_their_colours_in_both_halves():
    root = ET.fromstring(draw_svg(diamond()))
    colours = {}
    for group in root.iter(f"{SVG}g"):
        if group.get("class") == "node":
            circle = group.find(f"{SVG}circle")
            assert circle is not None
            colours.setdefault(group.get("data-node"), []).append(circle.get("fill"))
    assert colours["0"] == [HEAD, HEAD] and colours["3"] == [ANSWER, ANSWER]


def test_every_node_and_line_has_a_title():
    root = ET.fromstring(draw_svg(diamond()))
    groups = [group for group in root.iter(f"{SVG}g") if group.get("class") in ("node", "edge")]
    assert len(groups) == 6 + 4 + 7 + 4
    assert all(group.findtext(f"{SVG}title") for group in groups)
    assert root.findtext(f"{SVG}title") and root.findtext(f"{SVG}desc")


def test_text_is_as_wide_as_it_was_measured_whatever_the_font():
    root = ET.fromstring(draw_svg(diamond()))
    assert all(float(text.get("textLength", "0")) > 0 for text in root.iter(f"{SVG}text"))


def test_odd_names_are_escaped_and_long_ones_whole_in_the_title():
    long = "_".join(["concept"] * 60)
    svg = draw_svg(diamond('<&">', long, "日本語 שלום 🎉", ""))
    assert any(long in (title.text or "") for title in ET.fromstring(svg).iter(f"{SVG}title"))
    assert '<&">' in texts(svg) and "(no name)" not in texts(svg)  # an empty label gives way to the name
    assert "answer" in texts(svg)


@settings(max_examples=25)
@given(subgraphs(6))
def test_any_subgraph_gives_xml(subgraph: Subgraph):
    root = ET.fromstring(draw_svg(explained(subgraph, subgraph, "n0", subgraph.nodes[-1].name)).encode())
    assert sum(group.get("class") == "node" for group in root.iter(f"{SVG}g")) == 2 * len(subgraph.nodes)


def test_an_answer_that_is_the_head_is_one_node():
    alone = Subgraph((node("head", (1.0, 1.0, 1.0, 1.0)),), ())
    svg = draw_svg(explained(alone, alone, "head", "head", (Path((), 1.0),)))
    assert "pruned: 1 node, no facts: the answer's attention waited at the head" in texts(svg)
    assert HEAD in svg and ANSWER in svg


@pytest.mark.parametrize(
    ("paths", "told"),
    [
        ((Path((), 0.93),), "no facts: 93% of the answer's attention waited at the head"),
        ((), "no facts: no path carried much"),
    ],
)
def test_it_says_what_there_is_where_there_are_no_facts(paths: tuple[Path, ...], told: str):
    alone = Subgraph((node("head", (1.0, 1.0, 1.0, 1.0)),), ())
    assert f"pruned: 1 node, {told}" in texts(draw_svg(explained(alone, alone, "head", "head", paths)))


def test_what_waited_at_the_head_is_not_counted_to_the_facts():
    back = Subgraph(
        (node("head", (1.0, 0.5, 0.5, 0.9)), node("other")), (edge(0, 1), edge(1, 0, inverse=True))
    )
    paths = Path((("head", "r", "other"), ("head", "r", "other")), 0.6), Path((), 0.3)
    caption = " ".join(texts(draw_svg(explained(back, back, "head", "head", paths))))
    assert "1 fact that carried 60% of the answer's attention; 30% waited at the head" in caption


def crowd(n: int) -> tuple[Subgraph, tuple[Path, ...]]:
    """Many paths of two facts from head to answer, each through another node."""
    between = tuple(node(f"n{at:03}", (0.0, 0.5, 0.2, 0.0)) for at in range(n))
    nodes = (node("head", (1.0, 0, 0, 0)), node("answer", (0, 0, 0.5, 1.0)), *between)
    edges = tuple(
        one
        for at in range(n)
        for one in (edge(0, at + 2, "a_long_relation"), edge(at + 2, 1, "another_relation"))
    )
    facts = [(("head", "a_long_relation", m.name), (m.name, "another_relation", "answer")) for m in between]
    return Subgraph(nodes, edges), tuple(Path(fact, 0.9 / n) for fact in facts)


def test_of_many_paths_the_strongest_are_shown_whole():
    pruned, paths = crowd(40)
    shown, n_paths = strongest_part(pruned, paths, PRUNED_LINES)
    assert n_paths == PRUNED_LINES // 2 and len(shown.nodes) == n_paths + 2
    assert set(shown.facts) == {fact for path in paths[:n_paths] for fact in path.facts}
    caption = " ".join(texts(draw_svg(explained(pruned, pruned, "head", "answer", paths))))
    assert f"shown: the {n_paths} strongest paths, {PRUNED_LINES} facts, 34%" in caption


def test_all_of_a_small_subgraph_is_shown():
    pruned, paths = crowd(3)
    assert strongest_part(pruned, paths, PRUNED_LINES) == (pruned, 3)


def test_where_relations_find_no_room_keys_stand_for_them():
    pruned, paths = crowd(15)
    root = ET.fromstring(draw_svg(explained(pruned, pruned, "head", "answer", paths)))
    (keys,) = (group for group in root.iter(f"{SVG}g") if group.get("class") == "keys")
    assert [text.text for text in keys.iter(f"{SVG}text")] == [
        "a",
        "a_long_relation",
        "b",
        "another_relation",
    ]


def test_a_node_looks_the_same_in_both_halves():
    explanation = diamond()
    strong = node("strong", (0.0, 0.9, 0.0, 0.0))  # beside which those of the pruned subgraph are weak
    explanation.full = Subgraph((*explanation.full.nodes, strong), explanation.full.edges)
    circles = [
        (group.get("data-node"), circle.get("r"), circle.get("fill"))
        for group in ET.fromstring(draw_svg(explanation)).iter(f"{SVG}g")
        for circle in group.findall(f"{SVG}circle")
        if group.get("class") == "node" and group.get("data-node") in ("1", "2")
    ]
    assert len(circles) == 4 and len(set(circles)) == 2


def test_of_a_large_subgraph_a_part_is_drawn_and_told():
    svg = draw_svg(hub(2000))
    groups = [group.get("class") for group in ET.fromstring(svg).iter(f"{SVG}g")]
    assert groups.count("node") == 3 + 3 + MOST_OTHERS < 400
    assert groups.count("edge") == 2 + FULL_LINES
    caption = f"full subgraph: 2,003 nodes, 2,002 edges; {3 + MOST_OTHERS} nodes and {FULL_LINES} edges shown"
    assert caption in " ".join(texts(svg))


def test_lines_that_are_not_drawn_are_told():
    assert f"full subgraph: 203 nodes, 202 edges; {FULL_LINES} shown" in texts(draw_svg(hub(200)))


def test_nodes_with_the_same_label_have_their_identifiers_too():
    explanation = diamond("Paris", "Paris", "below")
    written = " ".join(texts(draw_svg(explanation)))
    assert "<Paris (head), asked, ?>" in written
    assert written.count("Paris (above)") == 2 and "below (below)" not in written
    titles = [title.text or "" for title in ET.fromstring(draw_svg(explanation)).iter(f"{SVG}title")]
    assert any(title.startswith("head: Paris (head);") for title in titles)


def test_relations_with_the_same_label_are_told_apart():
    nodes = node("head", (1.0, 0, 0, 0)), node("answer", (0, 0, 0, 1.0))
    edges = tuple(edge(0, 1, relation)._replace(relation_label="near") for relation in ("p1", "p2"))
    both = Subgraph(nodes, edges)
    assert {"near (p1)", "near (p2)"} <= set(texts(draw_svg(explained(both, both, "head", "answer"))))
