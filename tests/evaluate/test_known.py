"""Known answers against a dict of sets."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmpn.evaluate.known import KnownAnswers

triples = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 6)), max_size=25)


def as_array(rows, dtype=np.int32):
    return np.array(rows, dtype).reshape(-1, 3)


def rows_of(offsets, tails):
    return [tails[a:b].tolist() for a, b in itertools.pairwise(offsets)]


@settings(derandomize=True, deadline=None, max_examples=200)
@given(
    train=triples,
    valid=triples,
    test=triples,
    queries=st.lists(st.tuples(st.integers(-1, 7), st.integers(-1, 5)), max_size=12),
)
def test_matches_a_dict_of_sets(train, valid, test, queries):
    expected = {}
    for head, relation, tail in train + valid + test:
        expected.setdefault((head, relation), set()).add(tail)
    known = KnownAnswers.from_triples(as_array(train), as_array(valid), as_array(test))
    pairs = np.array(queries, np.int32).reshape(-1, 2)

    offsets, tails = known.lookup(pairs[:, 0], pairs[:, 1])

    assert rows_of(offsets, tails) == [sorted(expected.get(query, ())) for query in queries]
    assert (offsets.dtype, tails.dtype) == (np.int64, np.int32)


def test_large_ids_do_not_overflow():
    top = 2**31 - 1
    rows = [(top, top, top), (top, top, 0), (9_999_999, 70_000, 9_999_998), (0, top, 5), (top, 0, 6)]
    known = KnownAnswers.from_triples(as_array(rows))
    pairs = np.array([(top, top), (9_999_999, 70_000), (0, top), (top, 0), (1, 0)], np.int32)
    assert rows_of(*known.lookup(pairs[:, 0], pairs[:, 1])) == [[0, top], [9_999_998], [5], [6], []]


def test_an_unseen_relation_is_not_the_next_heads_first():
    known = KnownAnswers.from_triples(as_array([(0, 1, 3), (1, 0, 4)]))
    assert rows_of(*known.lookup(np.array([0, 1]), np.array([2, 0]))) == [[], [4]]


def test_no_triples_and_no_queries():
    known = KnownAnswers.from_triples()
    assert rows_of(*known.lookup(np.array([0, 3]), np.array([0, 1]))) == [[], []]
    offsets, tails = known.lookup(np.empty(0, np.int32), np.empty(0, np.int32))
    assert offsets.tolist() == [0]
    assert tails.size == 0


def test_refuses_what_are_no_triples():
    with pytest.raises(ValueError, match="n x 3"):
        KnownAnswers.from_triples(np.zeros((4, 2), np.int32))
    with pytest.raises(ValueError, match="from 0"):
        KnownAnswers.from_triples(as_array([(0, -1, 2)]))
    with pytest.raises(ValueError, match="equally long"):
        KnownAnswers.from_triples(as_array([(0, 1, 2)])).lookup(np.zeros(2, int), np.zeros(3, int))


@given(triples, triples)
def test_contains_is_membership(rows: list, asked: list) -> None:
    known = KnownAnswers.from_triples(as_array(rows))
    heads, relations, tails = as_array(asked).T
    found = known.contains(heads, relations, np.arange(len(asked)), tails)
    assert found.tolist() == [triple in set(rows) for triple in asked]
