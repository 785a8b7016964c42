"""Records of patterns: the kernel counts what its twin counts; samples have intervals; the fact asked is left out."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.explain import record
from dpmpn.explain.chains import count_chains
from dpmpn.explain.patterns import Hop
from dpmpn.explain.record import pattern_record

N_ENTITIES, N_RELATIONS = 7, 3
UNLIMITED = 10**9


def twin(
    graph: KnowledgeGraph,
    head: int,
    hops: Sequence[Sequence[int]],
    asked: int,
    wanted: set[int],
    hidden: tuple[int, int] | None,
) -> list[int]:
    """Follow every path of distinct entities, one after the other."""
    edges = {*zip(graph.all_heads().tolist(), graph.relations.tolist(), graph.tails.tolist(), strict=True)}
    stated = {tail for start, relation, tail in edges if (start, relation) == (head, asked)}
    if hidden is not None:
        edges -= {(hidden[0], asked, hidden[1]), (hidden[1], int(graph.inverse[asked]), hidden[0])}
    paths = {(head,)}
    for hop in hops:
        paths = {
            (*path, tail)
            for path in paths
            for start, relation, tail in edges
            if start == path[-1] and relation in hop and tail not in path
        }
    answers = {path[-1] for path in paths if (head, path[-1]) != hidden}
    return [len(answers), len(answers & stated), len((answers - stated) & wanted)]


entity, relation = st.integers(0, N_ENTITIES - 1), st.integers(0, 2 * N_RELATIONS - 1)
facts = st.lists(st.tuples(entity, st.integers(0, N_RELATIONS - 1), entity), min_size=1, max_size=40)
hop_lists = st.lists(st.tuples(relation, relation | st.just(-1)), min_size=1, max_size=6)


@given(facts, hop_lists, relation, st.none() | st.tuples(entity, entity), st.sets(entity))
@settings(max_examples=300)
def test_the_kernel_counts_what_its_slow_twin_counts(
    facts: list[tuple[int, int, int]],
    hops: list[tuple[int, int]],
    asked: int,
    hidden: tuple[int, int] | None,
    wanted: set[int],
) -> None:
    graph = KnowledgeGraph.from_ids(np.array(facts), N_ENTITIES, N_RELATIONS)
    heads = np.arange(N_ENTITIES)
    offsets = np.arange(N_ENTITIES + 1) * len(wanted)
    tails = np.tile(np.array(sorted(wanted), np.int64), N_ENTITIES)
    arrays = graph.inverse, graph.offsets, graph.relations, graph.tails
    pair = hidden or (-1, -1)
    counted = count_chains(heads, np.array(hops), asked, *arrays, offsets, tails, *pair, UNLIMITED)
    assert counted.tolist() == [twin(graph, head, hops, asked, wanted, hidden) for head in range(N_ENTITIES)]


SOLD = [
    ("A", "sold_in", "China"),
    ("B", "sold_in", "China"),
    ("C", "sold_in", "China"),
    ("B", "requires", "CCC"),
    ("C", "requires", "CCC"),
    ("D", "sold_in", "EU"),
    ("E", "sold_in", "EU"),
    ("E", "requires", "CE"),
    ("D", "requires", "FDA"),
]


def sold_elsewhere(graph: KnowledgeGraph) -> tuple[int, tuple[Hop, ...]]:
    """What is asked, and the pattern: sold where another is sold that requires it."""
    sold, requires = (graph.relation_names.id(name, "relation") for name in ("sold_in", "requires"))
    return requires, (Hop(sold), Hop(int(graph.inverse[sold])), Hop(requires))


def test_a_record_counted_by_hand() -> None:
    graph = KnowledgeGraph.from_tuples(SOLD)
    asked, hops = sold_elsewhere(graph)
    found = pattern_record(graph, asked, hops)
    # A, B and C lead to CCC, which A is not stated to require; D leads to CE, E to FDA: both are wrong.
    assert found is not None and found.validation is None
    assert (found.graph.heads, found.graph.answers, found.graph.support) == (5, 5, 2)
    assert found.graph.confidence == 2 / 5 and found.graph.pca_confidence == 2 / 4
    assert found.graph.is_exact and found.graph.high is None


def test_the_fact_in_question_neither_speaks_for_itself_nor_counts() -> None:
    graph = KnowledgeGraph.from_tuples(SOLD)
    asked, hops = sold_elsewhere(graph)
    pair = graph.entities.id("B"), graph.entities.id("CCC")
    found = pattern_record(graph, asked, hops, pair)
    # Without <B, requires, CCC>, C is led to by no other, so only A and D, E are left: and A still finds C.
    assert found is not None
    assert (found.graph.heads, found.graph.answers, found.graph.support) == (3, 3, 0)


def test_the_fact_itself_has_no_record_but_its_reverse_has() -> None:
    graph = KnowledgeGraph.from_tuples([("a", "near", "b"), ("b", "near", "a"), ("a", "near", "c")])
    asked = graph.relation_names.id("near", "relation")
    assert pattern_record(graph, asked, (Hop(asked),)) is None
    assert pattern_record(graph, asked, ()) is None
    back = pattern_record(graph, asked, (Hop(int(graph.inverse[asked])),))
    assert back is not None and (back.graph.answers, back.graph.support) == (3, 2)


def test_validation_counts_what_the_graph_does_not_state() -> None:
    graph = KnowledgeGraph.from_tuples(SOLD)
    asked, hops = sold_elsewhere(graph)
    names = graph.entities
    valid = np.array([[names.id("A"), names.id("CCC")], [names.id("E"), names.id("CCC")]])
    found = pattern_record(graph, asked, hops, None, valid)
    assert found is not None and found.validation is not None
    # A is led to CCC, which is right; E to FDA, which is not.
    assert (found.validation.heads, found.validation.answers, found.validation.support) == (2, 2, 1)


def test_beyond_the_stated_size_heads_are_drawn_and_the_interval_holds_the_truth(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    random = np.random.default_rng(3)
    n = 400
    triples = [(i, 0, n + int(random.integers(20))) for i in range(n)]
    triples += [(i, 1, n + 20 + int(random.integers(2))) for i in range(n) if random.random() < 0.8]
    graph = KnowledgeGraph.from_ids(np.array(triples), n + 22, 2)
    hops = (Hop(0), Hop(2), Hop(1))  # to a place, to another one there, to what that one has
    whole = pattern_record(graph, 1, hops)
    monkeypatch.setattr(record, "COUNTED_EDGES", 3000)
    drawn = pattern_record(graph, 1, hops)
    assert whole is not None and drawn is not None
    assert whole.graph.is_exact and not drawn.graph.is_exact
    assert 0 < drawn.graph.heads < whole.graph.heads
    low, high = drawn.graph.low, drawn.graph.high
    assert low is not None and high is not None and whole.graph.confidence is not None
    assert low < whole.graph.confidence < high
    assert high - low < 0.3


def test_a_pattern_that_leads_nowhere_has_no_confidence() -> None:
    graph = KnowledgeGraph.from_tuples([("a", "r", "b"), ("c", "s", "d")])
    found = pattern_record(graph, 0, (Hop(1), Hop(0)))
    assert found is not None
    assert (found.graph.heads, found.graph.answers, found.graph.confidence) == (0, 0, None)
