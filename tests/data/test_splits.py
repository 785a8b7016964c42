import datetime
import itertools

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmpn.data.splits import TEST, TRAIN, VALID, parse_times, random_split, time_split
from dpmpn.errors import ConfigError, DataError

N_ENTITIES, N_RELATIONS = 8, 3
entity, relation = st.integers(0, N_ENTITIES - 1), st.integers(0, N_RELATIONS - 1)
facts = st.lists(st.tuples(entity, relation, entity), unique=True, max_size=60).map(
    lambda rows: np.array(rows, np.int32).reshape(-1, 3)
)
share = st.sampled_from([0.0, 0.05, 0.1, 0.25, 0.45])
SIZES = (N_ENTITIES, N_RELATIONS)


def random_facts(n=20_000, n_entities=500, n_relations=20, seed=0):
    rng = np.random.default_rng(seed)
    columns = (rng.integers(0, limit, n) for limit in (n_entities, n_relations, n_entities))
    return np.unique(np.stack(list(columns), 1).astype(np.int32), axis=0)


def is_transductive(triples, assignment):
    train, held_out = triples[assignment == TRAIN], triples[assignment != TRAIN]
    seen = set(train[:, [0, 2]].ravel().tolist())
    relations = set(train[:, 1].tolist())
    return all(h in seen and t in seen and r in relations for h, r, t in held_out.tolist())


def count(split, part):
    return int((split.assignment == part).sum())


@settings(deadline=None)  # the first call compiles
@given(facts, share, share, st.integers(0, 2**63), st.booleans())
def test_a_random_split_is_a_partition_that_holds_out_no_more_than_asked(
    triples, valid, test, seed, transductive
):
    split = random_split(triples, *SIZES, valid, test, seed, transductive)
    assert split.assignment.dtype == np.int8 and split.assignment.shape == (len(triples),)
    assert set(split.assignment.tolist()) <= {TRAIN, VALID, TEST}
    assert count(split, VALID) <= split.wanted_valid and count(split, TEST) <= split.wanted_test
    assert not len(triples) or count(split, TRAIN) > 0
    if transductive:
        assert is_transductive(triples, split.assignment)
    else:
        assert (count(split, VALID), count(split, TEST)) == (split.wanted_valid, split.wanted_test)


@settings(deadline=None)  # the first call compiles
@given(facts, share, share, st.integers(0, 9), st.randoms(use_true_random=False))
def test_a_random_split_does_not_depend_on_the_order_of_the_rows(triples, valid, test, seed, random):
    order = list(range(len(triples)))
    random.shuffle(order)
    split = random_split(triples, *SIZES, valid, test, seed)
    shuffled = random_split(triples[order], *SIZES, valid, test, seed)
    assert np.array_equal(split.assignment[order], shuffled.assignment)
    assert split.sentence == shuffled.sentence


def test_a_large_graph_gets_the_sizes_asked_for_and_another_seed_another_draw():
    triples = random_facts()
    split = random_split(triples, 500, 20, 0.05, 0.1, 0)
    assert count(split, VALID) == split.wanted_valid == round(0.05 * len(triples))
    assert count(split, TEST) == split.wanted_test == round(0.1 * len(triples))
    other = random_split(triples, 500, 20, 0.05, 0.1, 1)
    # Two independent draws of 15 % share about 2 % of the facts.
    both = (split.assignment != TRAIN) & (other.assignment != TRAIN)
    assert 0.01 < both.mean() < 0.04
    # Every relation loses about its share, since the draw looks at no column.
    by_relation = np.bincount(triples[:, 1], split.assignment != TRAIN) / np.bincount(triples[:, 1])
    assert np.all(np.abs(by_relation - 0.15) < 0.06)
    assert split.sentence.startswith("5.0 % valid and 10.0 % test drawn at random with seed 0: ")


def test_where_fewer_facts_can_be_held_out_both_parts_get_their_share():
    # A ring with one chord for every other entity: at most a third of the facts can go.
    n = 40
    ring = [(i, 0, (i + 1) % n) for i in range(n)]
    chords = [(i, 0, (i + 3) % n) for i in range(0, n, 2)]
    split = random_split(np.array(ring + chords, np.int32), n, 1, 0.4, 0.4, 0)
    valid, test = count(split, VALID), count(split, TEST)
    assert valid + test < split.wanted_valid + split.wanted_test
    assert abs(valid - test) <= 1 and valid > 5
    assert split.returned_to_train > 0
    assert f"{split.returned_to_train} facts went back to train" in split.sentence


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [(0, 0, 0)],
        [(0, 0, 1)],
        [(0, 0, i) for i in range(1, 8)],  # a star: each fact is the only one of an entity
        [(i, 0, i) for i in range(8)],
        [(0, i, 1) for i in range(3)],
    ],
)
def test_graphs_too_small_to_split_stay_whole(rows):
    triples = np.array(rows, np.int32).reshape(-1, 3)
    for split in (
        random_split(triples, *SIZES, 0.1, 0.3, 0),
        time_split(triples, np.zeros(len(rows)), *SIZES, 0.1, 0.3),
    ):
        assert not split.assignment.any()
        assert (
            "too few facts to hold any out" in split.sentence or "nothing could be held out" in split.sentence
        )


