"""Planted rules hold exactly, no other chain is sure where there is an answer, and a seed makes the same again."""

from collections import Counter

import numpy as np
import pytest
from synthetic import DISTRACTORS, RULES, PlantedRules, family_graph, proofs_of

from dpmpn.data.dataset import SPLITS
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.data.vocabulary import Vocabulary
from dpmpn.errors import DataError

PARENTS = [("a", "parent_of", "b"), ("b", "parent_of", "c"), ("x", "parent_of", "c")]


@pytest.fixture(scope="module")
def planted() -> PlantedRules:
    return family_graph(12, seed=3)


@pytest.fixture(scope="module")
def wide() -> PlantedRules:
    return family_graph(40, seed=3)


def pairs(planted: PlantedRules, relation: str) -> set[tuple[str, str]]:
    return {(head, tail) for head, of, tail in planted.stated if of == relation}


def chains_that_lead_to_answers(
    planted: PlantedRules, rule: str, inverse: bool
) -> dict[tuple[str, ...], float]:
    """Chains of facts from heads that have an answer, and how often they are right.

    For each chain of up to two facts, or four without friends, colleagues and homes, that finds answers of at least
    a twentieth of the heads: of what it leads to from a head, the part that is an answer; mean over the heads that it
    leads on from. As in an explanation, nobody is visited twice.
    """
    graph = planted.dataset().graph
    n, names = graph.n_entities, graph.relation_names
    id_of = graph.entities.id
    right = np.array(
        [(id_of(h), id_of(t))[:: -1 if inverse else 1] for h, r, t in planted.proofs if r == rule]
    )
    heads = np.random.default_rng(0).permutation(np.unique(right[:, 0]))[:100]
    random = np.array(
        [names.name(i).startswith(("friend", "works_with", "lives")) for i in range(len(names))]
    )
    visited, chain = heads[:, None], np.zeros(len(heads), np.int64)
    found: dict[tuple[str, ...], float] = {}
    for length in range(1, 5):
        edges, before = out_edges(graph, visited[:, -1])
        new = (visited[before] != graph.tails[edges, None]).all(1)
        if length > 2:
            plain = ~np.isin(
                chain, [c for c in np.unique(chain) if random[list(relations_of(c, names))].any()]
            )
            new &= plain[before] & ~random[graph.relations[edges]]
        edges, before = edges[new], before[new]
        visited = np.column_stack([visited[before], graph.tails[edges]])
        chain = chain[before] * (len(names) + 1) + graph.relations[edges] + 1
        ends = np.unique((chain * n + visited[:, 0]) * n + visited[:, -1])
        is_right = np.isin(ends % (n * n), right @ (n, 1))
        starts, of_start = np.unique(ends // n, return_inverse=True)
        part = np.bincount(of_start, is_right) / np.bincount(of_start)
        chains, of_chain = np.unique(starts // n, return_inverse=True)
        often = np.bincount(of_chain, part > 0) >= len(heads) / 20
        mean = np.bincount(of_chain, part) / np.bincount(of_chain)
        for code, share in zip(chains[often], mean[often], strict=True):
            found[tuple(names.name(i) for i in relations_of(code, names))] = share
    return found


def out_edges(graph: KnowledgeGraph, entities: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The edges that leave each entity, and the place of that one."""
    counts = graph.offsets[entities + 1] - graph.offsets[entities]
    place = np.repeat(np.arange(len(entities)), counts)
    return np.arange(len(place)) + (graph.offsets[entities] - (np.cumsum(counts) - counts))[place], place


def relations_of(chain: int, names: Vocabulary) -> tuple[int, ...]:
    """The relations of a chain that is written as one number."""
    return (*relations_of(chain // (len(names) + 1), names), chain % (len(names) + 1) - 1) if chain else ()


def test_derived_facts_are_exactly_what_the_rules_say(planted: PlantedRules) -> None:
    parent, brother = pairs(planted, "parent_of"), pairs(planted, "brother_of")
    taught, works, place = (pairs(planted, r) for r in ("apprenticed_to", "works_at", "located_in"))
    expected = {(a, "grandparent_of", d) for a, b in parent for c, d in parent if b == c}
    expected |= {(a, "uncle_of", d) for a, b in brother for c, d in parent if b == c}
    at = {(a, d) for a, b in taught for c, d in works if b == c}
    expected |= {(a, "learnt_in", d) for a, b in at for c, d in place if b == c}
    assert set(planted.proofs) == expected
    assert {fact[1] for fact in expected} == set(RULES)


def test_every_proof_is_a_chain_of_stated_facts(planted: PlantedRules) -> None:
    stated = set(planted.stated)
    for (head, rule, tail), proofs in planted.proofs.items():
        assert len(set(proofs)) == len(proofs) >= 1
        for proof in proofs:
            assert proof <= stated
            assert Counter(relation for _, relation, _ in proof) == Counter(RULES[rule])
            at = head
            for _ in proof:
                (at,) = (end for start, _, end in proof if start == at)
            assert at == tail


def test_a_fact_that_follows_twice_has_two_proofs() -> None:
    stated = [*PARENTS, ("a", "parent_of", "x"), ("m", "brother_of", "m2")]
    both = frozenset({PARENTS[0], PARENTS[1]}), frozenset({("a", "parent_of", "x"), PARENTS[2]})
    found = proofs_of("grandparent_of", stated)
    assert set(found) == {("a", "grandparent_of", "c")}
    assert set(found["a", "grandparent_of", "c"]) == set(both)
    assert proofs_of("uncle_of", stated) == {}


def test_judging_counts_facts_of_any_proof_as_right_and_the_best_proof_as_found() -> None:
    fact = ("a", "grandparent_of", "c")
    stated = (*PARENTS, ("a", "parent_of", "x"), ("a", "friend_of", "c"))
    planted = PlantedRules(
        stated, proofs_of("grandparent_of", stated), {"train": (), "valid": (), "test": ()}
    )
    assert planted.judge(fact, PARENTS[:2]) == (1.0, 1.0)
    assert planted.judge(fact, PARENTS) == (1.0, 1.0)
    assert planted.judge(fact, [PARENTS[0], stated[-1]]) == (0.5, 0.5)
    assert planted.judge(fact, []) == (0.0, 0.0)
    assert planted.right_share(fact, {PARENTS[0]: 0.9, stated[-1]: 0.3}) == pytest.approx(0.75)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("inverse", [False, True])
def test_where_there_is_an_answer_no_other_chain_is_sure(
    wide: PlantedRules, rule: str, inverse: bool
) -> None:
    """The best rivals lead over brothers and sisters, who have the same parents more often than others."""
    found = chains_that_lead_to_answers(wide, rule, inverse)
    chain = tuple(f"{name}_inv" for name in reversed(RULES[rule])) if inverse else RULES[rule]
    assert found.pop(chain) == 1
    assert max(found.values(), default=0) < 0.8


def test_who_marries_has_parents_and_brothers_unless_a_founder(planted: PlantedRules) -> None:
    """So a parent's spouse is no second way to a child's grandparents and uncles."""
    parented = {child for _, child in pairs(planted, "parent_of")}
    with_brother = {one for _, one in pairs(planted, "brother_of")}
    couples = [couple for couple in pairs(planted, "married_to") if parented.intersection(couple)]
    assert all(parented.issuperset(couple) for couple in couples)
    for at in (0, 1):
        assert 0.4 < np.mean([couple[at] in with_brother for couple in couples]) < 0.9


def test_distractors_are_many_and_stand_in_no_proof(planted: PlantedRules) -> None:
    used = {relation for proofs in planted.proofs.values() for proof in proofs for _, relation, _ in proof}
    counts = Counter(relation for _, relation, _ in planted.stated)
    assert not used & set(DISTRACTORS)
    assert sum(counts[relation] for relation in DISTRACTORS) > len(planted.stated) / 2
    assert used | set(DISTRACTORS) == set(counts)


def test_splits_part_the_derived_facts_and_each_rule(planted: PlantedRules) -> None:
    parts = [planted.splits[split] for split in SPLITS]
    assert sorted(fact for part in parts for fact in part) == sorted(planted.proofs)
    for rule in RULES:
        train, valid, test = (sum(fact[1] == rule for fact in part) for part in parts)
        assert train > test > valid > 0


def test_the_dataset_asks_for_derived_facts_on_the_graph_of_stated_ones(planted: PlantedRules) -> None:
    dataset = planted.dataset()
    graph = dataset.graph
    assert graph.n_edges == 2 * len(planted.stated)
    names = graph.entities.name, graph.relation_names.name, graph.entities.name
    for split in SPLITS:
        rows = {tuple(n(i) for n, i in zip(names, row, strict=True)) for row in dataset.split(split).tolist()}
        assert rows == set(planted.splits[split])
    asked = dataset.queries("test")
    assert (graph.find_edges(asked[:, 0], asked[:, 1], asked[:, 2]) < 0).all()
    assert {graph.relation_names.id(rule) for rule in RULES} <= set(range(graph.n_forward))


def test_as_an_ordinary_dataset_the_training_facts_are_edges_and_no_others(planted: PlantedRules) -> None:
    dataset = planted.dataset(derived_in_graph=True)
    assert len(dataset.train) == len(planted.stated) + len(planted.splits["train"])
    assert dataset.graph.n_edges == 2 * len(dataset.train)
    held_out = np.concatenate([dataset.queries("valid"), dataset.queries("test")])
    assert (dataset.graph.find_edges(*held_out.T) < 0).all()


def test_a_seed_makes_the_same_again_and_another_does_not(planted: PlantedRules) -> None:
    again = family_graph(12, seed=3)
    assert (again.stated, again.proofs, again.splits) == (planted.stated, planted.proofs, planted.splits)
    assert family_graph(12, seed=4).stated != planted.stated


@pytest.mark.parametrize("count", [1, 0, -1])
def test_too_few_families_to_marry_are_refused(count: int) -> None:
    with pytest.raises(DataError, match="at least 2"):
        family_graph(count)
