"""The asking core against plain definitions: where answers are stated, their order, and asking in batches."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import dpmpn
from dpmpn.ask import core
from dpmpn.ask.core import HELD_OUT, KNOWN, NOWHERE, Asker, KnownFacts
from dpmpn.engine.answer import Answer

N_ENTITIES, N_RELATIONS = 6, 2
facts = st.lists(
    st.tuples(
        st.integers(0, N_ENTITIES - 1), st.integers(0, N_RELATIONS - 1), st.integers(0, N_ENTITIES - 1)
    ),
    max_size=12,
)


def dataset_of(train: list, valid: list, test: list) -> dpmpn.Dataset:
    """All names are in training, so that ids are those of the numbers."""
    every = [(i, r, (i + 1) % N_ENTITIES) for i in range(N_ENTITIES) for r in range(N_RELATIONS)]
    splits = (every + train, valid, test)
    named = [[(f"e{h}", f"r{r}", f"e{t}") for h, r, t in split] for split in splits]
    return dpmpn.dataset_from_tuples(*named)


@given(train=facts, valid=facts, test=facts, indexed=st.booleans())
@settings(max_examples=60, deadline=None)
def test_answers_are_stated_where_plain_sets_say_so(
    train: list, valid: list, test: list, indexed: bool
) -> None:
    dataset = dataset_of(train, valid, test)
    graph = dataset.graph
    either_way = {
        name: {
            fact
            for h, r, t in dataset.split(name).tolist()
            for fact in ((h, r, t), (t, int(graph.inverse[r]), h))
        }
        for name in ("train", "valid", "test")
    }
    known = KnownFacts(dataset)
    if indexed:
        known.index()
    heads, relations = np.meshgrid(np.arange(graph.n_entities), np.arange(graph.n_relations))
    heads, relations = heads.ravel(), relations.ravel()
    size = len(heads) if indexed else 3  # few questions are answered without an index
    for start in range(0, len(heads), size):
        some, of = heads[start : start + size], relations[start : start + size]
        query = np.repeat(np.arange(len(some)), graph.n_entities)
        entities = np.tile(np.arange(graph.n_entities), len(some))
        found = known.stated(some, of, query, entities)
        for place, q, entity in zip(found.tolist(), query, entities, strict=True):
            fact = (int(some[q]), int(of[q]), int(entity))
            stated = {name for name, those in either_way.items() if fact in those}
            if not stated:
                assert place == NOWHERE and HELD_OUT[place] == ""
            elif "train" in stated:
                assert place == KNOWN and HELD_OUT[place] == ""
            else:
                assert HELD_OUT[place] == ("test" if "test" in stated else "valid")


@pytest.fixture(scope="module")
def reasoner() -> dpmpn.Reasoner:
    train = [("a", "likes", name) for name in "bcd"] + [(name, "knows", "e") for name in "bcd"]
    small = {"n_dims": 6, "n_dims_att": 3, "n_steps_in_agnn": 2, "n_epochs": 1, "threads": 1}
    return dpmpn.Reasoner(model="paper", **small).fit(dpmpn.dataset_from_tuples(train))


def all_questions(reasoner: dpmpn.Reasoner) -> tuple[np.ndarray, np.ndarray]:
    graph = reasoner.graph
    edges = np.arange(graph.n_edges)
    return graph.edge_heads(edges), graph.relations[edges].astype(np.int64)


def test_answers_are_grouped_and_the_most_probable_come_first(reasoner: dpmpn.Reasoner) -> None:
    heads, relations = all_questions(reasoner)
    answers = Asker(reasoner.engine).ask(heads, relations)
    assert (np.diff(answers.query) >= 0).all() and (answers.scores > 0).all()
    for query in range(len(heads)):
        own = answers.of(query)
        keys = list(zip(-own.scores, own.entities, strict=True))
        assert keys == sorted(keys) and len(keys) == len(set(own.entities.tolist())) > 0
        assert own.ranks.tolist() == list(range(1, len(own) + 1))
        assert answers.best(2).of(query).entities.tolist() == own.entities[:2].tolist()


def test_batches_of_any_size_and_traced_ones_have_the_same_answers(
    reasoner: dpmpn.Reasoner, monkeypatch: pytest.MonkeyPatch
) -> None:
    heads, relations = all_questions(reasoner)
    asker = Asker(reasoner.engine)
    whole = asker.ask(heads, relations)
    monkeypatch.setattr(core, "BATCH", 4)
    monkeypatch.setattr(core, "TRACED", 5)
    for traced in (False, True):
        parts = list(asker.batches(heads, relations, traced))
        assert [start for start, _ in parts] == list(range(0, len(heads), 5 if traced else 4))
        assert all((answers.trace is not None) == traced for _, answers in parts)
        query = np.concatenate([answers.query + start for start, answers in parts])
        np.testing.assert_array_equal(query, whole.query)
        scores = np.concatenate([answers.scores for _, answers in parts])
        np.testing.assert_allclose(scores, whole.scores, rtol=1e-4)


def test_paths_need_a_trace(reasoner: dpmpn.Reasoner) -> None:
    heads, relations = all_questions(reasoner)
    for traced in (True, False):
        best = Asker(reasoner.engine).ask(heads[:2], relations[:2], traced).best(1)
        if traced:
            paths = core.paths_to(best.trace, best.query, best.entities, reasoner.graph)
            assert len(paths) == 2 and all(paths)
        else:
            with pytest.raises(ValueError, match="ask with a trace"):
                core.paths_to(best.trace, best.query, best.entities, reasoner.graph)


def test_equal_answers_are_in_the_order_of_their_entities() -> None:
    answer = Answer(np.array([0, 4]), np.array([3, 1, 2, 0], np.int32), torch.tensor([0.2, 0.3, 0.2, 0.3]))
    engine = SimpleNamespace(asking_batch=lambda *_: None, answer=lambda _: answer)
    answers = Asker(engine).ask(np.array([0]), np.array([0]))
    assert answers.entities.tolist() == [0, 1, 2, 3]
