"""Answers to learn: some of them, the query of each, and where they are found."""

from itertools import pairwise

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmpn.engine.answer import Answer
from dpmpn.engine.learning import Targets

ROWS = st.lists(st.tuples(*[st.lists(st.integers(0, 9), max_size=4, unique=True)] * 2), max_size=6)


def ragged(rows):
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)])
    return offsets, np.array([x for row in rows for x in row], np.int64)


def rows_of(offsets, values):
    return [values[a:b].tolist() for a, b in pairwise(offsets)]


def targets_of(rows):
    return Targets(*ragged([row for row, _ in rows]), *ragged([sorted(known) for _, known in rows]))


@settings(max_examples=60, deadline=None)
@given(rows=ROWS, start=st.integers(0, 6), stop=st.integers(0, 6))
def test_parts_hold_what_the_whole_holds(rows, start, stop):
    targets, part = targets_of(rows), slice(start, stop)
    found = targets.part(part)
    assert len(targets) == len(rows) and len(found) == len(rows[part])
    assert rows_of(found.offsets, found.entities) == [row for row, _ in rows[part]]
    assert rows_of(found.known_offsets, found.known) == [sorted(known) for _, known in rows[part]]
    assert found.query.tolist() == [i for i, (row, _) in enumerate(rows[part]) for _ in row]


@settings(max_examples=60, deadline=None)
@given(rows=ROWS, data=st.data())
def test_targets_are_found_among_the_nodes_of_their_query(rows, data):
    targets = targets_of(rows)
    nodes = [data.draw(st.lists(st.integers(0, 9), unique=True)) for _ in rows]
    offsets, flat = ragged(nodes)
    at = targets.find(Answer(offsets, flat.astype(np.int32), torch.zeros(len(flat))))
    for query, entity, place in zip(targets.query, targets.entities, at, strict=True):
        expected = nodes[query].index(entity) + offsets[query] if entity in nodes[query] else -1
        assert place == expected


def test_one_target_each():
    targets = Targets.single(np.array([4, 2, 4], np.int32))
    assert rows_of(targets.offsets, targets.entities) == [[4], [2], [4]]
    assert rows_of(targets.known_offsets, targets.known) == [[], [], []]
    assert targets.query.tolist() == [0, 1, 2]
