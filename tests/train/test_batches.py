"""Training queries: every fact once an epoch, an order by seed and epoch, and what each batch must not see."""

import time

import numpy as np
import pytest

from dpmpn.config import Config
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.data.importer import dataset_from_tuples
from dpmpn.errors import DataError
from dpmpn.train.batches import TrainingQueries
from dpmpn.train.validation import training_queries


def asked(queries, position, count):
    """The facts of a batch, grouped by query."""
    batch, targets = queries.at(position, count)
    assert len(batch) == len(targets)
    found = [[] for _ in range(len(batch))]
    for query, tail in zip(targets.query, targets.entities, strict=True):
        found[query].append((int(batch.heads[query]), int(batch.relations[query]), int(tail)))
    return found


def epoch(queries, number, count=7):
    n, found, position = len(queries), [], number * len(queries)
    while position < (number + 1) * n:
        part = asked(queries, position, count)
        found += part
        position += len(part)
    assert position == (number + 1) * n  # no batch crosses the end of an epoch
    return found


@pytest.fixture
def made(dataset, config):
    def make(**changes):
        return TrainingQueries(dataset.graph, dataset.queries("train"), config.replace(**changes))

    return make


def test_one_target_each_in_the_order_of_the_seed_and_the_epoch(made, dataset):
    queries, triples = made(seed=3), dataset.queries("train")
    assert len(queries) == len(triples)
    for number in (0, 1):
        order = np.random.default_rng([3, number]).permutation(len(triples))
        assert epoch(queries, number) == [[tuple(map(int, triples[i]))] for i in order]


