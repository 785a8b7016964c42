"""A changed graph is the graph its facts would have made from the start, with the ids it had before."""

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmpn.data.changed_graph import changed_dataset, changed_graph
from dpmpn.data.dataset import Candidates, Dataset
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.data.importer import dataset_from_tuples
from dpmpn.errors import DataError, UnknownName

FACTS = [("a", "likes", "b"), ("b", "likes", "c"), ("b", "knows", "a")]
ENTITIES, RELATIONS = 6, 3
triples = st.lists(
    st.tuples(st.integers(0, ENTITIES - 1), st.integers(0, RELATIONS - 1), st.integers(0, ENTITIES - 1)),
    max_size=25,
)


def edges(graph: KnowledgeGraph) -> set[tuple[str, str, str]]:
    heads = graph.edge_heads(np.arange(graph.n_edges))
    rows = zip(heads.tolist(), graph.relations.tolist(), graph.tails.tolist(), strict=True)
    name, relation = graph.entities.name, graph.relation_names.name
    return {(name(h), relation(r), name(t)) for h, r, t in rows}


def named(rows: list[tuple[int, int, int]]) -> list[tuple[str, str, str]]:
    return [(str(h), str(r), str(t)) for h, r, t in rows]


def same(one: KnowledgeGraph, other: KnowledgeGraph) -> bool:
    return all(np.array_equal(getattr(one, a), getattr(other, a)) for a in ("offsets", "relations", "tails"))


@settings(max_examples=80, deadline=None, derandomize=True)
@given(start=triples, add=triples, remove=triples, inverses=st.booleans())
def test_it_equals_a_graph_built_from_the_resulting_facts(start, add, remove, inverses) -> None:
    def built(rows):
        rows = np.array(sorted(rows), np.int64).reshape(-1, 3)
        return KnowledgeGraph.from_ids(rows, ENTITIES, RELATIONS, add_inverses=inverses)

    graph = built(set(start))
    changed, changes = changed_graph(graph, named(add), named(remove))
    expected = built((set(start) - set(remove)) | set(add))
    assert same(changed, expected)
    assert changed.relations.dtype == graph.relations.dtype and changed.tails.dtype == np.int32
    assert changed.offsets.dtype == np.int64
    assert not changed.tails.flags.writeable
    assert changes.removed == len(set(start) & set(remove))
    assert changes.absent == len(set(remove) - set(start))
    assert changes.already_there == len(set(add) & (set(start) - set(remove)))
    assert changes.added == len(set(add) - (set(start) - set(remove)))
    assert same(graph, built(set(start)))  # as it was


@settings(max_examples=30, deadline=None, derandomize=True)
@given(start=triples, add=triples)
def test_taking_back_what_was_new_restores_the_edges(start, add) -> None:
    graph = KnowledgeGraph.from_ids(np.array(start, np.int64).reshape(-1, 3), ENTITIES, RELATIONS)
    before = edges(graph)
    fresh = [(f"new{h}", r, t) for h, r, t in named(add)]
    new = [fact for fact in [*named(add), *fresh] if fact not in before]
    grown, changes = changed_graph(graph, new)
    assert grown.entities.names[:ENTITIES] == graph.entities.names
    assert list(changes.new_entities) == sorted({h for h, _, _ in fresh})
    back, _ = changed_graph(grown, remove=new)
    assert edges(back) == before
    assert np.array_equal(back.offsets[: ENTITIES + 1], graph.offsets)
    assert np.array_equal(back.tails, graph.tails)


def test_inverse_edges_come_and_go_with_their_facts() -> None:
    graph = KnowledgeGraph.from_tuples(FACTS)
    changed, changes = changed_graph(graph, [("d", "knows", "c")], [("c", "likes_inv", "b")])
    assert (changes.added, changes.removed, changes.new_entities) == (1, 1, ("d",))
    assert edges(changed) - edges(graph) == {("d", "knows", "c"), ("c", "knows_inv", "d")}
    assert edges(graph) - edges(changed) == {("b", "likes", "c"), ("c", "likes_inv", "b")}


