"""Graphs, Graphviz text and tables hold what the explanation holds, also of names that mean something elsewhere."""

import re
import sys
from pathlib import Path

import networkx as nx
import polars as pl
import pytest
from small_reasoning import explained, reasoner

from dpmpn import SplitChoice, dataset_from
from dpmpn.errors import ConfigError
from dpmpn.render.export import as_dot, as_networkx, as_tables

ODD = 'say "hi"\\N, <b>\nnew, =1+1'


def odd_explanation():  # type: ignore[no-untyped-def]
    facts = [("a", "r;[]{}->", ODD)]
    return explained(ODD, facts=facts, moves=[[("a", "r;[]{}->", ODD, 1.0)]], head="a", relation="r;[]{}->")


@pytest.mark.parametrize("full", [False, True])
def test_a_networkx_graph_has_the_nodes_and_edges_of_the_subgraph(full: bool) -> None:
    explanation = reasoner().explain("child0", "father")
    subgraph = explanation.full if full else explanation.pruned
    graph = explanation.to_networkx(full)
    assert list(graph.nodes) == [node.name for node in subgraph.nodes]
    assert graph.number_of_edges() == len(subgraph.edges)
    facts = {
        (target, data["relation"], source) if data["inverse"] else (source, data["relation"], target)
        for source, target, data in graph.edges(data=True)
    }
    assert facts == set(subgraph.facts)
    assert nx.has_path(graph, "child0", explanation.answer.answer)
    assert graph.nodes["child0"]["attention_0"] == 1.0
    assert graph.nodes[explanation.answer.answer]["share_3"] == pytest.approx(1.0)
    assert graph.graph["score"] == explanation.answer.score


def test_a_networkx_graph_says_what_is_what() -> None:
    graph = as_networkx(explained(labels={"Kosovo": "Kosovo and Metohija"}))
    assert {graph.nodes[name]["role"] for name in ("Serbia", "Europe", "Kosovo")} == {"head", "answer", ""}
    assert graph.nodes["Kosovo"]["label"] == "Kosovo and Metohija"
    assert graph.edges["Serbia", "Kosovo", "borders_inv"]["flow_1"] == pytest.approx(0.4)
    assert graph.edges["Serbia", "Kosovo", "borders"]["flow_1"] == pytest.approx(0.3)
    assert not graph.edges["Kosovo", "Europe", "in"]["inverse"]


@pytest.mark.parametrize("add_inverses", [True, False])
def test_relations_of_the_file_that_look_like_inverses_have_edges_of_their_own(add_inverses: bool) -> None:
    facts = [("a", "r", "b"), ("b", "r", "a"), ("a", "r_inv", "b"), ("b", "r_inv", "a")]
    moves = [
        [("a", "r", "b", 0.3), ("a", "^r", "b", 0.3), ("a", "r_inv", "b", 0.2), ("a", "^r_inv", "b", 0.2)]
    ]
    if not add_inverses:
        moves = [[("a", "r", "b", 0.5), ("a", "^r", "b", 0.5)]]
    explanation = explained("b", facts=facts, moves=moves, head="a", relation="r", add_inverses=add_inverses)
    for full in (False, True):
        subgraph = explanation.full if full else explanation.pruned
        graph = explanation.to_networkx(full)
        assert graph.number_of_edges() == len(subgraph.edges) == len(moves[0])
        flows = [data["flow_1"] for *_, data in graph.edges(data=True)]
        assert sorted(flows) == sorted(edge.flow[0] for edge in subgraph.edges)
        assert graph.edges["a", "b", "r_inv"]["inverse"] is not add_inverses


def test_formats_of_networkx_can_be_written(tmp_path: Path) -> None:
    graph = as_networkx(explained(), full=True)
    nx.write_graphml(graph, tmp_path / "graph.graphml")
    nx.write_gexf(graph, tmp_path / "graph.gexf")
    read = nx.read_graphml(tmp_path / "graph.graphml")
    assert read.nodes["Kosovo"]["attention_1"] == pytest.approx(0.7)


def test_without_networkx_there_is_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(ConfigError, match="pip install networkx"):
        explained().to_networkx()


