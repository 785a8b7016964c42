"""Splits hide what they ask for from all of the graph, ask all of it in both directions, and make up nothing."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_graphs import family_facts, numbered

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.errors import ConfigError
from dpmpn.pretrain.questions import Questions
from dpmpn.pretrain.settings import PretrainingSettings
from dpmpn.pretrain.splits import Facts, Split, drawn_split, hide, neighbourhood, renumbered

SEEDS = st.integers(0, 2**32)
FACTS = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 4), st.integers(0, 9)), min_size=20, max_size=80, unique=True
).map(lambda rows: renumbered(np.array(sorted(rows), np.int64)))
SHARES = st.sampled_from([0.0, 0.5, 1.0])
SETTINGS = st.builds(
    PretrainingSettings,
    hide_pairs=SHARES,
    thin_facts=SHARES,
    drop_relations=SHARES,
    merge_relations=SHARES,
    most_hidden_facts=st.sampled_from([3, 1000]),
)
BOTH = PretrainingSettings(
    subgraph_share=1, least_subgraph_facts=100, most_subgraph_facts=200, drop_relations=0
)


def whole(facts: Facts) -> KnowledgeGraph:
    return KnowledgeGraph.from_ids(*facts[:3])


def drawn(facts: Facts, seed: int, settings: PretrainingSettings) -> Split:
    return drawn_split(facts, whole(facts), np.random.default_rng(seed), settings)


def rows(triples: np.ndarray) -> set[tuple[int, ...]]:
    return set(map(tuple, triples.tolist()))


def edges(graph: KnowledgeGraph) -> np.ndarray:
    return np.stack([graph.all_heads(), graph.relations, graph.tails], 1)


@given(FACTS, SEEDS, SETTINGS)
def test_hidden_facts_are_nowhere_in_the_graph(
    facts: Facts, seed: int, settings: PretrainingSettings
) -> None:
    split = drawn(facts, seed, settings)
    asked = split.graph.either_way(split.hidden)
    assert 1 <= len(split.hidden) <= settings.most_hidden_facts
    assert len(rows(split.hidden)) == len(split.hidden)
    assert (split.graph.find_edges(*asked.T) < 0).all()


@given(FACTS, SEEDS, st.floats(0.05, 0.9))
def test_who_is_asked_for_is_in_the_graph(facts: Facts, seed: int, share: float) -> None:
    """Wherever some fact can be hidden without taking an entity's last one."""
    settings = PretrainingSettings(hide_pairs=0, least_hidden=share, most_hidden=share)
    split = hide(facts, np.random.default_rng(seed), settings)
    number = np.bincount(facts.triples[:, [0, 2]].ravel(), minlength=facts.n_entities)
    heads, _, tails = facts.triples.T
    if (np.where(heads == tails, number[heads] > 2, np.minimum(number[heads], number[tails]) > 1)).any():
        left = np.unique(edges(split.graph)[:, [0, 2]])
        assert np.isin(split.hidden[:, [0, 2]], left).all()
    assert len(split.hidden) <= max(1, round(share * len(facts.triples)))


def test_facts_that_are_all_their_entities_have_are_hidden_all_the_same() -> None:
    couples = numbered([(f"m{i}", "husband", f"f{i}") for i in range(40)])
    assert len(hide(couples, np.random.default_rng(0), PretrainingSettings()).hidden)


@given(FACTS, SEEDS)
def test_pairs_of_hidden_facts_are_not_joined(facts: Facts, seed: int) -> None:
    split = hide(facts, np.random.default_rng(seed), PretrainingSettings(hide_pairs=1))
    ends = {frozenset((head, tail)) for head, _, tail in split.hidden.tolist()}
    assert not ends & {frozenset((head, tail)) for head, _, tail in edges(split.graph).tolist()}


@given(FACTS, SEEDS, SETTINGS)
def test_what_is_known_is_every_fact_of_the_split(
    facts: Facts, seed: int, settings: PretrainingSettings
) -> None:
    split = drawn(facts, seed, settings)
    everything = np.concatenate([edges(split.graph), split.graph.either_way(split.hidden)])
    heads, relations, tails = everything.T
    assert split.known.contains(heads, relations, np.arange(len(heads)), tails).all()


@given(FACTS, SEEDS)
def test_facts_that_are_not_hidden_stay(facts: Facts, seed: int) -> None:
    split = hide(facts, np.random.default_rng(seed), PretrainingSettings(hide_pairs=0))
    forward = edges(split.graph)
    forward = forward[forward[:, 1] < facts.n_relations]
    assert rows(forward) | rows(split.hidden) == rows(facts.triples)


