import json
import os
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.data.sources.base import LABELS
from dpmpn.data.storage import _FILES
from dpmpn.errors import DataError, RunError
from dpmpn.files import fingerprints

ARRAYS = ("offsets", "relations", "tails", "inverse")
names = st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=5)
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
    with pytest.raises(RunError, match="already exists"):
        KnowledgeGraph.open(saved).save(saved)


def test_a_folder_without_manifest_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"manifest\.json is missing"):
        KnowledgeGraph.open(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 99}, "written by a newer dpmpn .*: update dpmpn"),
        ({"version": 1}, "is version 1 of the format, this dpmpn reads 2"),
        ({"format": "other"}, "is of format 'other', not 'dpmpn-graph'"),
        ({"n_edges": -1}, "'n_edges' is -1, not a count"),
        ({"n_edges": 10**400}, "'n_edges' is 10+, not a count"),
        (
            {"n_edges": 3},
            r"relations\.npy holds int16 of shape \(4,\), where .* of shape \(3,\) was expected",
        ),
        ({"files": []}, "does not list its files"),
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
    with pytest.raises(DataError, match=r"tails\.npy has \d+ bytes instead of \d+"):
        KnowledgeGraph.open(saved)


def test_missing_names_are_refused(saved):
    (saved / "entities.txt").unlink()
    with pytest.raises(DataError, match=r"entities\.txt is missing"):
        KnowledgeGraph.open(saved)


def test_a_flipped_bit_is_found(saved):
    path = saved / "tails.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"tails\.npy was changed"):
        KnowledgeGraph.open(saved)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("tails", lambda a: a + 100, r"tails\.npy holds numbers outside 0\.\.2"),
        ("relations", lambda a: a - 100, r"relations\.npy holds numbers outside"),
        ("offsets", lambda a: a[::-1], r"offsets\.npy does not lead from 0 to 4"),
        ("entities", lambda a: a * 3, r"entities\.npy does not lead from 0 to 6"),
    ],
)
def test_a_forged_folder_cannot_make_kernels_read_elsewhere(saved, name, change, message):
    path = saved / f"{name}.npy"
    np.save(path, change(np.load(path)))
    manifest = json.loads((saved / "manifest.json").read_text())
    manifest["files"] = fingerprints(saved, _FILES)
    (saved / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(DataError, match=message):
        KnowledgeGraph.open(saved)


def test_labels_are_saved_with_the_graph(tmp_path):
    graph = KnowledgeGraph.from_tuples([("Q1", "P1", "Q2")])
    frame = pl.DataFrame([("Q2", "Berlin", None, "city"), ("P1", "has", "owns", None)], LABELS, orient="row")
    graph = graph.labelled(frame)
    graph.save(tmp_path / "graph")
    opened = KnowledgeGraph.open(tmp_path / "graph")
    assert opened.entities.id("Berlin") == 1 and opened.entities.of_type("city").tolist() == [1]
    assert opened.relation_names.label(0) == "has" and opened.relation_names.describe(0) == "owns"
