"""Which entities fit a relation, which answers are left out, and which questions make no sense."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpmpn
from dpmpn.ask.roles import LEAST_SHARE, Roles
from dpmpn.reasoner.reasoner import Reasoner

COUNTRIES, LANGUAGES = 30, 10
FACTS = [
    *((f"country{i}", "neighbour_of", f"country{(i + 1) % COUNTRIES}") for i in range(COUNTRIES)),
    *((f"country{i}", "in", f"region{i // 6}") for i in range(COUNTRIES)),
    *((f"country{i}", "speaks", f"language{i % LANGUAGES}") for i in range(COUNTRIES - 5)),
]


@pytest.fixture(scope="module")
def reasoner() -> Reasoner:
    return Reasoner.pretrained(threads=1).on(FACTS)


def plain(graph: dpmpn.KnowledgeGraph, entity: int, relation: int, least_share: float) -> bool:
    """The definition, with sets."""
    own = [
        set(graph.relations[graph.offsets[v] : graph.offsets[v + 1]].tolist())
        for v in range(graph.n_entities)
    ]
    if not any(relation in each for each in own):
        return True
    for s in own[entity]:
        with_s = [each for each in own if s in each]
        if s == relation or sum(relation in each for each in with_s) / len(with_s) >= least_share:
            return True
    return False


@given(
    st.integers(0, 10**6), st.sampled_from([0.01, LEAST_SHARE, 0.5]), st.sampled_from([(25, 10), (200, 60)])
)
@settings(max_examples=60, deadline=None)
def test_it_is_what_its_definition_says(seed: int, least_share: float, size: tuple[int, int]) -> None:
    rng, (n_facts, n_tails) = np.random.default_rng(seed), size  # with few tails, or as many as a hub's
    columns = (rng.integers(n, size=n_facts).tolist() for n in (10, 4, n_tails))
    graph = dpmpn.dataset_from_tuples(
        [(f"e{h}", f"r{r}", f"e{t}") for h, r, t in zip(*columns, strict=True)]
    ).graph
    roles, entities = Roles(graph), np.arange(graph.n_entities)
    for relation in range(graph.n_relations):
        expected = [plain(graph, int(v), relation, least_share) for v in entities]
        assert roles.fit(entities, relation, least_share).tolist() == expected


@given(st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_likeness_is_the_least_share_that_still_fits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    facts = zip(*(rng.integers(n, size=25).tolist() for n in (10, 4, 10)), strict=True)
    graph = dpmpn.dataset_from_tuples([(f"e{h}", f"r{r}", f"e{t}") for h, r, t in facts]).graph
    roles, entities = Roles(graph), np.arange(graph.n_entities)
    for relation in range(graph.n_relations):
        likeness = roles.likeness(entities, np.full(len(entities), relation))
        for entity, value in zip(entities.tolist(), likeness.tolist(), strict=True):
            if graph.have(entity, relation):
                assert value == 1
            elif value:
                assert plain(graph, entity, relation, value - 1e-9)
                assert not plain(graph, entity, relation, value + 1e-9)


def test_answers_that_do_not_fit_are_left_out_and_named(reasoner: Reasoner) -> None:
    fitting = reasoner.predict("country3", "in", top=20)
    assert all(answer.answer.startswith("region") for answer in fitting)
    every = reasoner.predict("country3", "in", top=20, any_role=True)
    strangers = [answer for answer in every if not answer.answer.startswith("region")]
    assert strangers and all(answer.probability is None for answer in strangers)
    (note,) = fitting.notes
    assert strangers[0].answer in note and note.startswith("not shown, because ")
    assert not every.notes


def test_lists_explanations_and_reasons_against_an_answer_rank_alike(reasoner: Reasoner) -> None:
    fitting = reasoner.predict("country3", "neighbour_of", top=20)
    every = reasoner.predict("country3", "neighbour_of", top=50, any_role=True)
    hidden_before = {a.answer: a.rank for a in every}
    assert any(hidden_before[a.answer] > a.rank for a in fitting)  # else nothing is told apart here
    for answer in fitting:
        why_not = fitting.why_not(answer.answer)
        explanation = fitting.explain(answer.answer, keep_fact=True)
        assert explanation.answer.rank == answer.rank == why_not.rank
        assert [r.name for r in why_not.by] == [a.answer for a in fitting[: answer.rank - 1]][:3]
        assert why_not.reason == ("first_answer" if answer.rank == 1 else "out_competed")


def test_an_answer_that_does_not_fit_is_ranked_among_all_and_said_to_be_hidden(reasoner: Reasoner) -> None:
    fitting = reasoner.predict("country3", "in", top=20)
    every = reasoner.predict("country3", "in", top=50, any_role=True)
    for stranger in (a for a in every if not a.answer.startswith("region")):
        why_not, explained = fitting.why_not(stranger.answer), fitting.explain(stranger.answer)
        assert explained.answer.rank == why_not.rank == stranger.rank
        assert why_not.reason == "does_not_fit" and "is not shown among the answers" in why_not.text()
        assert "It is left out of lists: no similar entity is the tail of any 'in' fact." in explained.text()
        assert f"{stranger.answer}, number {stranger.rank} of all that attention reached" in explained.text()


def test_an_entity_whose_only_fact_is_missing_still_fits(reasoner: Reasoner) -> None:
    graph = reasoner.graph
    country, region = graph.entities.id("country27"), graph.entities.id("region2")  # neither speaks anything
    speaks = graph.relation_names.id("speaks", "relation")
    assert reasoner.known.roles.fit(np.array([country, region]), speaks).tolist() == [True, False]


def test_the_head_is_no_answer_where_nothing_relates_to_itself(reasoner: Reasoner) -> None:
    assert all(a.answer != "country3" for a in reasoner.predict("country3", "neighbour_of", top=50))
    itself = Reasoner.pretrained(threads=1).on([*FACTS, ("country0", "neighbour_of", "country0")])
    assert any(a.answer == "country3" for a in itself.predict("country3", "neighbour_of", top=50))


def test_a_question_outside_a_relations_domain_is_answered_with_a_warning(reasoner: Reasoner) -> None:
    found = reasoner.predict("language1", "in", top=3)
    assert any(
        "no entity similar to 'language1' is the head of any 'in' fact" in note for note in found.notes
    )
    assert all(answer.probability is None for answer in found)
    assert not any("no entity similar" in note for note in reasoner.predict("country29", "speaks").notes)
