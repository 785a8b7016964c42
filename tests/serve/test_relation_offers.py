"""Relations are offered in the order of their worth for a head, and every question once."""

import time

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.serve.lookups import Offered, RelationOffers

ENTITIES = [f"e{i}" for i in range(8)]
RELATIONS = ["likes", "owns", "owns_inv", "sees", "visits"]
FACTS = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 4), st.integers(0, 7)), max_size=20)
TYPES = st.lists(st.sampled_from([None, "cat", "dog", "cat | dog"]), min_size=8, max_size=8)


def _graph(facts: list[tuple[int, int, int]], types: list[str | None], add_inverses: bool) -> KnowledgeGraph:
    graph = KnowledgeGraph.from_ids(
        np.array(facts, np.int64).reshape(-1, 3), ENTITIES, RELATIONS, add_inverses
    )
    nothing = [None] * len(types)
    frame = {"id": ENTITIES, "name": nothing, "description": nothing, "type": types}
    return graph.labelled(pl.DataFrame(frame, dict.fromkeys(frame, pl.String)))


def _edge_relation(graph: KnowledgeGraph, offer: Offered) -> int:
    return int(graph.inverse[offer.relation]) if offer.inverse else offer.relation


def _kinds(graph: KnowledgeGraph, entity: int) -> list[int]:
    return graph.relations[graph.offsets[entity] : graph.offsets[entity + 1]].tolist()


@given(FACTS, TYPES, st.booleans(), st.integers(0, 7))
def test_offers_are_those_of_head_then_like_then_others(
    facts: list[tuple[int, int, int]], types: list[str | None], add_inverses: bool, head: int
) -> None:
    graph = _graph(facts, types, add_inverses)
    offers = RelationOffers(graph).offered(head)
    used = {_edge_relation(graph, offer): offer.used for offer in offers}
    assert len(offers) == len(used) == graph.n_relations
    own = _kinds(graph, head)
    shared = set((types[head] or "none").split(" | "))
    like = [
        entity
        for entity in range(graph.n_entities)
        if entity != head
        and (set(_kinds(graph, entity)) & set(own) or shared & set((types[entity] or "").split(" | ")))
    ]
    had = {relation for entity in like for relation in _kinds(graph, entity)} - set(own)
    assert {relation for relation, use in used.items() if use == "head"} == set(own)
    assert {relation for relation, use in used.items() if use == "like"} == had
    order = [("head", "like", "other").index(offer.used) for offer in offers]
    assert order == sorted(order)
    for offer in offers:
        relation = _edge_relation(graph, offer)
        stated = own if offer.used == "head" else graph.relations.tolist()
        assert offer.count == stated.count(relation)
    for use in ("head", "other"):
        counts = [offer.count for offer in offers if offer.used == use]
        assert counts == sorted(counts, reverse=True)
    assert RelationOffers(graph).offered(head) == offers


@given(FACTS, st.booleans())
def test_without_a_head_all_come_by_their_facts(
    facts: list[tuple[int, int, int]], add_inverses: bool
) -> None:
    graph = _graph(facts, [None] * 8, add_inverses)
    offers = RelationOffers(graph).offered()
    assert {offer.used for offer in offers} == {"other"}
    assert [offer.count for offer in offers] == sorted((offer.count for offer in offers), reverse=True)
    assert len({(offer.relation, offer.inverse) for offer in offers}) == graph.n_relations


def test_both_directions_are_questions() -> None:
    graph = KnowledgeGraph.from_tuples([("Paris", "capital_of", "France"), ("Lyon", "in", "France")])
    capital, inside = (graph.relation_names.id(name) for name in ("capital_of", "in"))
    paris, france = (graph.entities.id(name) for name in ("Paris", "France"))
    assert RelationOffers(graph).offered(paris)[0] == Offered(capital, False, "head", 1)
    assert RelationOffers(graph).offered(france)[:2] == [
        Offered(capital, True, "head", 1),
        Offered(inside, True, "head", 1),
    ]


def test_what_the_most_alike_have_comes_first() -> None:
    facts = [("a", r, "x") for r in ("p", "q", "s")]
    facts += [("twin", r, "x") for r in ("p", "q", "s", "of_twin")]
    facts += [("cousin", r, "x") for r in ("p", "of_cousin", "m", "n", "o")]
    graph = KnowledgeGraph.from_tuples(facts)
    like = [offer for offer in RelationOffers(graph).offered(graph.entities.id("a")) if offer.used == "like"]
    assert graph.relation_names.name(like[0].relation) == "of_twin"
    assert "of_cousin" in [graph.relation_names.name(offer.relation) for offer in like]


def test_of_many_the_most_alike_are_heard() -> None:
    facts = [("a", "p", "x"), ("a", "q", "y"), ("z", "p", "x"), ("z", "q", "y"), ("z", "of_twin", "w")]
    facts += [(f"k{i:02}{r}", r, f"{r} thing") for r in "pq" for i in range(60)]
    graph = KnowledgeGraph.from_tuples(facts)
    used = {
        (offer.relation, offer.inverse): offer.used
        for offer in RelationOffers(graph).offered(graph.entities.id("a"))
    }
    assert used[graph.relation_names.id("of_twin"), False] == "like"


def test_neighbours_in_the_order_of_ids_may_have_the_same_relation() -> None:
    graph = KnowledgeGraph.from_ids(np.array([[0, 1, 2], [1, 1, 2], [1, 2, 2]]), 3, 3, add_inverses=False)
    used = {offer.relation: offer.used for offer in RelationOffers(graph).offered(0)}
    assert used == {0: "other", 1: "head", 2: "like"}


def test_a_relation_that_cannot_be_asked_backwards_is_not_offered_so() -> None:
    graph = KnowledgeGraph.from_ids(np.array([[0, 0, 1]]), 2, 1, add_inverses=False)
    assert RelationOffers(graph).offered(1) == [Offered(0, False, "other", 1)]


def test_a_hub_is_no_more_work() -> None:
    rng = np.random.default_rng(0)
    n_facts = 200_000
    triples = np.stack(
        [np.zeros(n_facts, int), rng.integers(0, 300, n_facts), rng.integers(0, 50_000, n_facts)], 1
    )
    graph = KnowledgeGraph.from_ids(triples, 50_000, 300)
    offers = RelationOffers(graph)
    started = time.process_time()
    assert len(offers.offered(0)) == 600
    assert time.process_time() - started < 0.2  # measured: 3 ms