def test_graphviz_text() -> None:
    dot = as_dot(explained(labels={"Kosovo": "Kosovo and Metohija"}))
    assert dot.startswith("digraph explanation {\n")
    assert dot.endswith("}\n")
    assert dot.count('label="Kosovo and Metohija"') == 1
    edges = re.findall(r"^  n(\d+) -> n(\d+) \[(.*)\];$", dot, re.MULTILINE)
    assert len(edges) == len(explained().pruned.edges) == 5
    assert sum("dir=back" in attributes for *_, attributes in edges) == 2


def test_graphviz_text_tells_apart_what_shares_a_label() -> None:
    labels = {"Kosovo": "neighbour", "Hungary": "neighbour", "borders": "near", "in": "near"}
    dot = as_dot(explained(labels=labels))
    for label in ("neighbour (Kosovo)", "neighbour (Hungary)", "near (borders)", "near (in)"):
        assert f'label="{label}"' in dot
    assert 'label="<Serbia, near (in), ?> Europe"' in dot
    assert 'label="neighbour"' not in dot
    assert 'label="near"' not in dot


def test_graphviz_text_takes_names_literally() -> None:
    dot = as_dot(odd_explanation(), full=True)
    assert 'label="say \\"hi\\"\\\\N, <b>\\\\nnew, =1+1"' in dot
    assert 'label="r;[]{}->"' in dot
    for line in dot.splitlines():  # outside of quotes every line is a statement of its own
        outside = re.sub(r'"(\\.|[^"\\])*"', "", line)
        assert '"' not in outside
        assert "<" not in outside


def test_tables_hold_the_explanation() -> None:
    explanation = explained()
    tables = as_tables(explanation)
    assert list(tables) == ["patterns", "paths", "key_facts", "nodes", "edges"]
    (pattern,) = tables["patterns"].to_dicts()
    assert (pattern["pattern"], pattern["relations"], pattern["n_instances"]) == (1, "borders, in", 2)
    assert (pattern["share"], pattern["support"], pattern["confidence"]) == (1, 0, None)
    first = tables["paths"].filter(pl.col("path") == 1)
    assert first.select("step", "head", "relation", "tail", "inverse").rows() == [
        (1, "Kosovo", "borders", "Serbia", True),
        (2, "Kosovo", "in", "Europe", False),
    ]
    assert first["share"].to_list() == [0.428571, 0.428571]
    assert tables["key_facts"].row(0) == ("Kosovo", "in", "Europe", "Kosovo", "in", "Europe", 0.75)
    assert tables["nodes"].group_by("subgraph").len().sort("subgraph").rows() == [
        ("full", len(explanation.full.nodes)),
        ("pruned", len(explanation.pruned.nodes)),
    ]
    edge = tables["edges"].filter(subgraph="full", source="Serbia", target="Kosovo", inverse=True).to_dicts()
    assert edge[0]["flow_1"] == 0.4
    assert edge[0]["flow_2"] == 0.0
    full = tables["nodes"].filter(subgraph="full")
    assert full.select(pl.col("^share_.$").sum()).row(0) == pytest.approx((1.0, 1.0, 1.0))


def test_tables_of_attention_that_never_left_have_columns() -> None:
    tables = as_tables(explained("Serbia", moves=[[("Serbia", "=", "Serbia", 1.0)]]))
    assert tables["paths"].is_empty()
    assert tables["key_facts"].columns == as_tables(explained())["key_facts"].columns


@pytest.mark.parametrize("make", [explained, odd_explanation], ids=["plain", "odd"])
def test_key_facts_can_be_imported_again(tmp_path: Path, make) -> None:  # type: ignore[no-untyped-def]
    explanation = make()
    path = tmp_path / "key_facts.csv"
    path.write_text(as_tables(explanation)["key_facts"].write_csv(), "utf-8")
    graph = dataset_from(path, split=SplitChoice("none")).graph
    for head, relation, tail in (key.fact for key in explanation.key_facts):
        ids = graph.entities.id(head), graph.relation_names.id(relation), graph.entities.id(tail)
        assert graph.find_edges(*ids) >= 0  # type: ignore[arg-type]
    assert graph.n_edges == 2 * len(explanation.key_facts)
