"""Single-relation tasks made of a dataset."""

import re

import numpy as np
import pytest

from dpmpn.data.dataset import WRONG_PER_HEAD, Dataset, read_candidates, single_relation_task
from dpmpn.data.importer import dataset_from_tuples, load_dataset
from dpmpn.data.vocabulary import Vocabulary
from dpmpn.errors import DataError, UnknownName


@pytest.fixture
def towns() -> Dataset:
    train = [("anna", "lives_in", "rome"), ("ben", "lives_in", "oslo"), ("anna", "knows", "ben")]
    valid = [("carl", "lives_in", "bern")]
    test = [("carl", "lives_in", "oslo"), ("carl", "lives_in", "rome"), ("ben", "knows", "carl")]
    return dataset_from_tuples([*train, ("ben", "lives_in", "kyiv")], valid, test, name="towns")


def test_one_relation_is_asked_one_way_on_the_whole_graph(towns):
    task = single_relation_task(towns, "lives_in")
    assert task.name == "towns/lives_in"
    assert task.graph is towns.graph
    assert [len(task.queries(split)) for split in ("train", "valid", "test")] == [3, 1, 2]


def test_candidates_are_the_test_answers_and_answers_to_other_heads(towns):
    task = single_relation_task(towns, "lives_in")
    names, asked = task.graph.entities.names, task.candidates
    assert asked is not None
    assert {names[head] for head in asked.heads} == {"carl"}
    right = {names[tail] for tail in asked.tails[asked.positive]}
    wrong = {names[tail] for tail in asked.tails[~asked.positive]}
    # Bern is carl's own answer, held out for validation: it is neither asked nor wrong.
    assert (right, wrong) == ({"oslo", "rome"}, {"kyiv"})


def test_the_same_seed_draws_the_same_candidates():
    countries = load_dataset("countries")
    first, again, other = (single_relation_task(countries, "uses_currency", seed) for seed in (0, 0, 1))
    assert np.array_equal(first.candidates.tails, again.candidates.tails)
    assert not np.array_equal(first.candidates.tails, other.candidates.tails)
    counts = np.bincount(first.candidates.heads[~first.candidates.positive])
    assert set(counts[counts > 0]) == {WRONG_PER_HEAD}


def test_a_relation_without_test_facts_is_refused(towns):
    with pytest.raises(DataError, match="has no test facts of 'part_of'"):
        single_relation_task(load_dataset("countries"), "part_of")
    with pytest.raises(UnknownName):
        single_relation_task(towns, "lives_on")


def test_candidates_are_read_in_order_and_unknown_entities_kept(tmp_path):
    path = tmp_path / "sort_test.pairs"
    path.write_text("thing$a,thing$b,c: +\nthing$a,thing$nobody: -\n")
    candidates = read_candidates(path, Vocabulary(["a", "b,c"]), relation=7)
    assert candidates.relation == 7 and len(candidates) == 2
    assert candidates.heads.tolist() == [0, 0]
    assert candidates.tails.tolist() == [1, -1]
    assert candidates.positive.tolist() == [True, False]


@pytest.mark.parametrize("line", ["thing$a,thing$b: ?", "a,b: +", "thing$a: +", ""])
def test_a_wrong_line_is_named_with_its_value(tmp_path, line):
    path = tmp_path / "sort_test.pairs"
    path.write_text(f"thing$a,thing$b: +\n{line}\nthing$a,thing$b: -\n")
    with pytest.raises(DataError, match=re.escape(f"{path}, line 2: '{line}' is not a candidate")):
        read_candidates(path, Vocabulary(["a", "b"]), 0)


def test_a_right_answer_is_not_a_wrong_one_too(tmp_path):
    path = tmp_path / "sort_test.pairs"
    path.write_text("thing$a,thing$b: -\nthing$a,thing$b: +\nthing$a,thing$c: -\nthing$b,thing$c: +\n")
    found = read_candidates(path, Vocabulary(["a", "b", "c"]), relation=0)
    assert list(zip(found.heads, found.tails, found.positive, strict=True)) == [
        (0, 1, True),
        (0, 2, False),
        (1, 2, True),
    ]