@given(FACTS, SEEDS, st.sampled_from([1, 3, 32]), st.sampled_from([1, 2, 8]))
def test_questions_are_the_hidden_facts_in_both_directions(
    facts: Facts, seed: int, batch_size: int, joint_targets: int
) -> None:
    split = drawn(facts, seed, PretrainingSettings())
    questions = Questions(split, np.random.default_rng(seed), batch_size, joint_targets)
    asked: Counter[tuple[int, ...]] = Counter()
    for number in range(len(questions)):
        batch, targets = questions.batch(number, np.uint64(seed))
        assert len(batch) <= batch_size and not len(batch.removed)
        assert np.diff(targets.offsets).max() <= joint_targets
        heads, relations = batch.heads[targets.query], batch.relations[targets.query]
        asked.update(zip(heads.tolist(), relations.tolist(), targets.entities.tolist(), strict=True))
        for query in range(len(batch)):
            known = targets.known[targets.known_offsets[query] : targets.known_offsets[query + 1]]
            assert set(targets.entities[targets.query == query]) <= set(known)
    assert asked == Counter(rows(split.graph.either_way(split.hidden)))


def test_batches_have_few_relations() -> None:
    split = hide(numbered(family_facts(300)), np.random.default_rng(0), PretrainingSettings(least_hidden=0.2))
    questions = Questions(split, np.random.default_rng(0), 16, 1)
    relations = [
        len(set(questions.batch(i, np.uint64(0))[0].relations.tolist())) for i in range(len(questions))
    ]
    assert np.mean(relations) < 1.7
    assert relations != sorted(relations)  # batches come in a random order


@given(FACTS, SEEDS, st.integers(1, 100))
def test_a_neighbourhood_is_made_of_facts(facts: Facts, seed: int, size: int) -> None:
    chosen = neighbourhood(facts, whole(facts), size, np.random.default_rng(seed))
    assert len(set(chosen.tolist())) == len(chosen) >= min(size, len(facts.triples))
    inside = np.unique(facts.triples[chosen][:, [0, 2]])
    between = np.isin(facts.triples[:, [0, 2]], inside).all(1)
    assert set(chosen.tolist()) <= set(np.flatnonzero(between).tolist())


def test_a_neighbourhood_is_near_and_not_much_larger_than_asked() -> None:
    ring = numbered([(f"{i:04}", "next", f"{(i + 1) % 2000:04}") for i in range(2000)])
    for seed in range(5):
        chosen = neighbourhood(ring, whole(ring), 100, np.random.default_rng(seed))
        assert len(chosen) <= 120
        starts = set(ring.triples[chosen, 0].tolist()) - set(ring.triples[chosen, 2].tolist())
        assert len(starts) <= 20  # so many stretches, each around an entity that was drawn


@given(FACTS)
def test_numbers_are_given_anew_in_the_same_order(facts: Facts) -> None:
    some = facts.triples[:: max(1, len(facts.triples) // 10)]
    again = renumbered(some)
    entities, relations = np.unique(some[:, [0, 2]]), np.unique(some[:, 1])
    heads, relation, tails = again.triples.T
    assert np.array_equal(np.stack([entities[heads], relations[relation], entities[tails]], 1), some)
    assert (again.n_entities, again.n_relations) == (len(entities), len(relations))


def test_part_of_the_splits_are_of_a_part_of_the_graph() -> None:
    facts = numbered(family_facts(100))
    sizes = [len(drawn(facts, seed, BOTH).known.tails) // 2 for seed in range(20)]
    assert all(100 <= size < len(facts.triples) for size in sizes) and len(set(sizes)) > 10
    small = numbered(family_facts(8))  # too small to have a part
    assert len(drawn(small, 0, BOTH).known.tails) == 2 * len(small.triples)


def test_relations_are_dropped_and_merged() -> None:
    facts = renumbered(np.array([(i, i % 20, i + 1) for i in range(400)], np.int64))
    for changes in ({"drop_relations": 1.0}, {"drop_relations": 0.0, "merge_relations": 1.0}):
        splits = [drawn(facts, seed, PretrainingSettings(**changes)) for seed in range(10)]
        assert len({split.graph.n_relations for split in splits}) > 3
        assert all(14 - 8 <= split.graph.n_relations // 2 <= 20 for split in splits)
        if "merge_relations" in changes:  # nothing is lost
            assert all(len(split.known.tails) == 2 * len(facts.triples) for split in splits)


def test_facts_are_thinned() -> None:
    facts = numbered(family_facts(100))
    split = hide(facts, np.random.default_rng(3), PretrainingSettings(thin_facts=1, hide_pairs=0))
    assert split.graph.n_edges // 2 + len(split.hidden) < 0.98 * len(facts.triples)


@pytest.mark.parametrize(
    "changes", [{"least_hidden": 0.5, "most_hidden": 0.1}, {"least_subgraph_facts": 30_000}]
)
def test_the_least_is_not_above_the_most(changes: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="above"):
        PretrainingSettings(**changes)
