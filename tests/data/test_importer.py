"""From batches of names to a dataset on disk."""

import json
import os

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmpn.data.dataset import SPLITS
from dpmpn.data.importer import SplitChoice, import_dataset, load_dataset, read_dataset
from dpmpn.data.names import normal
from dpmpn.data.numbering import Encoder
from dpmpn.data.sources.base import FACTS, LABELS, Account
from dpmpn.errors import DataError, RunError

names = st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=4)
batches = st.lists(st.lists(st.tuples(names, names, names), max_size=6), max_size=4)


class Given:
    """A source of what a test says."""

    def __init__(self, *batches, labels=(), times=None, failing=False):
        self.account = Account("given")
        self._batches, self._labels, self._times, self._failing = batches, labels, times, failing

    def batches(self):
        for rows in self._batches:
            frame = pl.DataFrame(rows, FACTS, orient="row")
            self.account.read += len(rows)
            if self._times is not None:
                frame = frame.with_columns(time=pl.Series(self._times[: len(rows)]))
            yield frame
        if self._failing:
            raise DataError("given, line 7: broken")

    def position(self):
        return 1, None

    def labels(self):
        return pl.DataFrame(list(self._labels), LABELS, orient="row")


def chain(n):
    return [(f"e{i:03d}", f"r{i % 2}", f"e{(i + 1) % n:03d}") for i in range(n)] * 2 + [
        (f"e{i:03d}", "r2", f"e{(i + 2) % n:03d}") for i in range(n)
    ]


@given(batches)
def test_encoded_batches_say_the_same_facts(batches):
    encoder = Encoder()
    for rows in batches:
        encoder.add("train", pl.DataFrame(rows, FACTS, orient="row"))
    entities, relations, triples, *_ = encoder.finish()
    facts = [tuple(map(normal, row)) for rows in batches for row in rows]
    assert list(entities) == sorted({name for h, _, t in facts for name in (h, t)})
    assert list(relations) == sorted({r for _, r, _ in facts})
    decoded = [
        (entities.name(h), relations.name(r), entities.name(t))
        for h, r, t in triples.get("train", np.empty((0, 3), int)).tolist()
    ]
    assert decoded == facts


def test_the_order_of_reading_does_not_matter():
    facts = chain(60)
    one, _ = read_dataset({"train": [Given(facts)]})
    other, _ = read_dataset({"train": [Given(facts[50:]), Given(facts[:20], facts[20:50])]})
    for split in SPLITS:
        np.testing.assert_array_equal(one.split(split), other.split(split))
    assert one.graph.entities.names == other.graph.entities.names


def test_an_imported_folder_is_a_dataset(tmp_path):
    labels = [("e001", "First", "the first", "thing"), ("r0", "follows", None, None)]
    report = import_dataset({"train": [Given(chain(60), labels=labels)]}, tmp_path / "mine")
    dataset = load_dataset(tmp_path / "mine")
    assert dataset.name == "mine" and dataset.both_directions
    assert (report["train"], report["valid"], report["test"]) == tuple(len(dataset.split(s)) for s in SPLITS)
    assert report["duplicates"] == 60 and sum(len(dataset.split(s)) for s in SPLITS) == 120
    assert report["valid"] == report["test"] == 6
    seen = set(dataset.train[:, [0, 2]].ravel().tolist())
    assert all({h, t} <= seen for h, _, t in np.concatenate([dataset.valid, dataset.test]).tolist())
    assert dataset.graph.entities.id("First") == dataset.graph.entities.id("e001")
    assert dataset.graph.relation_names.label(0) == "follows"
    assert json.loads((tmp_path / "mine" / "import.json").read_text()) == report
    assert report["sources"][0]["read"] == 180


def test_given_splits_are_taken_as_given():
    sources = {"train": [Given(chain(10))], "valid": [Given([("e001", "r9", "new")])]}
    dataset, report = read_dataset(sources)
    assert (len(dataset.train), len(dataset.valid), len(dataset.test)) == (20, 1, 0)
    assert report["split"] == "as given" and report["leakage"]["valid"]["unseen"] == 1


def test_a_split_by_time_holds_out_the_latest():
    facts = [(f"e{i % 7}", f"r{i % 2}", f"e{(i * 3 + 1) % 7}x{i % 5}") for i in range(70)]
    times = [str(2000 + i) for i in range(70)]
    dataset, report = read_dataset(
        {"train": [Given(facts, times=times)]}, split=SplitChoice("time", valid_share=0.1, test_share=0.1)
    )
    latest = {facts[i] for i in range(63, 70)}
    graph = dataset.graph
    held_out = {
        (graph.entities.name(h), graph.relation_names.name(r), graph.entities.name(t))
        for h, r, t in dataset.test.tolist()
    }
    assert held_out and held_out <= latest
    assert "time" in report["split"] or "latest" in report["split"]
    with pytest.raises(DataError, match="--time-column"):
        read_dataset({"train": [Given(facts)]}, split=SplitChoice("time"))


def test_nothing_is_left_of_an_import_that_fails(tmp_path):
    with pytest.raises(DataError, match="line 7"):
        import_dataset({"train": [Given(chain(10), failing=True)]}, tmp_path / "mine")
    assert os.listdir(tmp_path) == []


def test_sources_without_a_fact_are_refused():
    empty = Given([])
    empty.account.skip("literal value", 3)
    with pytest.raises(DataError, match=r"no facts were read from given \(3 left out: literal value\)"):
        read_dataset({"train": [empty]})


def test_an_existing_folder_is_kept(tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(RunError, match="already exists"):
        import_dataset({"train": [Given(chain(10))]}, tmp_path)
    assert os.listdir(tmp_path) == ["letter.txt"]


@pytest.mark.parametrize("facts", [[("a", "r", "a")], [("a", "r", "b")]])
def test_graphs_of_one_fact(facts, tmp_path):
    report = import_dataset({"train": [Given(facts)]}, tmp_path / "tiny")
    assert (report["train"], report["valid"], report["test"]) == (1, 0, 0)
    assert load_dataset(tmp_path / "tiny").graph.n_edges == 2
