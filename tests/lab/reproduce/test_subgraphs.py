"""The paper's questions and edges are read as printed, and our subgraphs are held against them edge by edge."""

import re

import pytest
from made_analysis import Made, files_of, made

import dpmpn
from dpmpn.explain.paths import named_fact
from dpmpn.lab.reproduce.nell995 import QUICK_TASKS, TASKS
from dpmpn.lab.reproduce.subgraphs import SUBGRAPHS, edges_of, fact_of, paper_subgraph
from dpmpn.lab.reproduce.workshop import Request


def test_the_paper_shows_every_task():
    shown = {task: paper_subgraph(task) for task in TASKS}
    assert all(shown.values())
    assert paper_subgraph("in_region") is None
    for task, paper in shown.items():
        assert paper.name.lower() == task
        assert paper.query[1] == f"concept:{task}"
        assert len(set(paper.edges)) == len(paper.edges)
        names = [name for edge in (paper.query, *paper.edges) for name in edge]
        assert all(re.fullmatch(r"concept[_:]\w+", name) for name in names)


def test_the_edges_of_a_question_hang_together():
    # A name broken across lines, or a line left out, would leave an edge that nothing leads to.
    for task in TASKS:
        paper = paper_subgraph(task)
        met, before = {paper.query[0]}, -1
        while len(met) > before:
            before = len(met)
            met |= {tail for head, _, tail in paper.edges if head in met}
        assert paper.query[2] in met
        assert {head for head, _, _ in paper.edges} <= met


def test_an_inverse_edge_is_the_fact_read_backwards():
    assert fact_of(("a", "concept:worksfor_inv", "b")) == ("b", "concept:worksfor", "a")
    assert fact_of(("a", "concept:worksfor", "b")) == ("a", "concept:worksfor", "b")


TRAIN = [
    ("child", "mother", "mary"),
    ("mary", "husband", "joe"),
    ("son", "mother", "mary"),
    ("son", "father", "joe"),
]


def test_edges_are_named_the_way_attention_went():
    settings = dict(n_dims=8, n_steps_in_agnn=3, n_epochs=1, batch_size=4, threads=1)
    reasoner = dpmpn.Reasoner(**settings).fit(dpmpn.dataset_from_tuples(TRAIN, name="family"))
    explanation = reasoner.explain("child", "father", "joe")
    full = edges_of(reasoner.graph, explanation.full)
    assert ("child", "mother", "mary") in full
    assert ("mary", "mother_inv", "son") in full
    assert ("mary", "mother", "son") not in full
    assert edges_of(reasoner.graph, explanation.pruned) <= full
    ids = reasoner.graph.relation_names
    for head, relation, tail in full:
        edge = (reasoner.graph.entities.id(head), ids.id(relation), reasoner.graph.entities.id(tail))
        assert reasoner.graph.has_edge(*edge)
        assert named_fact(reasoner.graph, edge) == (head, relation, tail)


def result(task: str, rank: int | None, in_full: int) -> dict:
    """A result as a piece of work would give it."""
    paper = paper_subgraph(task)
    facts = [[*fact_of(paper.edges[1]), 0.75], ["somebody", "concept:knows", "somebody_else", 0.25]]
    return {
        "task": task,
        "seed": 0,
        "query": list(paper.query),
        "score": 0.5 if rank else 0.0,
        "rank": rank,
        "first_answer": paper.query[2] if rank == 1 else "concept_other",
        "drawn_answer": paper.query[2] if rank else "concept_other",
        "files": ["subgraphs/x/explanation.png", "subgraphs/x/explanation.svg"],
        "sizes": {"full": {"nodes": 20, "edges": 70}, "pruned": {"nodes": 6, "edges": 9}},
        "paper": {"edges": len(paper.edges), "in_full": in_full, "in_pruned": 1},
        "key_facts": facts,
        "training": {"queries": 150},
        "train_facts": 100,
        "queries_of_an_epoch": 100,
    }


def test_what_was_found_of_the_paper_is_told():
    shown = SUBGRAPHS.show(Request(), {"a": result("worksfor", 1, 7), "b": result("teamplayssport", None, 0)})
    assert "| WorksFor | 0 | 1 | 0.500 | 20 | 70 | 6 | 9 | 23 | 7 | 1 |" in shown.text
    assert "first place for 1 of 2 questions" in shown.text
    assert "1.5 epochs; the paper's saw 3" in shown.text
    assert (
        "no attention reached the answer, so the picture is of the first one, `concept_other`" in shown.text
    )
    assert "![full subgraph left, pruned right](subgraphs/x/explanation.svg)" in shown.text
    assert "| 75.0 | yes |" in shown.text
    assert "| 25.0 |  |" in shown.text
    assert [row["rank"] for row in shown.rows] == [1, None]
    assert shown.rows[0]["paper_edges_in_full"] == 7


@pytest.fixture(scope="module")
def exhibit(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return made(SUBGRAPHS, tmp_path_factory.mktemp("exhibit") / "subgraphs")


def test_quick_form_draws_every_question(exhibit):
    results = exhibit.data()["results"]
    for task in QUICK_TASKS:
        found = results[f"{task}-seed0"]
        assert found["query"][1] == task
        assert {name.rsplit("/")[-1] for name in found["files"]} >= {"explanation.svg", "key_facts.csv"}
        for name in found["files"]:
            assert (exhibit.folder / name).stat().st_size > 0
            assert f"]({name})" in exhibit.text()
        assert sum(fact[3] > 0 for fact in found["key_facts"]) == len(found["key_facts"]) > 0
    for cells, row in zip(exhibit.cells(), exhibit.csv_rows(), strict=False):
        found = results[f"{cells[0]}-seed0"]
        assert row["head"] == found["query"][0]
        assert cells[3] == f"{found['score']:.3f}"
        assert cells[4:8] == [
            str(found["sizes"][name][what]) for name in ("full", "pruned") for what in ("nodes", "edges")
        ]


def test_made_again_nothing_is_drawn_anew(exhibit):
    before = files_of(exhibit.folder)
    assert made(SUBGRAPHS, exhibit.folder).said == ["2 of 2 pieces of work are done already"]
    assert files_of(exhibit.folder) == before
