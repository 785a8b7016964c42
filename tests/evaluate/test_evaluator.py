"""The evaluator equals a dense computation written apart from it, on answers that are known."""

import dataclasses
import json

import numpy as np
import pytest
import torch

from dpmpn.config import Config
from dpmpn.data.dataset import Candidates, Dataset
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.answer import Answer
from dpmpn.engine.batch import NO_EDGES
from dpmpn.engine.machine import Usage
from dpmpn.engine.settings import Horizon
from dpmpn.errors import DataError, UnknownName
from dpmpn.evaluate.evaluator import evaluate, rank_candidates

N_ENTITIES, N_RELATIONS = 12, 3


class FakeEngine:
    """Answers from a table of scores full of ties; lists some entities that score 0, not others."""

    def __init__(self, graph, seed=0):
        rng = np.random.default_rng(seed)
        shape = (N_ENTITIES, graph.n_relations, N_ENTITIES)
        self.graph, self.config = graph, Config().replace(batch_size=4)
        self.scores = rng.choice(np.array([0, 0, 0.125, 0.25, 0.5], np.float32), shape)
        self.listed = (self.scores > 0) | (rng.random(shape) < 0.3)
        self.horizons, self.sizes, self.removed = [], [], []

    def usage(self):
        return Usage(cpu_seconds=0.0, peak_rss_bytes=0)

    def asking_batch(self, heads, relations, removed=NO_EDGES):
        assert (heads >= 0).all()
        self.removed.append(removed)
        return heads, relations

    def answer(self, batch, horizon=None):
        heads, relations = batch
        self.horizons.append(horizon)
        self.sizes.append(len(heads))
        query, nodes = np.nonzero(self.listed[heads, relations])
        offsets = np.searchsorted(query, np.arange(len(heads) + 1))
        scores = self.scores[heads, relations][query, nodes]
        return Answer(offsets, nodes.astype(np.int32), torch.from_numpy(scores).requires_grad_())


def make_dataset(both_directions=True, seed=1):
    rng = np.random.default_rng(seed)
    limits = [N_ENTITIES, N_RELATIONS, N_ENTITIES]
    train = np.unique(rng.integers(0, [N_ENTITIES - 2, N_RELATIONS, N_ENTITIES - 2], (25, 3)), axis=0)
    rest = np.unique(rng.integers(0, limits, (40, 3)), axis=0)
    rest = rng.permutation(rest[~(rest[:, None] == train[None]).all(-1).any(1)])
    graph = KnowledgeGraph.from_ids(train, N_ENTITIES, ["bears", "knows", "likes"], both_directions)
    train, valid, test = (x.astype(np.int32) for x in (train, rest[:8], rest[8:]))
    return Dataset("fake", graph, train, valid, test, both_directions)


def dense_ranks(engine, dataset, triples, inverse):
    """Best and worst rank and score of each target, from full score vectors and plain sets."""
    facts = [tuple(map(int, t)) for split in ("train", "valid", "test") for t in dataset.split(split)]
    rows = []
    for head, relation, tail in triples.tolist():
        if inverse:
            others = {h for h, r, t in facts if (r, t) == (relation, tail)} - {head}
            asked, number, target = tail, relation + N_RELATIONS, head
        else:
            others = {t for h, r, t in facts if (h, r) == (head, relation)} - {tail}
            asked, number, target = head, relation, tail
        scores = engine.scores[asked, number].astype(float)
        rivals = np.delete(scores, sorted(others | {target}))
        more, same = np.sum(rivals > scores[target]), np.sum(rivals == scores[target])
        rows.append((1 + more, 1 + more + same, scores[target] > 0))
    return np.array(rows, float)


def dense_summary(rows):
    best, worst, reached = rows.T
    ways = {"realistic": (best + worst) / 2, "optimistic": best, "pessimistic": worst}
    summary = {
        way: {"mrr": np.mean(1 / ranks), **{f"hits_at_{k}": np.mean(ranks <= k) for k in (1, 3, 10)}}
        for way, ranks in ways.items()
    }
    return summary | {"coverage": reached.mean(), "queries": len(rows)}


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for way in ("realistic", "optimistic", "pessimistic"):
        assert found[way] == pytest.approx(expected[way])
    assert found["coverage"] == pytest.approx(expected["coverage"])
    assert found["queries"] == expected["queries"]


