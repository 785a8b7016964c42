"""A dataset read with another graph's relation ids: the same facts by name, whatever order ids had."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmpn.data.dataset import SPLITS, Dataset
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.data.importer import dataset_from_tuples, load_dataset
from dpmpn.data.inductive import with_relations_of
from dpmpn.errors import UnknownName

fact = st.tuples(st.sampled_from("abcd"), st.sampled_from(["p", "q", "r", "s"]), st.sampled_from("abcd"))


def edges_of(graph: KnowledgeGraph) -> set[tuple[str, str, str]]:
    heads = graph.edge_heads(np.arange(graph.n_edges))
    entity, relation = graph.entities.name, graph.relation_names.name
    rows = zip(heads.tolist(), graph.relations.tolist(), graph.tails.tolist(), strict=True)
    return {(entity(head), relation(r), entity(tail)) for head, r, tail in rows}


def facts_of(dataset: Dataset, split: str) -> list[tuple[str, str, str]]:
    entity, relation = dataset.graph.entities.name, dataset.graph.relation_names.name
    return [(entity(head), relation(r), entity(tail)) for head, r, tail in dataset.split(split).tolist()]


@given(
    train=st.lists(fact, min_size=1, max_size=12),
    test=st.lists(fact, max_size=4),
    order=st.permutations("pqrs"),
)
def test_the_same_facts_by_name(train, test, order) -> None:
    dataset = dataset_from_tuples(train, test=test)
    known = KnowledgeGraph.from_ids(np.array([[0, 0, 1]]), 2, ["z", *order])
    read = with_relations_of(dataset, known)
    assert edges_of(read.graph) == edges_of(dataset.graph)
    assert all(facts_of(read, split) == facts_of(dataset, split) for split in SPLITS)
    assert read.graph.relation_names is known.relation_names
    assert np.array_equal(read.graph.inverse, known.inverse) and read.graph.n_forward == known.n_forward
    assert read.both_directions
    # Sorted and found as in any graph.
    assert (read.graph.find_edges(*read.train.T) >= 0).all()
    assert (read.graph.find_edges(*read.queries("train").T) >= 0).all()


def test_the_dataset_itself_stays_as_it_was() -> None:
    dataset = dataset_from_tuples([("a", "q", "b")], test=[("a", "p", "b")])
    before = dataset.train.tolist(), dataset.test.tolist()
    with_relations_of(dataset, KnowledgeGraph.from_ids(np.array([[0, 0, 1]]), 2, ["q", "p"]))
    assert (dataset.train.tolist(), dataset.test.tolist()) == before


def test_an_unknown_relation_is_named_with_near_ones() -> None:
    known = KnowledgeGraph.from_tuples([("x", "mother", "y")])
    with pytest.raises(UnknownName, match=r"'mothers'.*'mother'.*did not learn it;") as refused:
        with_relations_of(dataset_from_tuples([("a", "mothers", "b"), ("a", "mother", "b")]), known)
    assert refused.value.near == ["mother"]
    several = dataset_from_tuples([("a", f"odd{i}", "b") for i in range(4)], name="odd")
    with pytest.raises(UnknownName, match=r"'odd0'.*nor 3 more of 'odd'"):
        with_relations_of(several, known)
    held_out = dataset_from_tuples([("a", "mother", "b")], test=[("a", "employer", "b")])
    with pytest.raises(UnknownName, match="'employer'"):
        with_relations_of(held_out, known)


def test_a_relation_of_the_users_own_that_is_called_an_inverse() -> None:
    facts = [("a", "r", "b"), ("b", "r_inv", "c")]
    dataset = dataset_from_tuples(facts)
    known = KnowledgeGraph.from_tuples([("x", "r_inv", "y"), ("x", "r", "y"), ("x", "s", "y")])
    read = with_relations_of(dataset, known)
    assert facts_of(read, "train") == facts
    assert edges_of(read.graph) == edges_of(dataset.graph)


def task(folder: Path) -> Dataset:
    """Its graph has inverses of its own, of some relations."""
    (folder / "train.txt").write_text("a\tr\tb\n")
    (folder / "graph.txt").write_text("a\tr\tb\nb\tr_inv\ta\nb\ts\ta\n")
    (folder / "sort_test.pairs").write_text("thing$a,thing$b: +")
    return load_dataset(folder)


def test_a_task_on_a_graph_with_added_inverses(tmp_path: Path) -> None:
    known = KnowledgeGraph.from_tuples([("x", "s", "y"), ("x", "a", "y"), ("x", "r", "y")])
    read = with_relations_of(task(tmp_path), known)
    assert edges_of(read.graph) == {
        ("a", "r", "b"),
        ("b", "r_inv", "a"),
        ("b", "s", "a"),
        ("a", "s_inv", "b"),
    }
    assert known.relation_names.name(read.candidates.relation) == "r"
    assert not read.both_directions


def test_relations_without_an_inverse_where_the_model_learnt_none(tmp_path: Path) -> None:
    known = task(tmp_path).graph  # r has an inverse, s has none
    read = with_relations_of(dataset_from_tuples([("c", "r", "d"), ("c", "s", "d")]), known)
    assert edges_of(read.graph) == {("c", "r", "d"), ("d", "r_inv", "c"), ("c", "s", "d")}
    assert not read.both_directions
    assert with_relations_of(dataset_from_tuples([("c", "r", "d")]), known).both_directions
