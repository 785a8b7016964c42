"""A run folder is complete in itself, and says what is missing when it is not."""

import dataclasses
import json
import shutil

import numpy as np
import pytest

from dpmpn.data.dataset import SPLITS, Candidates
from dpmpn.errors import RunError
from dpmpn.models import build_model
from dpmpn.train.checkpoint import save_best
from dpmpn.train.run_folder import RunFolder


@pytest.fixture
def run(tmp_path, dataset, config):
    return RunFolder.create(tmp_path / "run", dataset, config)


def same_dataset(one, other):
    assert (one.name, one.both_directions) == (other.name, other.both_directions)
    for split in SPLITS:
        np.testing.assert_array_equal(one.split(split), other.split(split))
    for name in ("offsets", "relations", "tails", "inverse"):
        np.testing.assert_array_equal(getattr(one.graph, name), getattr(other.graph, name))
    assert one.graph.entities.names == other.graph.entities.names
    assert one.graph.relation_names.names == other.graph.relation_names.names


def test_a_moved_folder_holds_everything(run, tmp_path, dataset, config):
    graph = dataset.graph
    network = build_model(graph.n_entities, graph.n_relations, config.model, 8)
    save_best(run.path, network, 3, None)
    moved = shutil.move(run.path, tmp_path / "elsewhere")
    found = RunFolder.open(moved)
    assert found.config == config
    same_dataset(found.dataset(), dataset)
    loaded = found.model().state_dict()
    assert all((loaded[name] == value).all() for name, value in network.state_dict().items())


def test_the_graph_is_mapped(run):
    dataset = run.dataset()
    for array in (dataset.graph.tails, dataset.train):
        while array.base is not None and not isinstance(array, np.memmap):
            array = array.base
        assert isinstance(array, np.memmap)


def test_what_a_run_says_of_itself(run, dataset):
    description = json.loads((run.path / "dataset.json").read_text())
    assert description["name"] == "small"
    assert description["train"] == len(dataset.train)
    assert {"dpmpn", "torch", "numpy", "numba", "python"} <= json.loads(
        (run.path / "versions.json").read_text()
    ).keys()
    assert run.metrics.read_text() == ""
    assert not list(run.path.glob(".*"))


def test_candidates_and_empty_splits_come_back(tmp_path, dataset, config):
    candidates = Candidates(
        2, np.array([3, -1, 4], np.int32), np.array([1, 2, -1], np.int32), np.array([True, False, True])
    )
    task = dataclasses.replace(
        dataset, candidates=candidates, both_directions=False, valid=np.empty((0, 3), np.int32)
    )
    found = RunFolder.create(tmp_path / "task", task, config).dataset()
    same_dataset(found, task)
    assert found.candidates.relation == 2
    for name in ("heads", "tails", "positive"):
        np.testing.assert_array_equal(getattr(found.candidates, name), getattr(candidates, name))


def test_a_run_is_not_overwritten(run, dataset, config):
    with pytest.raises(RunError, match=r"--resume or choose another --out"):
        RunFolder.create(run.path, dataset, config)


def test_foreign_folders_are_left_alone(tmp_path, dataset, config):
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(RunError, match="not empty"):
        RunFolder.create(tmp_path, dataset, config)
    assert [file.name for file in tmp_path.iterdir()] == ["letter.txt"]
    with pytest.raises(RunError, match="already exists"):
        RunFolder.create(tmp_path / "letter.txt", dataset, config)


def test_an_empty_folder_is_taken(tmp_path, dataset, config):
    same_dataset(RunFolder.create(tmp_path, dataset, config).dataset(), dataset)


def test_what_an_interrupted_creation_left_is_removed(tmp_path, dataset, config):
    (tmp_path / ".dpmpn-0123456789abcdef.partial").mkdir()
    same_dataset(RunFolder.create(tmp_path / "run", dataset, config).dataset(), dataset)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize("name", ["dataset.json", "graph", "triples"])
def test_what_is_missing_is_named(run, name):
    path = run.path / name
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(RunError, match=name):
        RunFolder.open(run.path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config.json", b"{"),
        ("config.json", b'{"model": {"n_dimensions": 3}}'),
        ("dataset.json", b"{}"),
        ("triples/train.npy", b""),
        ("triples/valid.npy", b"\x93NUMPY and no more"),
        ("graph/manifest.json", b"{}"),
        ("graph/tails.npy", b""),
    ],
)
def test_what_is_broken_is_named(run, name, content):
    (run.path / name).write_bytes(content)
    with pytest.raises(RunError, match=name):
        RunFolder.open(run.path).dataset()


def test_pickles_and_foreign_ids_are_refused(run, dataset):
    np.save(run.path / "triples" / "test.npy", np.array([{}], object), allow_pickle=True)
    with pytest.raises(RunError, match=r"test\.npy"):
        run.dataset()
    np.save(run.path / "triples" / "test.npy", np.array([[0, 0, dataset.graph.n_entities]], np.int32))
    with pytest.raises(RunError, match=r"test\.npy has \d+ bytes instead of \d+"):
        run.dataset()


def test_folders_that_are_no_runs(tmp_path):
    with pytest.raises(RunError, match="is not a folder"):
        RunFolder.open(tmp_path / "nowhere")
    with pytest.raises(RunError, match="not the folder of a run"):
        RunFolder.open(tmp_path)


def test_weights_that_are_not_there(run):
    assert not run.has_weights()
    with pytest.raises(RunError, match="no checkpoint was written yet"):
        run.model()
    with pytest.raises(RunError, match="'best' and 'last'"):
        run.model("second")