@pytest.mark.parametrize("split", ["train", "valid", "test"])
@pytest.mark.parametrize("seed", range(4))
def test_scores_equal_a_dense_computation(split, seed):
    dataset = make_dataset(seed=seed)
    engine = FakeEngine(dataset.graph, seed)
    report = evaluate(engine, dataset, split, per_relation=True)
    triples = dataset.split(split)
    tail, head = (dense_ranks(engine, dataset, triples, inverse) for inverse in (False, True))
    assert_same(report["tail"], dense_summary(tail))
    assert_same(report["head"], dense_summary(head))
    assert_same(report["both"], dense_summary(np.concatenate([tail, head])))
    names = ("bears", "knows", "likes")
    assert report["per_relation"].keys() == {names[r] for r in triples[:, 1]}
    for relation in np.unique(triples[:, 1]):
        found, rows = report["per_relation"][names[relation]], triples[:, 1] == relation
        assert_same(found["tail"], dense_summary(tail[rows]))
        assert_same(found["head"], dense_summary(head[rows]))
        assert_same(found["both"], dense_summary(np.concatenate([tail[rows], head[rows]])))


def test_the_report_is_json_and_counts_what_it_did():
    dataset = make_dataset()
    engine = FakeEngine(dataset.graph)
    told = []
    report = evaluate(engine, dataset, progress=lambda done, total: told.append((done, total)))
    assert json.loads(json.dumps(report)) == report
    n = len(dataset.test)
    assert (report["split"], report["triples"], report["queries"]) == ("test", n, 2 * n)
    assert report["queries_per_s"] == pytest.approx(2 * n / report["seconds"])
    assert report["horizon"] == dataclasses.asdict(Config().horizon)
    assert "per_relation" not in report and "map" not in report
    assert told[0] == (4, 2 * n)
    assert told[-1] == (2 * n, 2 * n)
    assert max(engine.sizes) == 4


def test_horizon_and_batch_size_are_used():
    dataset, horizon = make_dataset(), Horizon(3, 4, 5)
    engine = FakeEngine(dataset.graph)
    usual = evaluate(engine, dataset, "valid")
    engine.sizes.clear(), engine.horizons.clear()
    report = evaluate(engine, dataset, "valid", horizon=horizon, batch_size=7)
    assert engine.sizes == [7, 7, 2]
    assert set(engine.horizons) == {horizon}
    assert report["horizon"]["max_sampling_per_node"] == 4
    assert report["both"] == usual["both"]


def test_the_asking_horizon_is_the_usual_one():
    dataset = make_dataset()
    engine = FakeEngine(dataset.graph)
    engine.config = engine.config.replace(ask_attending_from_per_step=77)
    assert evaluate(engine, dataset)["horizon"]["max_attending_from_per_step"] == 77


def test_triples_of_unseen_entities_are_kept_and_counted():
    dataset = make_dataset()
    test = np.array([[0, 0, 1], [0, 1, N_ENTITIES - 1], [N_ENTITIES - 2, 0, N_ENTITIES - 1]], np.int32)
    assert dataset.graph.degree(np.array([0, 1])).all()
    report = evaluate(FakeEngine(dataset.graph), dataclasses.replace(dataset, test=test))
    assert (report["unseen"], report["tail"]["queries"], report["head"]["queries"]) == (2, 3, 3)


def test_one_direction_has_no_head_queries():
    dataset = make_dataset(both_directions=False)
    engine = FakeEngine(dataset.graph)
    report = evaluate(engine, dataset, per_relation=True)
    assert report["head"] is None
    assert report["both"] == report["tail"]
    assert_same(report["tail"], dense_summary(dense_ranks(engine, dataset, dataset.test, False)))
    assert all(scores["head"] is None for scores in report["per_relation"].values())


