"""The clock, the choice of the best model and the evaluator, with hand-made contestants."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from dpmpn.errors import DataError, Diverged, RunError, Stopped
from dpmpn.evaluate.evaluator import known_answers
from dpmpn.evaluate.ranking import Ranks, rank_targets
from dpmpn.lab.compare import comparison as comparison_module
from dpmpn.lab.compare.comparison import Conditions, Race
from dpmpn.lab.compare.contestants import EmbeddingModel, OwnModel
from dpmpn.lab.compare.embedding import EMBEDDING_MODELS
from dpmpn.lab.compare.report import validation_seconds
from dpmpn.suitable_config import suitable_config


class HandMade:
    """Batches take some seconds of a clock of its own; validations of an hour; quality rises, then falls."""

    n_parameters, queries = 7, range(20)

    def __init__(self, seconds: float, best_after: int) -> None:
        self.seconds, self.best_after = seconds, best_after
        self.clock, self.batches, self.tested_with = 0.0, 0, None

    def train_batch(self) -> int:
        self.clock += self.seconds
        self.batches += 1
        return 10

    def rank(self, queries, known, progress) -> Ranks:
        self.clock += 3600
        progress(len(queries), len(queries))
        self.tested_with = self.batches
        places = np.full(len(queries), 1 + abs(self.batches - self.best_after))
        return Ranks(places, places, np.ones(len(queries), np.bool_))

    def weights(self):
        return {"batches": torch.tensor(self.batches)}

    def restore(self, weights) -> None:
        self.batches = int(weights["batches"])

    def cpu_seconds(self) -> float:
        return 2 * self.clock

    def close(self) -> None:
        pass


@pytest.fixture
def raced(monkeypatch, families):
    def run(contestant, budget_minutes=128 / 60, **options):
        monkeypatch.setattr(comparison_module, "time", SimpleNamespace(perf_counter=lambda: contestant.clock))
        return Race(contestant, Conditions(families, budget_minutes, 0, 1, 0), **options).run()

    return run


def test_validates_at_halves_of_the_budget_with_the_clock_stopped(raced):
    result = raced(HandMade(seconds=1.0, best_after=30))
    assert [point["seconds"] for point in result["curve"]] == [2.0**k for k in range(8)]
    assert [point["cpu_seconds"] for point in result["curve"]] == [2.0 * 2**k for k in range(8)]
    assert (result["seconds"], result["queries"], result["epochs"]) == (128.0, 1280, 64.0)
    assert result["queries_per_s"] == 10.0
    assert result["evaluation_seconds"] == 3600 * (8 + 1)


@pytest.mark.parametrize(
    ("minutes", "between"),
    [(4, []), (5, []), (8, [5]), (15, [5]), (60, [5]), (100, [5, 15, 60])],  # 15 is a quarter of 60
)
def test_marks_within_the_budget_are_validated_too(minutes, between):
    halves = {60 * minutes / 2**k for k in range(8)}
    assert validation_seconds(60 * minutes) == sorted(halves | {60 * mark for mark in between})


def test_tests_the_best_of_the_validations(raced):
    contestant = HandMade(seconds=1.0, best_after=30)
    result = raced(contestant)
    assert contestant.tested_with == 32  # the nearest validation to the best moment
    assert result["best"] == max(result["curve"], key=lambda point: point["mrr"])
    assert result["best"]["seconds"] == 32.0
    assert result["test"]["both"]["realistic"]["mrr"] == pytest.approx(1 / 3)


def test_a_slow_model_is_validated_once_for_all_points_that_a_batch_passed(raced):
    result = raced(HandMade(seconds=40.0, best_after=1))
    assert [point["seconds"] for point in result["curve"]] == [40.0, 80.0, 160.0]


def test_stops_when_asked_to(raced):
    with pytest.raises(Stopped):
        raced(HandMade(seconds=1.0, best_after=1), stop=lambda: True)


def test_test_set_is_whole(raced, families):
    result = raced(HandMade(seconds=64.0, best_after=1))
    assert result["test"]["triples"] == len(families.test) == 3
    assert result["test"]["both"]["queries"] == 6
    assert result["test"]["unseen"] == 1  # an entity that no training fact names, and asked all the same


@pytest.mark.parametrize("split", ["valid", "test"])
def test_both_splits_are_needed(split, families):
    empty = dataclasses.replace(families, **{split: families.valid[:0]})
    with pytest.raises(DataError, match=f"no {split} triples"):
        Conditions(empty, 1, 0, 1, 0)


def embedded(dataset, scores=None):
    settings = dataclasses.replace(EMBEDDING_MODELS["distmult"], dimension=4)
    contestant = EmbeddingModel(dataset, settings, seed=0, threads=1)
    if scores is not None:
        contestant.scores = scores
    return contestant


def test_known_scores_are_ranked_as_sparse_answers_are(families):
    n, queries = families.graph.n_entities, families.queries("test")
    generator = np.random.default_rng(5)
    table = generator.integers(0, 4, (n, families.graph.n_relations, n)).astype(np.float32)  # many ties
    contestant = embedded(families, lambda heads, relations: table[heads, relations])
    known = known_answers(families)
    ranks = contestant.rank(queries, known, lambda done, total: None)

    heads, relations, targets = queries.T
    offsets = np.arange(0, n * len(queries) + 1, n)
    nodes = np.tile(np.arange(n, dtype=np.int32), len(queries))
    sparse = rank_targets(
        offsets, nodes, table[heads, relations].ravel(), targets, *known.lookup(heads, relations), n
    )
    assert ranks.optimistic.tolist() == sparse.optimistic.tolist()
    assert ranks.pessimistic.tolist() == sparse.pessimistic.tolist()
    assert (ranks.optimistic < ranks.pessimistic).any()


def test_entities_without_training_facts_have_vectors_and_ranks(families):
    contestant = embedded(families)
    stranger = families.graph.entities.id("nobody knows")
    assert contestant.network.num_entities == families.graph.n_entities
    assert stranger not in families.train[:, [0, 2]]
    asked = families.queries("test")
    ranks = contestant.rank(asked, known_answers(families), lambda done, total: None)
    assert len(ranks) == len(asked) and (asked == stranger).any()


def test_scores_that_are_no_numbers_end_the_race(families):
    contestant = embedded(families)
    with torch.no_grad():
        next(contestant.network.parameters()).fill_(float("nan"))
    with pytest.raises(RunError, match="run away"):
        Race(contestant, Conditions(families, 1e-4, 0, 1, 0)).run()


@pytest.mark.parametrize("name", EMBEDDING_MODELS)
def test_models_learn(name, families):
    options = EMBEDDING_MODELS[name].options | ({"relation_dim": 16} if name == "transr" else {})
    settings = dataclasses.replace(EMBEDDING_MODELS[name], dimension=20, batch_size=32, options=options)
    contestant, known = EmbeddingModel(families, settings, seed=1, threads=1), known_answers(families)
    asked = families.queries("train")

    def mrr() -> float:
        return float(np.mean(1 / contestant.rank(asked, known, lambda done, total: None).realistic))

    before = mrr()
    for _ in range(150):
        contestant.train_batch()
    assert mrr() > max(0.5, 2 * before)


def test_restored_weights_score_as_before(families):
    contestant = embedded(families)
    heads, relations = families.queries("test")[:, :2].T
    contestant.train_batch()
    kept, before = contestant.weights(), contestant.scores(heads, relations)
    contestant.train_batch()
    assert not np.array_equal(contestant.scores(heads, relations), before)
    contestant.restore(kept)
    assert np.array_equal(contestant.scores(heads, relations), before)


class Watched(HandMade):
    """Reading the processor time takes a minute."""

    def cpu_seconds(self) -> float:
        self.clock += 60
        return 2 * self.clock


def test_reading_the_processor_time_takes_no_training_time(raced):
    result = raced(Watched(seconds=1.0, best_after=30))
    assert (result["seconds"], result["queries"]) == (128.0, 1280)
    assert result["cpu_seconds"] == 2 * (128 + 60 * 8)  # it is read twice for each validation


@pytest.mark.parametrize("what", ["gradients", "answer"])
def test_attention_that_cannot_be_computed_ends_the_race(families, monkeypatch, what):
    def fail(*_, **__):
        raise Diverged("the weights are too large")

    contestant = OwnModel(families, suitable_config(families)[0].replace(threads=1))
    monkeypatch.setattr(contestant.engine, what, fail)
    try:
        with pytest.raises(RunError, match="run away"):
            Race(contestant, Conditions(families, 1e-4, 0, 1, 0)).run()
    finally:
        contestant.close()


def own(dataset, budget_seconds=None, **settings):
    config = suitable_config(dataset, "strong")[0].replace(threads=1, n_dims=8, n_steps_in_agnn=2, **settings)
    return OwnModel(dataset, config, budget_seconds)


def test_the_average_of_the_weights_is_asked_kept_and_restored(families):
    contestant, known, asked = (
        own(families, weight_average=0.9),
        known_answers(families),
        families.queries("test"),
    )
    try:
        for _ in range(3):
            contestant.train_batch()
        weights = {name: value.clone() for name, value in contestant.network.state_dict().items()}
        kept = contestant.weights()
        assert any(not torch.equal(kept[name], weights[name]) for name in kept)
        assert all(torch.equal(contestant.network.state_dict()[name], weights[name]) for name in kept)
        before = contestant.rank(asked, known, lambda done, total: None).realistic.tolist()
        for _ in range(20):
            contestant.train_batch()
        contestant.restore(kept)
        assert contestant.rank(asked, known, lambda done, total: None).realistic.tolist() == before
        assert all(torch.equal(contestant.weights()[name], kept[name]) for name in kept)
    finally:
        contestant.close()


def test_a_learning_rate_that_falls_has_fallen_when_the_budget_is_spent(families, monkeypatch):
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr("dpmpn.lab.compare.contestants.time", SimpleNamespace(perf_counter=lambda: clock.now))
    contestant, factors = own(families, budget_seconds=50.0, schedule="linear"), []

    def step(gradients, factor):
        clock.now += 1
        factors.append(factor)

    monkeypatch.setattr(contestant.optimiser, "step", step)
    try:
        for _ in range(50):
            contestant.train_batch()
    finally:
        contestant.close()
    assert max(factors[5:]) > 0.9 and factors[-1] < 0.1
    assert factors[30:] == sorted(factors[30:], reverse=True)
