import json
import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.errors import DataError

ARRAYS = ("offsets", "relations", "tails", "inverse")
names = st.text(
    st.characters(blacklist_categories=["Cs"], blacklist_characters="\r\n"), min_size=1, max_size=5
)
facts = st.lists(st.tuples(names, st.sampled_from(["p", "q", "größer als"]), names), max_size=12)


@pytest.fixture
def saved(tmp_path):
    folder = tmp_path / "graph"
    KnowledgeGraph.from_tuples([("a", "r", "b"), ("b", "r", "c")]).save(folder)
    return folder


@given(facts)
@settings(max_examples=40)
def test_what_is_saved_is_opened(triples):
    graph = KnowledgeGraph.from_tuples(triples)
    with tempfile.TemporaryDirectory() as parent:
        graph.save(Path(parent) / "graph")
        opened = KnowledgeGraph.open(Path(parent) / "graph")
        for name in ARRAYS:
            assert np.array_equal(getattr(graph, name), getattr(opened, name))
            assert getattr(graph, name).dtype == getattr(opened, name).dtype
        assert opened.entities.names == graph.entities.names
        assert opened.relation_names.names == graph.relation_names.names
        assert opened.n_forward == graph.n_forward


def test_arrays_are_mapped_not_read(saved):
    tails = KnowledgeGraph.open(saved).tails
    assert isinstance(tails.base, np.memmap) and not tails.flags.writeable


def test_nothing_else_is_left_beside_the_folder(saved):
    assert os.listdir(saved.parent) == ["graph"]


def test_an_existing_folder_is_not_overwritten(saved):
    with pytest.raises(DataError, match="exists already"):
        KnowledgeGraph.open(saved).save(saved)


def test_a_name_with_a_line_break_is_refused_and_leaves_nothing(tmp_path):
    with pytest.raises(DataError, match=r"name 'a\\nb' holds a line break"):
        KnowledgeGraph.from_tuples([("a\nb", "r", "c")]).save(tmp_path / "graph")
    assert os.listdir(tmp_path) == []


def test_a_folder_without_manifest_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"manifest\.json: not a readable graph manifest"):
        KnowledgeGraph.open(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 99}, "version 99 is not version 1"),
        ({"format": "other"}, "not the manifest of a saved graph"),
        ({"n_edges": -1}, "'n_edges' is -1, not a count"),
        ({"n_edges": 3}, r"relations\.npy: holds int16 of shape \(4,\), the manifest says 3"),
    ],
)
def test_a_manifest_that_does_not_fit_is_refused(saved, change, message):
    path = saved / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(DataError, match=message):
        KnowledgeGraph.open(saved)


def test_a_pickle_is_never_loaded(saved):
    np.save(saved / "tails.npy", np.array([{}, 1, 2, 3], object), allow_pickle=True)
    with pytest.raises(DataError, match=r"tails\.npy"):
        KnowledgeGraph.open(saved)


def test_a_cut_file_is_refused(saved):
    path = saved / "tails.npy"
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(DataError, match=r"tails\.npy: cannot be read"):
        KnowledgeGraph.open(saved)


def test_missing_names_are_refused(saved):
    (saved / "entities.txt").unlink()
    with pytest.raises(DataError, match=r"entities\.txt: is missing"):
        KnowledgeGraph.open(saved)
