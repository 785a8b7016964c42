import gzip
import os
import re
import tempfile
from pathlib import Path

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmpn.data.dataset import SPLITS
from dpmpn.data.importer import dataset_from_tuples, import_dataset, load_dataset
from dpmpn.data.names import AROUND
from dpmpn.data.registry import DATASETS, ROOT_VARIABLE
from dpmpn.data.sources.base import ReadOptions
from dpmpn.data.sources.formats import open_sources, split_files
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
    with pytest.raises(DataError, match=r"has no file train\.\*, such as train\.txt"):
        load_dataset(write(tmp_path, test=TRAIN))


plain_name = st.text(
    st.characters(blacklist_categories=["Cs"], blacklist_characters='\t\r\n\ufeff\0"#'),
    min_size=1,
    max_size=6,
).filter(lambda text: text.strip() == text.strip(AROUND) == text)
rows = st.lists(st.tuples(plain_name, plain_name, plain_name), min_size=1, max_size=20)


def folder_with(folder, content, name="train.txt"):
    path = Path(folder) / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


def facts(folder):
    dataset = load_dataset(folder)
    return named(dataset, dataset.train)


@given(rows, st.sampled_from(["\n", "\r\n"]), st.sampled_from(["train.txt", "train.txt.gz"]))
@settings(max_examples=60)
def test_what_is_written_is_loaded(triples, line_end, name):
    content = "".join("\t".join(row) + line_end for row in [("a fact", "comes", "first"), *triples]).encode()
    with tempfile.TemporaryDirectory() as folder:
        folder_with(folder, content, name)
        assert facts(folder) == list(dict.fromkeys([("a fact", "comes", "first"), *triples]))


@pytest.mark.parametrize("stem", ["valid", "val", "validation", "dev", "Valid"])
@pytest.mark.parametrize(
    ("ending", "content"),
    [("txt", "c\tr\ta\n"), ("csv", "head,relation,tail\nc,r,a\n"), ("json", '["c", "r", "a"]')],
)
def test_validation_facts_are_found_whatever_they_are_called(tmp_path, stem, ending, content):
    write(tmp_path, train=TRAIN)
    (tmp_path / f"{stem}.{ending}").write_text(content)
    dataset = load_dataset(tmp_path)
    assert named(dataset, dataset.valid) == [("c", "r", "a")]


def test_a_folder_is_loaded_and_imported_alike(tmp_path):
    write(tmp_path, train=TRAIN, val=[("c", "r", "a")], test=[("a", "s", "new")])
    sources = {split: open_sources(files, ReadOptions()) for split, files in split_files(tmp_path).items()}
    import_dataset({split: sources[split] for split in SPLITS}, tmp_path / "imported")
    loaded, imported = load_dataset(tmp_path), load_dataset(tmp_path / "imported")
    assert loaded.graph.entities.names == imported.graph.entities.names
    assert loaded.graph.relation_names.names == imported.graph.relation_names.names
    for array in ("offsets", "relations", "tails", "inverse"):
        assert np.array_equal(getattr(loaded.graph, array), getattr(imported.graph, array))
    for split in SPLITS:
        assert np.array_equal(loaded.split(split), imported.split(split))


@pytest.mark.parametrize(
    "content",
    [
        b"a\tr\tb\nc\tr\td",
        b"a\tr\tb\nc\tr\td\n\n",
        b"a\tr\tb\n\nc\tr\td\n",
        b"a\tr\tb\r\nc\tr\td\r\n\r\n",
        b"\xef\xbb\xbfa\tr\tb\nc\tr\td\n",
        b" a\tr\tb\nc\tr \td\n",
    ],
)
def test_line_ends_blank_lines_white_space_and_byte_order_mark_are_accepted(tmp_path, content):
    folder_with(tmp_path, content)
    assert facts(tmp_path) == [("a", "r", "b"), ("c", "r", "d")]


def test_quotes_hashes_numbers_and_null_are_plain_names(tmp_path):
    folder_with(tmp_path, b'"a\tNA\t#b"\n1\tnull\t2\n')
    assert facts(tmp_path) == [('"a', "NA", '#b"'), ("1", "null", "2")]


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (b"a\tr\tb\nc d\n", 2, "1 column instead of 3 in 'c d'"),
        (b"a\tr\tb\nx\tr\ty\na\tr\tb\tx\nc\td\n", 3, "4 columns instead of 3 in 'a\tr\tb\tx'"),
        (b"a\tr\tb\n\t\td\n", 2, "empty head in '\t\td'"),
        (b"a\tr\tb\nc\tr\t\n", 2, "empty tail in 'c\tr\t'"),
        (b"a\tr\tb\nc\tr\td\nx\tr\t\xff\n", 3, "byte 0xff at position 5 is not UTF-8 in 'x\tr\t\ufffd'"),
        (b"a\tr\tb\na\tr\t \n", 2, "empty tail in 'a\tr\t '"),
        (b"a\tr\tb\na\tr\t\0\n", 2, "byte 0x00 at position 5"),
    ],
)
def test_a_wrong_line_is_named_with_its_value(tmp_path, content, line, message):
    path = folder_with(tmp_path, content)
    with pytest.raises(DataError, match=re.escape(f"{path}, line {line}: {message}")) as error:
        load_dataset(tmp_path)
    assert str(error.value).endswith(
        "with --skip-bad (an option of `dpmpn import`, which makes a dataset of the folder)"
    )


@pytest.mark.parametrize(("content", "message"), [(b"", "is empty"), (b"\r\n\r\n", "no facts were read")])
def test_a_file_without_facts_is_refused(tmp_path, content, message):
    folder_with(tmp_path, content)
    with pytest.raises(DataError, match=message):
        load_dataset(tmp_path)


def test_a_broken_archive_is_refused(tmp_path):
    path = folder_with(tmp_path, b"a\tr\tb\n" * 100, "train.txt.gz")
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(DataError, match=r"train\.txt\.gz: cannot be read"):
        load_dataset(tmp_path)


def test_a_zstd_archive_is_read(tmp_path):
    (tmp_path / "train.txt.zst").write_bytes(zstandard.ZstdCompressor().compress(b"a\tr\tb\n"))
    assert facts(tmp_path) == [("a", "r", "b")]


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
