import gzip
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmpn.data.dataset import dataset_from_tuples, load_dataset
from dpmpn.data.registry import DATASETS, ROOT_VARIABLE
from dpmpn.errors import DataError, UnknownName

TRAIN = [("b", "r", "a"), ("a", "s", "c"), ("b", "r", "a")]
name = st.sampled_from("abcdef")
triples = st.lists(st.tuples(name, st.sampled_from("rst"), name), max_size=15)


def write(folder, **files):
    for stem, rows in files.items():
        text = "".join("\t".join(row) + "\n" for row in rows)
        (folder / f"{stem}.txt").write_text(text)
    return folder


def named(dataset, rows):
    entities, relations = dataset.graph.entities, dataset.graph.relation_names
    return [(entities.name(h), relations.name(r), entities.name(t)) for h, r, t in rows.tolist()]


@given(triples.filter(bool), triples, triples)
def test_splits_hold_the_triples_once_in_order(train, valid, test):
    dataset = dataset_from_tuples(train, valid, test)
    for split, given_triples in (("train", train), ("valid", valid), ("test", test)):
        assert named(dataset, dataset.split(split)) == list(dict.fromkeys(given_triples))
        assert dataset.split(split).dtype == np.int32
    every = [*train, *valid, *test]
    assert list(dataset.graph.entities) == sorted({e for h, _, t in every for e in (h, t)})
    assert list(dataset.graph.relation_names)[: dataset.graph.n_forward] == sorted({r for _, r, _ in every})
    assert dataset.graph.n_edges == 2 * len(set(train))


def test_queries_are_the_triples_and_then_their_inverses():
    dataset = dataset_from_tuples(TRAIN, test=[("c", "r", "new")])
    assert named(dataset, dataset.queries("test")) == [("c", "r", "new"), ("new", "r_inv", "c")]
    assert dataset.graph.degree(dataset.graph.entities.id("new")) == 0
    assert dataset.queries("valid").shape == (0, 3)
    assert named(dataset, dataset.queries("train"))[2:] == [("a", "r_inv", "b"), ("c", "s_inv", "a")]


def test_unknown_split_is_refused():
    with pytest.raises(UnknownName, match="unknown split 'dev'; did you mean 'train', 'valid', 'test'"):
        dataset_from_tuples(TRAIN).split("dev")


@pytest.mark.parametrize("row", [("a", "r"), ("a", "", "b"), ("a", 1, "b")])
def test_tuples_that_are_not_triples_are_refused(row):
    with pytest.raises(DataError, match="valid, triple 1"):
        dataset_from_tuples(TRAIN, valid=[TRAIN[0], row])
    with pytest.raises(DataError, match="train has no triples"):
        dataset_from_tuples([])


def test_a_folder_is_loaded(tmp_path):
    dataset = load_dataset(write(tmp_path, train=TRAIN, dev=[("c", "r", "a")]))
    assert named(dataset, dataset.train) == TRAIN[:2]
    assert named(dataset, dataset.valid) == [("c", "r", "a")]
    assert len(dataset.test) == 0
    assert (dataset.name, dataset.folder, dataset.candidates) == (tmp_path.name, tmp_path, None)


def test_a_gzipped_file_is_found(tmp_path):
    (tmp_path / "train.txt.gz").write_bytes(gzip.compress(b"a\tr\tb\n"))
    assert named(load_dataset(tmp_path), load_dataset(tmp_path).train) == [("a", "r", "b")]


def test_a_folder_without_train_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"has no train\.txt"):
        load_dataset(write(tmp_path, test=TRAIN))


def make_task(folder, train):
    graph = [("a", "r", "b"), ("b", "r_inv", "a"), *train]
    write(folder, train=train, dev=train[:1], test=[("b", "asked", "c")], graph=graph)
    (folder / "sort_test.pairs").write_text("thing$b,thing$c: +\nthing$b,thing$x: -\n")
    return folder


def test_a_task_takes_its_graph_as_it_is_and_asks_one_way(tmp_path):
    dataset = load_dataset(make_task(tmp_path, [("a", "asked", "c"), ("a", "asked", "d")]))
    assert dataset.graph.relation_names.names == ("asked", "r", "r_inv")
    assert dataset.graph.n_edges == 4
    assert not dataset.both_directions
    assert named(dataset, dataset.queries("test")) == [("b", "asked", "c")]
    assert dataset.candidates.relation == 0
    assert dataset.candidates.tails.tolist() == [dataset.graph.entities.id("c"), -1]


def test_a_task_with_two_asked_relations_is_refused(tmp_path):
    with pytest.raises(DataError, match="asks one relation, but its training file has 2"):
        load_dataset(make_task(tmp_path, [("a", "asked", "c"), ("a", "also", "d")]))


@pytest.mark.skipif(not os.environ.get(ROOT_VARIABLE), reason=f"${ROOT_VARIABLE} names no data folder")
@pytest.mark.parametrize("name", [entry.name for entry in DATASETS.values() if entry.published])
def test_published_counts(name):
    entry = DATASETS[name]
    if not entry.folder().is_dir():
        pytest.skip(f"{entry.folder()} is not there")
    dataset = load_dataset(name)
    sizes = [len(dataset.split(split)) for split in ("train", "valid", "test")]
    assert entry.published == (dataset.graph.n_entities, dataset.graph.n_forward, *sizes)


@pytest.mark.skipif(not os.environ.get(ROOT_VARIABLE), reason=f"${ROOT_VARIABLE} names no data folder")
def test_every_true_candidate_of_a_task_is_a_test_triple():
    if not DATASETS["NELL-995/worksfor"].folder().is_dir():
        pytest.skip("NELL-995 tasks are not there")
    dataset = load_dataset("worksfor")
    true = dataset.candidates.positive
    pairs = zip(dataset.candidates.heads[true].tolist(), dataset.candidates.tails[true].tolist(), strict=True)
    assert set(pairs) == {(h, t) for h, _, t in dataset.test.tolist()}