@pytest.mark.parametrize("joint", [2, 3, 100])
def test_joint_targets_are_of_one_question_and_every_fact_comes_once(made, dataset, joint):
    queries, facts = made(joint_targets=joint), set(map(tuple, dataset.queries("train").tolist()))
    tails = {}
    for head, relation, tail in facts:
        tails.setdefault((head, relation), set()).add(tail)
    assert len(queries) == sum(-(-len(found) // joint) for found in tails.values()) < len(facts)
    first, second = epoch(queries, 0), epoch(queries, 1)
    for found in (first, second):
        assert sorted(fact for query in found for fact in query) == sorted(facts)
        assert all(len({fact[:2] for fact in query}) == 1 and len(query) <= joint for query in found)
    assert first != second
    if joint == 2:  # other tails go together in another epoch
        assert {frozenset(query) for query in first} != {frozenset(query) for query in second}


@pytest.mark.parametrize("joint", [1, 3])
def test_everything_follows_from_seed_and_position(made, joint):
    one, two = made(joint_targets=joint), made(joint_targets=joint)
    at = 2 * len(one) + 5
    epoch(one, 0)
    (a, a_targets), (b, b_targets) = one.at(at, 6), two.at(at, 6)
    for name in ("heads", "relations", "keys", "removed"):
        assert np.array_equal(getattr(a, name), getattr(b, name))
    for name in ("offsets", "entities", "known_offsets", "known"):
        assert np.array_equal(getattr(a_targets, name), getattr(b_targets, name))
    assert asked(made(joint_targets=joint, seed=1), at, 6) != asked(one, at, 6)


@pytest.mark.parametrize("joint", [1, 3])
def test_known_are_all_training_tails_of_the_question(made, dataset, joint):
    batch, targets = made(joint_targets=joint).at(0, 20)
    for query, (head, relation) in enumerate(zip(batch.heads, batch.relations, strict=True)):
        facts = dataset.queries("train")
        tails = facts[(facts[:, 0] == head) & (facts[:, 1] == relation), 2]
        known = targets.known[targets.known_offsets[query] : targets.known_offsets[query + 1]]
        assert known.tolist() == sorted(tails.tolist())
        assert set(targets.entities[targets.query == query]) <= set(known)


@pytest.mark.parametrize("leak_removal", ["triples", "pairs"])
def test_edges_of_all_targets_are_hidden(made, dataset, leak_removal):
    queries, graph = made(joint_targets=3, leak_removal=leak_removal), dataset.graph
    batch, _ = queries.at(0, 10)
    heads = graph.edge_heads(np.arange(graph.n_edges))
    edges = set(zip(heads.tolist(), graph.relations.tolist(), graph.tails.tolist(), strict=True))
    facts = {fact for query in asked(queries, 0, 10) for fact in query}
    assert max(map(len, asked(queries, 0, 10))) > 1
    pairs = {pair for head, _, tail in facts for pair in ((head, tail), (tail, head))}
    backward = {(tail, int(graph.inverse[relation]), head) for head, relation, tail in facts}
    hidden = {edge for edge in edges if (edge[0], edge[2]) in pairs}
    if leak_removal == "triples":
        hidden = (facts | backward) & edges
    removed = zip(
        heads[batch.removed], graph.relations[batch.removed], graph.tails[batch.removed], strict=True
    )
    assert set(removed) == hidden


def test_facts_that_are_given_twice_are_learnt_once(dataset, config):
    triples = np.concatenate([dataset.queries("train")] * 2)
    queries = TrainingQueries(dataset.graph, triples, config.replace(joint_targets=5))
    found = [fact for query in epoch(queries, 0) for fact in query]
    assert len(found) == len(set(found)) == len(triples) // 2


def test_a_million_facts_take_a_moment():
    rng = np.random.default_rng(0)
    triples = rng.integers(0, [100_000, 20, 100_000], (1_000_000, 3))
    triples[:, 0] = triples[:, 0] ** 2 // 100_000  # some heads have many facts
    graph = KnowledgeGraph.from_ids(triples[:10], 100_000, 20)
    started = time.process_time()
    queries = TrainingQueries(graph, triples, Config().replace(joint_targets=8, n_steps_in_ignn=0))
    queries.at(0, 32)
    assert time.process_time() - started < 10


def test_no_facts_are_refused(dataset, config):
    with pytest.raises(DataError, match="no training triples"):
        TrainingQueries(dataset.graph, dataset.queries("train")[:0], config)


def test_joined_facts_are_learnt_in_part_and_stay_edges():
    facts = [(f"a{i}", relation, f"b{i}") for i in range(50) for relation in ("likes", "knows")]
    facts += [(f"b{i}", "meets", f"a{i}") for i in range(50, 60)] + [("a70", "likes", "b70")]
    facts += [(f"a{i}", "likes", f"b{i}") for i in range(50, 60)]  # joined the other way round
    dataset = dataset_from_tuples(facts, valid=[("a0", "likes", "b1")])
    none, half, every = (
        training_queries(dataset, Config().replace(joined_share=share)) for share in (0.0, 0.5, 1.0)
    )
    assert len(every) == 2 * len(facts)
    names = dataset.graph.entities
    assert {(names.name(int(h)), names.name(int(t))) for h, _, t in none} == {("a70", "b70"), ("b70", "a70")}
    assert len(none) < len(half) < len(every)
    queries = TrainingQueries(dataset.graph, none, Config())
    _, targets = queries.at(0, 2)
    assert targets.known.tolist() == targets.entities.tolist()


def test_dropped_facts_are_hidden_both_ways_and_follow_from_seed_and_position(made, dataset):
    graph, kept, dropping = dataset.graph, made(), made(fact_dropout=0.5)
    hidden = []
    for position in (0, 7, 14):
        (batch, targets), (other, others) = kept.at(position, 7), dropping.at(position, 7)
        assert others.entities.tolist() == targets.entities.tolist()
        removed = set(other.removed.tolist())
        assert set(batch.removed.tolist()) <= removed
        assert other.removed.tolist() == sorted(removed)
        for edge in removed:
            head, relation, tail = (
                int(x) for x in (graph.edge_heads(edge), graph.relations[edge], graph.tails[edge])
            )
            assert int(graph.find_edges(tail, graph.inverse[relation], head)) in removed
        assert np.array_equal(made(fact_dropout=0.5).at(position, 7)[0].removed, other.removed)
        hidden.append((len(removed) - len(batch.removed)) / graph.n_edges)
    assert 0 < max(hidden) <= 0.6 and len(set(hidden)) > 1


def test_all_facts_may_be_dropped(made, dataset):
    parts = [len(made(fact_dropout=1.0).at(p, 7)[0].removed) / dataset.graph.n_edges for p in range(0, 70, 7)]
    assert min(parts) < 0.4 and max(parts) > 0.6


def test_facts_without_inverses_and_of_an_entity_with_itself_are_dropped():
    facts = [("a", "r", "b"), ("b", "r", "b"), ("c", "r", "a")]
    for add_inverses in (False, True):
        graph = KnowledgeGraph.from_tuples(facts, add_inverses)
        changes = Config().replace(fact_dropout=1.0)
        queries = TrainingQueries(graph, np.array([[0, 0, 1]]), changes)
        hidden = {len(queries.at(position, 1)[0].removed) for position in range(30)}
        both = 1 + add_inverses
        assert hidden == {both, 2 * both, 3 * both}  # the fact that is asked for always is


def test_what_is_an_edge_is_known_to_be_right_learnt_or_not() -> None:
    graph = KnowledgeGraph.from_tuples([("a", "r", "b"), ("a", "r", "c"), ("a", "r", "d")])
    a, b, c, d = (graph.entities.id(name) for name in "abcd")
    queries = TrainingQueries(graph, np.array([[a, 0, b]]), Config().replace(n_steps_in_ignn=0))
    _, targets = queries.at(0, 1)
    assert (targets.entities.tolist(), sorted(targets.known.tolist())) == ([b], sorted([b, c, d]))
