"""Planted rules hold exactly, no other chain holds for all heads, and a seed makes the same again."""

from collections import Counter

import numpy as np
import pytest
from scipy.sparse import csr_array

from dpmpn.data.dataset import SPLITS
from dpmpn.data.families import DISTRACTORS, RULES, PlantedRules, family_graph, proofs_of
from dpmpn.errors import DataError

PARENTS = [("a", "parent_of", "b"), ("b", "parent_of", "c"), ("x", "parent_of", "c")]


@pytest.fixture(scope="module")
def planted() -> PlantedRules:
    return family_graph(12, seed=3)


def pairs(planted: PlantedRules, relation: str) -> set[tuple[str, str]]:
    return {(head, tail) for head, of, tail in planted.stated if of == relation}


def reached_by(planted: PlantedRules) -> dict[str, csr_array]:
    """For each relation, stated or derived, and for its inverse: who reaches whom."""
    place = {name: i for i, name in enumerate({e: None for h, _, t in planted.stated for e in (h, t)})}
    ends: dict[str, list[tuple[int, int]]] = {}
    for head, relation, tail in [*planted.stated, *planted.proofs]:
        ends.setdefault(relation, []).append((place[head], place[tail]))
        ends.setdefault(f"{relation} backwards", []).append((place[tail], place[head]))
    size = len(place), len(place)
    return {name: csr_array((np.ones(len(at)), np.array(at).T), shape=size) for name, at in ends.items()}


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


def test_no_other_chain_is_a_sure_rule_for_all_heads(planted: PlantedRules) -> None:
    """Chains of up to three facts that reach a twentieth of what a rule derives; friends and the like stand first."""
    reached = reached_by(planted)
    usable = [name for name in reached if name.removesuffix(" backwards") not in RULES]
    joining = [name for name in usable if name.split()[0] not in ("friend_of", "works_with", "lives_in")]
    chains = {(name,): reached[name] for name in usable}
    for _ in range(2):
        longer = {(*chain, name): joined(m, reached[name]) for chain, m in chains.items() for name in joining}
        chains = {chain: matrix for chain, matrix in longer.items() if matrix.nnz} | chains
    confidence = {
        (rule, chain): found / leads.sum()
        for rule in RULES
        for chain, leads in chains.items()
        if (found := leads.multiply(reached[rule]).sum()) > 0.05 * reached[rule].sum()
    }
    assert {sure for sure, value in confidence.items() if value > 0.8} == set(RULES.items())


def joined(first: csr_array, second: csr_array) -> csr_array:
    """Who reaches whom along both; that one comes back to where one was proves nothing."""
    both = (first @ second).tocoo()
    rows, columns = (ends[both.row != both.col] for ends in (both.row, both.col))
    return csr_array((np.ones(len(rows)), (rows, columns)), shape=both.shape)


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


@pytest.mark.parametrize("count", [0, -1])
def test_no_families_are_refused(count: int) -> None:
    with pytest.raises(DataError, match="at least 1"):
        family_graph(count)
