"""Which questions are asked: whose, in which order, and how they are found by their number."""

import numpy as np
import pytest
from families import STATED, TEST, N, families
from hypothesis import given, settings
from hypothesis import strategies as st

import dpmpn
from dpmpn.ask.questions import GROUPS, Asking, EntityRelations, Questions
from dpmpn.errors import ConfigError, DataError, UnknownName


def pairs(questions: Questions) -> list[tuple[int, int]]:
    listed = questions.part(0, questions.total)
    return list(zip(listed.relations.tolist(), listed.heads.tolist(), strict=True))


def of_group(questions: Questions) -> list[int]:
    listed = questions.part(0, questions.total)
    return np.bincount(listed.groups, minlength=len(GROUPS)).tolist()


def random_dataset(seed: int, n_entities: int = 12, n_relations: int = 4, n_facts: int = 30) -> dpmpn.Dataset:
    rng = np.random.default_rng(seed)
    columns = (rng.integers(n, size=n_facts) for n in (n_entities, n_relations, n_entities))
    facts = [(f"e{h}", f"r{r}", f"e{t}") for h, r, t in zip(*columns, strict=True)]
    return dpmpn.dataset_from_tuples(facts[:24], facts[24:27], facts[27:])


def like_heads(dataset: dpmpn.Dataset, relation: int, least_share: float) -> list[int]:
    """The plain definition, with sets."""
    graph = dataset.graph
    kinds = {
        v: set(graph.relations[graph.offsets[v] : graph.offsets[v + 1]].tolist())
        for v in range(graph.n_entities)
    }
    having = {s: {v for v in kinds if s in kinds[v]} for s in range(graph.n_relations)}
    like = {
        s
        for s in having
        if s == relation or (having[s] and len(having[s] & having[relation]) >= least_share * len(having[s]))
    }
    return sorted(v for v in kinds if kinds[v] & like)


@given(st.integers(0, 10**6), st.sampled_from([0.2, 0.5, 1.0]))
@settings(max_examples=40, deadline=None)
def test_heads_are_those_whose_relations_go_with_the_asked_one(seed: int, least_share: float) -> None:
    dataset = random_dataset(seed)
    questions = Questions(dataset, Asking(least_share=least_share), known=("train",))
    asked = pairs(questions)
    for relation in range(dataset.graph.n_forward):
        assert [h for r, h in asked if r == relation] == like_heads(dataset, relation, least_share)


@given(st.integers(0, 10**6), st.integers(1, 50), st.booleans(), st.sampled_from(["like", "stated", "all"]))
@settings(max_examples=40, deadline=None)
def test_parts_of_any_size_make_the_whole_in_order(seed: int, size: int, both: bool, heads: str) -> None:
    questions = Questions(random_dataset(seed), Asking(heads, both))
    whole = questions.part(0, questions.total)
    pieces = [
        questions.part(i, min(i + size, questions.total)) for i in reversed(range(0, questions.total, size))
    ]
    assert sum(len(piece) for piece in pieces) == len(whole) == questions.total
    for column in ("heads", "relations", "groups"):
        joined = np.concatenate([getattr(piece, column) for piece in reversed(pieces)])
        np.testing.assert_array_equal(joined, getattr(whole, column))
    keys = whole.relations.astype(np.int64) * 1000 + whole.heads
    assert (np.diff(keys) > 0).all()  # each once, by relation and entity
    for relation, asked, stated in questions.each_relation():
        own = whole.relations == relation
        np.testing.assert_array_equal(whole.heads[own], asked)
        np.testing.assert_array_equal(whole.groups[own] % 2 == 1, stated)


def test_groups_tell_whether_an_answer_is_known() -> None:
    dataset = families()
    father = dataset.graph.relation_names.id("father", "relation")
    for known, n_stated in ((("train",), STATED), (("train", "valid", "test"), TEST)):
        questions = Questions(dataset, relations=[father], known=known)
        assert questions.total == N  # every child, as most children have a father
        assert of_group(questions) == [N - n_stated, n_stated, 0, 0]


def test_whom_to_ask() -> None:
    dataset = families()
    father = dataset.graph.relation_names.id("father", "relation")
    totals = {
        heads: Questions(dataset, Asking(heads), [father], known=("train",)).total
        for heads in ("stated", "like", "all")
    }
    assert totals == {"stated": STATED, "like": N, "all": 3 * N}
    assert sum(of_group(Questions(dataset, Asking(both_directions=True), [father]))[2:]) >= N


@given(st.integers(0, 10**6), st.integers(1, 40))
@settings(max_examples=40, deadline=None)
def test_a_budget_keeps_the_strongest(seed: int, budget: int) -> None:
    dataset = random_dataset(seed)
    every, some = Questions(dataset), Questions(dataset, max_questions=budget)
    assert some.total <= budget or some.total == every.total
    assert some.total + some.left_out == every.total
    assert set(pairs(some)) <= set(pairs(every))
    strength = {}
    for place, relation in enumerate(every._relations.tolist()):
        for entity, value in zip(*every._entities(place), strict=True):
            strength[relation, int(entity)] = int(value * 1000)
    kept, left = set(pairs(some)), set(pairs(every)) - set(pairs(some))
    if kept and left:
        assert min(strength[pair] for pair in kept) >= max(strength[pair] for pair in left)


def test_only_heads_of_a_type() -> None:
    dataset = families(with_labels=True)
    entities = dataset.graph.entities
    questions = Questions(dataset, Asking("all"), head_type="mother")
    listed = questions.part(0, questions.total)
    assert {entities.name(int(h))[:-2] for h in listed.heads} == {"mother"}
    with pytest.raises(UnknownName):
        Questions(dataset, head_type="motor")
    with pytest.raises(DataError, match="no types"):
        Questions(families(), head_type="mother")


def test_refused_ways_of_asking() -> None:
    with pytest.raises(ConfigError, match="'like', 'stated' or 'all'"):
        Asking("some")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="inverse relation"):
        Questions(families(), relations=[7])


def test_shares_count_entities_that_have_both() -> None:
    dataset = dpmpn.dataset_from_tuples([("a", "r", "x"), ("a", "s", "x"), ("b", "s", "x"), ("a", "r", "y")])
    kinds = EntityRelations.of(dataset, ())
    assert kinds.shares(0).tolist()[:2] == [1.0, 0.5]  # r: a; s: a and b, of which a has r
    assert kinds.share_with_several(0) == 1.0
    assert kinds.share_with_several(1) == 0.0