def test_a_limit_draws_triples_and_asks_both_ways():
    dataset = make_dataset()
    engine = FakeEngine(dataset.graph)
    report = evaluate(engine, dataset, limit=5, seed=3)
    assert (report["triples"], report["queries"], report["head"]["queries"]) == (5, 10, 5)
    again, other = evaluate(engine, dataset, limit=5, seed=3), evaluate(engine, dataset, limit=5, seed=4)
    assert report["both"] == again["both"] != other["both"]
    assert evaluate(engine, dataset, limit=10**6)["both"] == evaluate(engine, dataset)["both"]


def test_nothing_to_evaluate_is_said():
    dataset = make_dataset()
    engine = FakeEngine(dataset.graph)
    with pytest.raises(DataError, match="has no test triples"):
        evaluate(engine, dataclasses.replace(dataset, test=np.empty((0, 3), np.int32)))
    with pytest.raises(DataError, match="at least 1"):
        evaluate(engine, dataset, limit=0)
    with pytest.raises(UnknownName, match="split"):
        evaluate(engine, dataset, "tset")
    with pytest.raises(DataError, match="no candidates"):
        rank_candidates(engine, dataset)


def task():
    dataset = make_dataset(both_directions=False)
    candidates = Candidates(
        relation=1,
        heads=np.array([5, 2, 5, -1, 2, 5, 7, 2, 7, -1], np.int32),
        tails=np.array([0, 1, 3, 4, 6, -1, 8, 9, 3, 5], np.int32),
        positive=np.array([1, 0, 1, 0, 1, 0, 1, 1, 0, 0], bool),
    )
    test = np.array([[5, 1, 0], [5, 1, 3], [2, 1, 6], [7, 1, 8], [5, 1, 4]], np.int32)
    return dataclasses.replace(dataset, test=test, candidates=candidates)


def mean_precision_over_orders(scores, positive, rng):
    """Average precision with ties in random order, by drawing the orders."""
    found = []
    for _ in range(4000):
        order = np.lexsort((rng.random(len(scores)), -scores))
        hits = positive[order]
        found.append(np.mean((np.cumsum(hits) / np.arange(1, len(hits) + 1))[hits]) if hits.any() else 0.0)
    return np.mean(found)


@pytest.mark.parametrize("batch_size", [1, 2, 100])
def test_map_equals_random_orders_of_ties(batch_size):
    dataset = task()
    engine = FakeEngine(dataset.graph, 6)
    found = evaluate(engine, dataset, batch_size=batch_size)["map"]
    asked, rng, by_head = dataset.candidates, np.random.default_rng(0), {}
    for head in np.unique(asked.heads):
        rows = asked.heads == head
        known = (head >= 0) & (asked.tails[rows] >= 0)
        scores = np.where(known, engine.scores[max(head, 0), 1, np.maximum(asked.tails[rows], 0)], 0)
        by_head[int(head)] = mean_precision_over_orders(scores, asked.positive[rows], rng)
    over_triples = np.mean([by_head[head] for head in dataset.test[:, 0].tolist()])
    assert found["realistic"]["map_over_heads"] == pytest.approx(np.mean(list(by_head.values())), abs=0.01)
    assert found["realistic"]["map_over_triples"] == pytest.approx(over_triples, abs=0.01)
    assert (found["triples"], found["heads"]) == (5, 4)


def test_map_is_for_the_test_split():
    dataset = task()
    assert "map" not in evaluate(FakeEngine(dataset.graph), dataset, "valid")


def test_facts_of_the_graph_are_asked_without_themselves():
    dataset = make_dataset()
    engine = FakeEngine(dataset.graph)
    evaluate(engine, dataset, "train", batch_size=1)
    for (head, relation, tail), removed in zip(dataset.queries("train"), engine.removed, strict=True):
        edges = {
            (int(dataset.graph.edge_heads(removed)[i]), int(dataset.graph.tails[removed[i]]))
            for i in range(len(removed))
        }
        assert edges == {(head, tail), (tail, head)}
        assert relation in dataset.graph.relations[removed]

    engine = FakeEngine(dataset.graph)
    evaluate(engine, dataset, "test")
    assert not any(len(removed) for removed in engine.removed)