def test_inverses_a_file_holds_by_name_count_too() -> None:
    graph = KnowledgeGraph.from_tuples(
        [("a", "r", "b"), ("b", "r_inv", "a"), ("a", "s", "c")], add_inverses=False
    )
    changed, changes = changed_graph(graph, [("c", "r", "a"), ("a", "r_inv", "c"), ("c", "s", "b")])
    assert changes.added == 2  # the first two are one fact
    assert edges(changed) - edges(graph) == {("c", "r", "a"), ("a", "r_inv", "c"), ("c", "s", "b")}


def test_nothing_to_change_gives_the_same_graph() -> None:
    graph = KnowledgeGraph.from_tuples(FACTS)
    changed, changes = changed_graph(graph, FACTS[:1], [("a", "knows", "c")])
    assert changed is graph
    assert (changes.already_there, changes.absent) == (1, 1)


def test_all_facts_can_go() -> None:
    changed, _ = changed_graph(KnowledgeGraph.from_tuples(FACTS), remove=FACTS)
    assert changed.n_edges == 0 and changed.n_entities == 3
    grown, _ = changed_graph(changed, FACTS)
    assert same(grown, KnowledgeGraph.from_tuples(FACTS))


@pytest.mark.parametrize("kind", ["tuples", "polars", "pandas", "unnamed columns", "file", "path as text"])
def test_facts_come_in_many_forms(kind: str, tmp_path: Path) -> None:
    graph = KnowledgeGraph.from_tuples(FACTS)
    fact = ("c", "knows", "b")
    frame = pl.DataFrame([fact], ["head", "relation", "tail"], orient="row")
    file = tmp_path / "facts.tsv"
    file.write_text("\t".join(fact) + "\n", "utf-8")
    given = {
        "tuples": iter([fact]),
        "polars": frame.select("tail", "head", "relation"),
        "pandas": pd.DataFrame([fact], columns=["head", "relation", "tail"]),
        "unnamed columns": frame.rename({"head": "x", "relation": "y", "tail": "z"}),
        "file": file,
        "path as text": str(file),
    }[kind]
    changed, changes = changed_graph(graph, given)
    assert changes.added == 1
    assert edges(changed) - edges(graph) == {fact, ("b", "knows_inv", "c")}


def test_labels_name_entities_and_other_case_does_not() -> None:
    graph = KnowledgeGraph.from_tuples(FACTS)
    table = pl.DataFrame(
        {"id": ["a", "b", "c"], "name": ["Ann", "Bob", "Bob"], "description": [None] * 3, "type": [None] * 3},
        schema=dict.fromkeys(("id", "name", "description", "type"), pl.String),
    )
    labelled = graph.entities.labelled(table)
    graph = KnowledgeGraph(
        graph.offsets, graph.relations, graph.tails, graph.inverse, labelled, graph.relation_names
    )
    changed, changes = changed_graph(graph, [("Ann", "knows", "c"), ("A", "knows", "c")])
    assert changes.new_entities == ("A",)
    assert ("a", "knows", "c") in edges(changed)
    assert changed.entities.label(0) == "Ann" and changed.entities.label(3) == "A"
    with pytest.raises(DataError, match="several"):
        changed_graph(graph, [("Bob", "knows", "c")])


def test_mistakes() -> None:
    graph = KnowledgeGraph.from_tuples(FACTS)
    with pytest.raises(UnknownName, match=r"unknown relation 'like'; did you mean 'likes'.*needs training"):
        changed_graph(graph, [("a", "like", "b")])
    with pytest.raises(UnknownName, match="unknown entity 'z'"):
        changed_graph(graph, remove=[("a", "likes", "z")])
    with pytest.raises(UnknownName, match=r"rows, row 1: unknown relation 'hates'$"):
        changed_graph(graph, remove=[("a", "hates", "b")])
    for wrong in ([("a", "likes")], ["abc"], [("a", "likes", "")]):
        with pytest.raises(DataError, match="row 1"):
            changed_graph(graph, wrong)
    with pytest.raises(DataError, match="no such file"):
        changed_graph(graph, "nowhere.tsv")
    with pytest.raises(DataError, match="head, relation and tail"):
        changed_graph(graph, pl.DataFrame({"head": ["a"], "tail": ["b"]}))
    with pytest.raises(DataError, match="type int"):
        changed_graph(graph, 3)