@pytest.mark.parametrize(("valid", "test"), [(0.5, 0.5), (-0.1, 0.1), (0, 1.0), (float("nan"), 0)])
def test_shares_that_leave_nothing_to_train_on_are_refused(valid, test):
    with pytest.raises(ConfigError, match=r"share"):
        random_split(random_facts(50), 500, 20, valid, test, 0)


@settings(deadline=None)  # the first call compiles
@given(facts, share, share, st.data(), st.booleans())
def test_a_time_split_holds_out_the_latest(triples, valid, test, data, transductive):
    moments = st.lists(st.integers(1990, 2020), min_size=len(triples), max_size=len(triples))
    times = np.array(data.draw(moments), np.int64)
    split = time_split(triples, times, *SIZES, valid, test, transductive)
    drawn = time_split(triples, times, *SIZES, valid, test, transductive=False)
    parts = [times[drawn.assignment == part] for part in (TRAIN, VALID, TEST)]
    filled = [part for part in parts if len(part)]
    assert all(earlier.max() <= later.min() for earlier, later in itertools.pairwise(filled))
    assert not len(triples) or len(parts[0])
    if transductive:
        assert is_transductive(triples, split.assignment)
        changed = split.assignment != drawn.assignment
        assert not split.assignment[changed].any() and changed.sum() == split.returned_to_train
    order = np.argsort(times, kind="stable")[::-1]
    again = time_split(triples[order], times[order], *SIZES, valid, test, transductive)
    assert np.array_equal(split.assignment[order], again.assignment)


def test_facts_of_one_time_stay_together_where_the_sizes_allow_it():
    triples = random_facts(1_000)
    times = np.sort(np.random.default_rng(0).integers(0, 50, len(triples)))
    split = time_split(triples, times, 500, 20, 0.1, 0.1, transductive=False)
    assert all(len(set(split.assignment[times == time].tolist())) == 1 for time in range(50))
    assert abs(count(split, TEST) - split.wanted_test) <= split.wanted_test // 2
    assert "both sides" not in split.sentence
    crowded = time_split(triples, times // 25, 500, 20, 0.1, 0.1, transductive=False)
    assert (count(crowded, VALID), count(crowded, TEST)) == (crowded.wanted_valid, crowded.wanted_test)
    assert "both sides of a border" in crowded.sentence


def test_an_entity_that_appears_late_has_its_first_fact_in_train():
    old = [(i, 0, (i + 1) % 5) for i in range(5)] * 3
    old = [(h, r + n // 5, t) for n, (h, r, t) in enumerate(old)]
    late = [(0, 0, 5), (1, 0, 5), (2, 0, 5)]
    triples = np.array(old + late, np.int32)
    split = time_split(triples, np.arange(len(triples)), 6, 3, 0.0, 3 / 18)
    assert split.assignment[-3:].tolist() == [TRAIN, TEST, TEST]
    assert split.returned_to_train == 1 and "1 fact went back to train" in split.sentence


@pytest.mark.parametrize(
    "texts",
    [
        ["-5", "3", "20"],
        ["-1e3", "0.5", "2"],
        ["1999", "2000"],
        ["0999-12-31", "1999", "1999-05", "1999-05-02", "1999-05-02 10:00:00", "1999-05-02T10:00:00.25"],
        ["2020-05-17T10:00:00+02:00", "2020-05-17T09:00Z", "2020-05-17T06:30:00-03:00", "2020-05-17T10:00"],
    ],
)
def test_times_sort_as_they_mean(texts):
    assert (np.diff(parse_times(pl.Series(texts))) > 0).all()


def test_times_of_other_types():
    assert parse_times(pl.Series([1.5, 2.0])).tolist() == [1.5, 2.0]
    moments = [datetime.date(1970, 1, 1), datetime.date(1970, 1, 2)]
    assert parse_times(pl.Series(moments)).tolist() == [0, 86_400_000_000]


@pytest.mark.parametrize(
    ("times", "named"),
    [
        (["2020-01-01", "2020-02-31"], "fact 2 '2020-02-31' cannot be read"),
        (["1", "2", "soon"], "fact 3 'soon' cannot be read"),
        (["1", "2020-01-01"], "fact 1 '1' cannot be read"),
        (["1", "inf"], "fact 2 'inf' cannot be read"),
        (["1", None], "fact 2 is missing"),
        ([1, None], "fact 2 is missing"),
        ([1.0, float("nan")], "fact 2 'nan' cannot be read"),
        ([True], "times of type Boolean"),
    ],
)
def test_times_that_cannot_be_read_are_named(times, named):
    with pytest.raises(DataError, match=named):
        parse_times(pl.Series(times))
