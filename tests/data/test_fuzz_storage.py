"""Whatever happens to a dataset folder, it opens as it was saved or is refused in a sentence."""

import json
import shutil
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmpn.data.dataset import SPLITS, open_dataset, write_dataset
from dpmpn.data.importer import dataset_from_tuples
from dpmpn.data.sources.base import LABELS
from dpmpn.errors import DataError
from dpmpn.files import fingerprints

FACTS = [("a", "r", "b"), ("b", "q", "c"), ("c", "r", "a"), ("ü", "q", "a")]
PARENT = tempfile.TemporaryDirectory(prefix="dpmpn-fuzz-")
SAVED = Path(PARENT.name) / "saved"
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def saved_folder():
    if not SAVED.exists():
        SAVED.mkdir()
        dataset = dataset_from_tuples(FACTS, FACTS[:1], FACTS[1:2])
        labels = pl.DataFrame([("a", "Anna", "a person", "person")], LABELS, orient="row")
        object.__setattr__(dataset, "graph", dataset.graph.labelled(labels))
        write_dataset(dataset, SAVED)
    return SAVED


def files():
    return sorted(
        str(path.relative_to(saved_folder())) for path in saved_folder().rglob("*") if path.is_file()
    )


def opens_as_saved_or_is_refused(folder):
    try:
        found = open_dataset(folder)
    except DataError:
        return
    expected = open_dataset(saved_folder())
    for split in SPLITS:
        np.testing.assert_array_equal(found.split(split), expected.split(split))
    np.testing.assert_array_equal(found.graph.tails, expected.graph.tails)
    assert found.graph.entities.names == expected.graph.entities.names


def check_changed_bytes(data):
    """Flip, cut or add bytes anywhere."""
    name = data.draw(st.sampled_from(files()))
    content = bytearray((saved_folder() / name).read_bytes())
    at = data.draw(st.integers(0, max(len(content) - 1, 0)))
    change = data.draw(st.sampled_from(["flip", "cut", "insert"]))
    if change == "flip" and content:
        content[at] ^= data.draw(st.integers(1, 255))
    elif change == "cut":
        del content[at:]
    else:
        content[at:at] = data.draw(st.binary(min_size=1, max_size=9))
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(shutil.copytree(saved_folder(), Path(parent) / "copy"))
        (folder / name).write_bytes(content)
        opens_as_saved_or_is_refused(folder)


def check_changed_manifest(data):
    """Put any value in the place of a manifest's."""
    name = data.draw(st.sampled_from(["dataset.json", "graph/manifest.json"]))
    values = json.loads((saved_folder() / name).read_text())
    key = data.draw(st.sampled_from(sorted(values)))
    if data.draw(st.booleans()):
        del values[key]
    else:
        values[key] = data.draw(json_values)
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(shutil.copytree(saved_folder(), Path(parent) / "copy"))
        (folder / name).write_text(json.dumps(values))
        try:
            found = open_dataset(folder)
        except DataError:
            return
        assert len(found.train) == len(FACTS)


def check_forged_arrays(data):
    """Arrays of any numbers with the right checksums: refused, or safe to reason on."""
    name = data.draw(st.sampled_from(["offsets", "relations", "tails", "inverse", "entities"]))
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(shutil.copytree(saved_folder(), Path(parent) / "copy"))
        path = folder / "graph" / f"{name}.npy"
        array = np.load(path)
        numbers = st.integers(np.iinfo(array.dtype).min, np.iinfo(array.dtype).max) | st.integers(-2, 9)
        length = len(array) if data.draw(st.booleans()) else data.draw(st.integers(0, 9))
        np.save(path, np.array(data.draw(st.lists(numbers, min_size=length, max_size=length)), array.dtype))
        manifest = json.loads((folder / "graph" / "manifest.json").read_text())
        manifest["files"] = fingerprints(folder / "graph", sorted(manifest["files"]))
        (folder / "graph" / "manifest.json").write_text(json.dumps(manifest))
        try:
            graph = open_dataset(folder).graph
        except DataError:
            return
        assert (np.diff(graph.offsets) >= 0).all() and graph.offsets[-1] == len(graph.tails)
        assert graph.tails.max(initial=0) < graph.n_entities and graph.tails.min(initial=0) >= 0
        assert graph.relations.max(initial=0) < graph.n_relations and graph.relations.min(initial=0) >= 0
        assert len(graph.entities.names) == graph.n_entities


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_changed_bytes(data):
    check_changed_bytes(data)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_changed_manifest(data):
    check_changed_manifest(data)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_forged_arrays(data):
    check_forged_arrays(data)
