"""Names that read the same are one name: in imports, facts that are added, questions and graphs made before."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmpn.data.changed_graph import changed_graph
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.data.importer import dataset_from, dataset_from_tuples, read_dataset
from dpmpn.data.inductive import with_relations_of
from dpmpn.data.names import normal, normal_names
from dpmpn.data.sources.formats import source_of
from dpmpn.data.vocabulary import Vocabulary
from dpmpn.errors import UnknownName

NFC, NFD = "Caf\u00e9", "Cafe\u0301"


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))))
def test_many_names_are_spelled_as_each_is(names: list[str]) -> None:
    spelled = normal_names(pl.Series(names, dtype=pl.String)).to_list()
    assert spelled == [normal(name) for name in names]
    assert [normal(name) for name in spelled] == spelled


def test_two_spellings_are_one_entity_and_the_report_says_so() -> None:
    facts = [(NFC, "in", "Paris"), (NFD, "in", "Lyon"), (f"{NFD} Nord", "a\u0300 co\u0302te\u0301", NFC)]
    dataset, report = read_dataset({"train": [source_of(facts)], "valid": []})
    assert list(dataset.graph.entities) == [NFC, f"{NFC} Nord", "Lyon", "Paris"]
    assert report["respelled"]["entities"] == {
        "changed": 2,
        "merged": 1,
        "examples": {NFD: NFC, f"{NFD} Nord": f"{NFC} Nord"},
    }
    assert report["respelled"]["relations"]["changed"] == 1
    assert report["entities"] == 4


def test_facts_that_become_the_same_are_counted_as_repeated() -> None:
    _, report = read_dataset(
        {"train": [source_of([(NFC, "in", "Paris"), (NFD, "in", "Paris")])], "valid": []}
    )
    assert report["train"] == report["duplicates"] == 1


def test_nothing_is_said_of_names_that_stay() -> None:
    _, report = read_dataset({"train": [source_of([(NFC, "in", "Paris")])], "valid": []})
    assert report["respelled"]["entities"] == {"changed": 0, "merged": 0, "examples": {}}


@pytest.mark.parametrize("make", [KnowledgeGraph.from_tuples, lambda facts: dataset_from_tuples(facts).graph])
@pytest.mark.parametrize("asked", [NFC, NFD, f" {NFD}", f"\ufeff{NFC}", NFD.upper()])
def test_either_spelling_is_found(make, asked: str) -> None:
    graph = make([(NFD, "in", "Paris")])
    assert graph.entities.name(graph.entities.id(asked)) == NFC


@pytest.mark.parametrize("more", [0, 3000])
@pytest.mark.parametrize("stored", [NFC, NFD])
def test_graphs_made_before_are_asked_by_either_spelling(stored: str, more: int, tmp_path: Path) -> None:
    """Their names stay as they are stored."""
    names = Vocabulary(sorted([stored, "Paris", *(f"\u00e9{i}" for i in range(more))]))
    graph = KnowledgeGraph.from_ids(np.array([[0, 0, 1]]), names, Vocabulary(["in"]))
    graph.save(tmp_path / "graph")
    entities = KnowledgeGraph.open(tmp_path / "graph").entities
    at = entities.names.index(stored)
    assert [entities.id(text) for text in (NFC, NFD, NFD.lower(), f"{NFD} ")] == [at] * 4
    assert NFC in entities and NFD in entities
    wanted = pl.Series([NFC, "Lyon", NFD, *["Paris"] * 2000])
    assert entities.ids(wanted)[:4].tolist() == [at, -1, at, entities.id("Paris")]


def test_two_entities_that_were_stored_apart_stay_apart() -> None:
    entities = Vocabulary(sorted([NFC, NFD]))
    assert entities.name(entities.id(NFC)) == NFC
    assert entities.name(entities.id(NFD)) == NFD


@pytest.mark.parametrize("stored", [NFC, NFD])
@pytest.mark.parametrize("given_as", [NFC, NFD])
def test_added_facts_mean_the_entity_that_is_there(stored: str, given_as: str) -> None:
    names = Vocabulary(sorted([stored, "Paris"]))
    graph = KnowledgeGraph.from_ids(
        np.array([[names.id("Paris"), 0, names.id(stored)]]), names, Vocabulary([stored])
    )
    _, changes = changed_graph(
        graph, add=[(given_as, given_as, "Paris")], remove=[("Paris", given_as, given_as)]
    )
    assert (changes.added, changes.removed, changes.new_entities) == (1, 1, ())


def test_new_entities_have_one_spelling() -> None:
    graph = KnowledgeGraph.from_tuples([("Paris", "in", "France")])
    _, changes = changed_graph(graph, add=[(NFC, "in", "France"), (NFD, "in", "Paris")])
    assert changes.new_entities == (NFC,)


def test_relations_of_another_graph_are_matched_in_either_spelling() -> None:
    known = KnowledgeGraph.from_ids(np.array([[0, 0, 1]]), Vocabulary(["a", "b"]), Vocabulary([NFD]))
    other = with_relations_of(dataset_from_tuples([("x", NFC, "y")]), known)
    assert other.graph.n_entities == 2


@pytest.mark.parametrize("spelled", [NFC, NFD])
def test_labels_find_their_identifiers_and_are_found(spelled: str) -> None:
    labels = pl.DataFrame(
        {"id": [NFD], "name": [f"Le {NFD}"], "description": [None], "type": [None]},
        pl.Schema({c: pl.String for c in ("id", "name", "description", "type")}),
    )
    dataset = dataset_from([(NFC, "in", "Paris")], valid=[], labels=labels)
    entities = dataset.graph.entities
    assert entities.label(entities.id(NFC)) == f"Le {NFC}"
    assert entities.id(f"le {spelled}") == entities.id(NFC)


def test_an_unknown_name_is_never_offered_as_itself() -> None:
    graph = KnowledgeGraph.from_tuples([(NFD, "in", "Paris")])
    with pytest.raises(UnknownName) as caught:
        graph.entities.id("Cafes")
    assert caught.value.near == [NFC]


def test_types_are_asked_for_in_either_spelling() -> None:
    schema = dict.fromkeys(("id", "name", "description", "type"), pl.String)
    labels = pl.DataFrame([("a", None, None, NFD)], schema, orient="row")
    entities = dataset_from([("a", "in", "b")], valid=[], labels=labels).graph.entities
    assert entities.of_type(NFC).tolist() == entities.of_type(f" {NFD.lower()}").tolist() == [0]