def test_training_triples_follow_the_graph() -> None:
    dataset = dataset_from_tuples(FACTS, test=[("c", "likes", "a")])
    changed, _ = changed_dataset(
        dataset, [("c", "likes_inv", "d"), *FACTS[:1]], [("a", "knows_inv", "b"), ("c", "likes", "a")]
    )
    names = changed.graph.entities.names
    train = {(names[h], changed.graph.relation_names.name(r), names[t]) for h, r, t in changed.train.tolist()}
    assert train == {("a", "likes", "b"), ("b", "likes", "c"), ("d", "likes", "c")}
    assert len(changed.train) == 3 and changed.train.dtype == np.int32
    assert np.array_equal(changed.test, dataset.test)
    assert len(dataset.train) == 3 and dataset.graph.n_entities == 3


def test_questions_of_a_task_are_only_taken_away() -> None:
    graph = KnowledgeGraph.from_tuples([("a", "s", "b"), ("b", "r", "a"), ("a", "r_inv", "b")], False)
    relation = graph.relation_names.id("r", "relation")
    train = np.array([[0, relation, 1], [1, relation, 0]], np.int32)
    none = np.empty((0, 3), np.int32)
    asked = Candidates(relation, np.array([0]), np.array([1]), np.array([True]))
    task = Dataset("task", graph, train, none, none, False, asked)
    changed, _ = changed_dataset(task, [("a", "s", "a")], [("a", "r", "b")])
    assert changed.train.tolist() == [[1, relation, 0]]
    assert changed.graph.n_edges == 4


ADDED = {
    "facts.csv": b"head,relation,tail\na,likes,b\n\n",
    "facts.tsv": b"a\tlikes\tb\n# a comment\n",
    "facts.jsonl": b'["a", "likes", "b"]\n\n',
    "facts.nt": b"# said by\n<a:a> <likes:likes> <b:b> .\n",
}
WRONG = {
    "facts.csv": b'"c\nd",like,b\n',
    "facts.tsv": b"a\tlike\tb\n",
    "facts.jsonl": b'["a", "like", "b"]\n',
    "facts.nt": b"<a:a> <likes:like> <b:b> .\n",
}


@pytest.mark.parametrize("change", ["add", "remove"])
@pytest.mark.parametrize("name", ADDED)
def test_mistakes_in_files_name_file_and_line(name: str, change: str, tmp_path: Path) -> None:
    graph = KnowledgeGraph.from_tuples([*FACTS, ("a:a", "likes:likes", "b:b"), ("c\nd", "likes", "b")])
    good, bad = tmp_path / f"good-{name}", tmp_path / name
    good.write_bytes(ADDED[name])
    bad.write_bytes(ADDED[name] + WRONG[name])
    line = (ADDED[name]).count(b"\n") + 1
    with pytest.raises(
        UnknownName, match=rf"{name}, line {line}: unknown relation '(likes:)?like'; did you mean"
    ):
        changed_graph(graph, **{change: [good, bad]})
    _, changes = changed_graph(graph, **{change: [good]})
    assert (changes.already_there, changes.removed) == ((1, 0) if change == "add" else (0, 1))


def test_every_mistake_in_added_facts_has_a_place(tmp_path: Path) -> None:
    labels = pl.DataFrame(
        {"id": ["a", "b"], "name": ["Bob", "Bob"], "description": [None, None], "type": [None, None]},
        dict.fromkeys(("id", "name", "description", "type"), pl.String),
    )
    graph = KnowledgeGraph.from_tuples(FACTS).labelled(labels)
    path = tmp_path / "facts.parquet"
    pl.DataFrame({"head": ["a", "Bob"], "relation": ["likes"] * 2, "tail": ["b", "c"]}).write_parquet(path)
    for change in ("add", "remove"):
        with pytest.raises(DataError, match=r"facts.parquet, row 2: 'Bob' is the label of several"):
            changed_graph(graph, **{change: path})
    pl.DataFrame({"head": ["a", "z"], "relation": ["likes"] * 2, "tail": ["b", "c"]}).write_parquet(path)
    with pytest.raises(UnknownName, match=r"facts.parquet, row 2: unknown entity 'z'"):
        changed_graph(graph, remove=path)
