"""Explanations are tested by asking again on changed graphs: as `with_facts` changes them, with known figures."""

from itertools import pairwise

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpmpn
from dpmpn.data.changed_graph import only_edges
from dpmpn.decisive.variants import edges_of
from dpmpn.explain.distance import shortest_paths
from dpmpn.explain.explanation import KEPT_PATHS, KEPT_SHARE
from dpmpn.explain.paths import fact_of, named_fact
from dpmpn.explain_eval.deciding import CHOICES
from dpmpn.explain_eval.fidelity import (
    KINDS,
    ChangedGraphs,
    Evidence,
    EvidenceTest,
    Measured,
    Measurement,
    Sample,
    explained,
    hidden_fact,
)
from dpmpn.explain_eval.outcome import Outcome, outcome
from dpmpn.explain_eval.report import estimate, summarise
from dpmpn.explain_eval.work import measure_explanations, measure_predictions

FAMILIES = 8
TRAIN = [
    *((f"child{i}", "mother", f"mother{i}") for i in range(FAMILIES)),
    *((f"mother{i}", "husband", f"father{i}") for i in range(FAMILIES)),
    *((f"child{i}", "father", f"father{i}") for i in range(6)),
]
HELD_OUT = [("child6", "father", "father6"), ("child7", "father", "father7")]
NAMES = sorted({name for head, _, tail in TRAIN for name in (head, tail)})
TINY = dict(
    model="paper", n_dims=16, n_dims_att=8, n_steps_in_agnn=3, n_steps_in_ignn=1, batch_size=10, threads=1, n_epochs=8,
    learning_rate=0.02,
)  # fmt: skip


@pytest.fixture(scope="module")
def reasoner() -> dpmpn.Reasoner:
    # Few facts: the IGNN takes them all, so that one draw is like another.
    return dpmpn.Reasoner(**TINY).fit(dpmpn.dataset_from_tuples(TRAIN, test=HELD_OUT, name="families"))


def ids(reasoner: dpmpn.Reasoner, fact: tuple[str, str, str]) -> tuple[int, int, int]:
    head, relation, tail = fact
    names = reasoner.graph.entities
    return names.id(head), reasoner.graph.relation_names.id(relation), names.id(tail)


def of_one_family(family: int) -> st.SearchStrategy:
    """A question, an answer and facts of a family: those of others make no difference."""
    members = [f"{role}{family}" for role in ("child", "mother", "father")]
    relations = st.sampled_from(["mother", "father", "husband", "father_inv"])
    facts = st.lists(st.sampled_from([fact for fact in TRAIN if fact[0] in members]), unique=True)
    return st.tuples(st.tuples(st.sampled_from(members), relations), st.sampled_from(members), facts)


cases = st.integers(0, FAMILIES - 1).flatmap(of_one_family)


@settings(max_examples=20)
@given(case=cases)
def test_asking_without_facts_is_asking_a_reasoner_that_lacks_them(reasoner, case) -> None:
    question, answer, facts = case
    head, relation, target = ids(reasoner, (*question, answer))
    graphs = ChangedGraphs(reasoner.engine_beside, head, relation, target)
    nothing, found = graphs.without([[], [ids(reasoner, f) for f in facts]])
    assert facts or found.probability == pytest.approx(
        nothing.probability, rel=1e-4
    )  # float32 sums of a batch
    engine = reasoner.with_facts(remove=facts).engine
    expected = engine.answer(engine.asking_batch(np.array([head]), np.array([relation])))
    probabilities = expected.of_all(reasoner.graph.n_entities)[0]
    assert found.probability == pytest.approx(probabilities[target], rel=1e-4, abs=1e-7)


@settings(max_examples=20)
@given(case=cases)
def test_asking_with_facts_alone_is_asking_a_reasoner_that_lacks_all_others(reasoner, case) -> None:
    question, answer, facts = case
    head, relation, target = ids(reasoner, (*question, answer))
    graphs = ChangedGraphs(reasoner.engine_beside, head, relation, target)
    found = graphs.alone([ids(reasoner, f) for f in facts])
    engine = reasoner.with_facts(remove=[fact for fact in TRAIN if fact not in facts]).engine
    expected = engine.answer(engine.asking_batch(np.array([head]), np.array([relation])))
    probabilities = expected.of_all(reasoner.graph.n_entities)[0]
    assert found.probability == pytest.approx(probabilities[target], rel=1e-4, abs=1e-7)


@settings(max_examples=10)
@given(case=cases)
def test_removing_nothing_changes_nothing(reasoner, case) -> None:
    question, _, _ = case
    head, relation, _ = ids(reasoner, (*question, NAMES[0]))
    explanation = explained(reasoner, head, relation)
    answer = reasoner.graph.entities.id(explanation.answer.answer)
    graphs = ChangedGraphs(reasoner.engine_beside, head, relation, answer, hidden_fact(explanation))
    (before,) = graphs.without([[]])
    assert before.probability == pytest.approx(explanation.answer.score)
    asked = reasoner
    if explanation.with_fact is not None:  # it was asked as if unknown
        assert graphs.hidden == (fact_of(reasoner.graph, (head, relation, answer)),)
        asked = reasoner.with_facts(remove=[named_fact(reasoner.graph, graphs.hidden[0])])
    every = asked.predict(*question, top=len(NAMES), any_role=True)
    assert before.rank == next(p.rank for p in every if p.answer == explanation.answer.answer)


@settings(max_examples=50)
@given(weights=st.lists(st.integers(0, 4), min_size=1, max_size=6), answer=st.integers(0, 9))
def test_ranks_are_places_among_all_entities(weights, answer) -> None:
    scores = np.zeros(10)
    scores[: len(weights)] = weights
    found = outcome(scores, answer)
    assert 1 <= found.rank <= 10
    if scores[answer] == 0:
        assert found.rank == 10 and found.probability == 0
    else:
        places = [np.sum(scores > scores[answer]) + 1, np.sum(scores >= scores[answer])]
        assert found.rank == np.mean(places)


def test_an_isolated_family_has_known_figures(reasoner: dpmpn.Reasoner) -> None:
    sample = measure_predictions(reasoner, Measurement(sample=None))
    assert sample.of_questions == sample.questions == 4 and sample.without_facts == 0
    head = reasoner.graph.entities.id("child7")
    (one,) = [one for one in sample.measured if one.head == head]
    assert reasoner.graph.entities.name(one.answer) == "father7"  # else this test needs a better model
    assert one.right and not one.known
    assert one.full_facts == 2 and one.before.rank == 1
    # Both facts of the family explain it: nothing reaches the father without them, and nothing else ever did.
    for kind in KINDS:
        tested = one.evidence[kind]
        assert tested.n_facts == 2
        assert tested.without == Outcome(0.0, float(len(NAMES)))
        assert tested.alone.probability == pytest.approx(one.before.probability, rel=1e-4)
        assert tested.alone.rank == 1
        assert one.few_paths[kind].rank == len(NAMES) and one.few_facts[kind] == 2


def test_without_any_fact_of_the_entity_a_prior_is_left() -> None:
    small = {"model": "strong", "n_dims": 8, "n_steps_in_agnn": 3, "threads": 1, "n_epochs": 4}
    families = dpmpn.dataset_from_tuples(TRAIN, test=HELD_OUT, name="families")
    reasoner = dpmpn.Reasoner(**small).fit(families)
    measured = measure_predictions(reasoner, Measurement(sample=None)).measured
    assert measured
    for one in measured:
        head = reasoner.graph.entities.name(one.head)
        facts = [fact for fact in TRAIN if head in (fact[0], fact[2])]
        engine = reasoner.with_facts(remove=facts).engine
        answer = engine.answer(engine.asking_batch(np.array([one.head]), np.array([one.relation])))
        assert answer.nodes.tolist() == [one.head]
        prior = answer.of_all(reasoner.graph.n_entities)[0, one.answer]
        assert 0 < one.isolated.probability == pytest.approx(prior, rel=1e-4)


def test_stated_answers_are_explained_whatever_their_rank(reasoner: dpmpn.Reasoner) -> None:
    sample = measure_predictions(reasoner, Measurement("train", None, answers="stated"))
    stated = {tuple(row) for row in reasoner.dataset.queries("train")[:, :3].tolist()}
    assert sample.of_questions == len(stated)
    found = {(one.head, one.relation, one.answer) for one in sample.measured}
    assert found <= stated and len(found) == len(sample.measured)
    assert len(found) + sample.without_facts + sample.unreached + sample.stayed == len(stated)
    assert any(one.before.rank > 1 for one in sample.measured)
    assert all(one.right for one in sample.measured)


def test_evidence_of_the_explanation_is_its_key_facts(reasoner: dpmpn.Reasoner) -> None:
    graph = reasoner.graph
    for fact in TRAIN[::3]:
        head, relation, _ = ids(reasoner, fact)
        explanation = explained(reasoner, head, relation)
        evidence = Evidence(explanation, KEPT_PATHS, KEPT_SHARE, np.random.default_rng(0))
        chosen = {named_fact(graph, found) for found in evidence.facts("explanation")}
        assert chosen == {key.fact for key in explanation.key_facts}
        full = [named_fact(graph, found) for found in evidence.full]
        assert full == list(explanation.full.facts)
        assert set(evidence.facts("random")) <= set(evidence.full)
        assert len(evidence.facts("random")) == len(chosen)
        assert len(evidence.facts("shortest")) <= len(chosen)


def test_the_same_seed_measures_the_same(reasoner: dpmpn.Reasoner) -> None:
    first, again, other = (
        measure_predictions(reasoner, Measurement("train", 6, seed)).measured for seed in (3, 3, 4)
    )
    assert first == again
    assert first != other


def test_seen_progress_and_report(reasoner: dpmpn.Reasoner) -> None:
    seen: list[tuple[int, int]] = []
    report = measure_explanations(
        reasoner, Measurement(sample=3), lambda done, total: seen.append((done, total))
    )
    assert seen == [(1, 3), (2, 3), (3, 3)]
    assert report["asked"] == 3 and report["questions"] == 4
    assert set(report["groups"]["all"]["evidence"]) == set(KINDS)


def test_a_split_without_triples_says_which_to_take(reasoner: dpmpn.Reasoner) -> None:
    with pytest.raises(dpmpn.DataError, match=r"no valid triples.*--split test"):
        measure_predictions(reasoner, Measurement("valid"))


edges = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 1), st.integers(0, 5)), min_size=1, max_size=9, unique=True
)


@settings(max_examples=60)
@given(triples=edges, ends=st.tuples(st.integers(0, 5), st.integers(0, 5)), both=st.booleans())
def test_shortest_paths_are_all_simple_paths_by_length(triples, ends, both) -> None:
    graph = dpmpn.KnowledgeGraph.from_ids(np.array(triples), 6, 2, add_inverses=both)
    found = list(shortest_paths(graph, *ends, longest=4))
    assert found == list(shortest_paths(graph, *ends, longest=4))
    assert all(len(path) <= len(later) for path, later in pairwise(found))
    known = networkx.MultiDiGraph()
    known.add_nodes_from(range(6))
    for edge in range(graph.n_edges):
        head = int(graph.edge_heads(np.array([edge]))[0])
        known.add_edge(head, int(graph.tails[edge]), int(graph.relations[edge]))
    expected = set()
    if ends[0] != ends[1]:
        for path in networkx.all_simple_edge_paths(known, *ends, cutoff=4):
            expected.add(tuple((head, relation, tail) for head, tail, relation in path))
    assert len(set(found)) == len(found)
    assert set(found) == expected


@settings(max_examples=30)
@given(triples=edges, chosen=st.sets(st.integers(0, 8)))
def test_edges_of_facts_are_both_directions_and_make_a_graph(triples, chosen) -> None:
    graph = dpmpn.KnowledgeGraph.from_ids(np.array(triples), 6, 2)
    facts = [triples[i] for i in chosen if i < len(triples)]
    kept = edges_of(graph, facts)
    assert len(kept) == 2 * len(facts) and (np.diff(kept) > 0).all()
    only = only_edges(graph, kept)
    built = dpmpn.KnowledgeGraph.from_ids(np.array(facts, np.int64).reshape(-1, 3), 6, 2)
    for name in ("offsets", "relations", "tails"):
        assert np.array_equal(getattr(only, name), getattr(built, name))
    stated = {fact_of(graph, edge) for edge in _edges(only)}
    assert stated == set(facts)


def _edges(graph: dpmpn.KnowledgeGraph) -> list[tuple[int, int, int]]:
    heads = graph.edge_heads(np.arange(graph.n_edges))
    return list(zip(heads.tolist(), graph.relations.tolist(), graph.tails.tolist(), strict=True))


def _one(right: bool, known: bool, without: Outcome, alone: Outcome, five: Outcome) -> Measured:
    tested = EvidenceTest(3, without, alone)
    return Measured(
        head=0, relation=0, answer=1, right=right, known=known, before=Outcome(0.5, 1.0),
        isolated=Outcome(0.1, 2.0), full_facts=12,
        paths=2, kept_share=0.9, evidence=dict.fromkeys(KINDS, tested), few_paths=dict.fromkeys(KINDS, five),
        few_facts=dict.fromkeys(KINDS, 2), curve=(tested,) * 3, deciding=None,
    )  # fmt: skip


def test_the_report_holds_the_means_of_the_tests() -> None:
    kept, lost = Outcome(0.75, 1.0), Outcome(0.25, 4.0)
    sample = Sample(
        (
            _one(True, False, without=lost, alone=kept, five=lost),
            _one(False, False, without=kept, alone=lost, five=kept),
            _one(True, True, without=lost, alone=lost, five=kept),
        ),
        questions=5, of_questions=9, without_facts=1, unreached=0, stayed=1,
    )  # fmt: skip
    report = summarise(sample)
    assert (report["asked"], report["questions"]) == (5, 9)
    counts = {name: group["predictions"] for name, group in report["groups"].items()}
    assert counts == {"all": 3, "right": 2, "right_and_new": 1, "sure": 0}
    isolated = report["groups"]["all"]["isolated"]
    assert isolated["probability_lost"]["mean"] == pytest.approx(0.8) and isolated["rank_worse"]["mean"] == 1
    measures = report["groups"]["all"]["evidence"]["explanation"]
    assert measures["facts"]["mean"] == 3 and measures["sparsity"]["mean"] == 0.75
    needed, enough = measures["necessity"], measures["sufficiency"]
    assert needed["fidelity_plus"]["mean"] == pytest.approx((0.25 - 0.25 + 0.25) / 3)
    assert needed["probability_lost"]["mean"] == pytest.approx((0.5 - 0.5 + 0.5) / 3)
    assert needed["rank_worse"]["mean"] == pytest.approx(2 / 3)
    assert needed["median_rank"] == 4
    assert needed["mean_reciprocal_rank"]["mean"] == pytest.approx((0.25 + 1 + 0.25) / 3)
    assert enough["fidelity_minus"]["mean"] == pytest.approx((-0.25 + 0.25 + 0.25) / 3)
    assert enough["fidelity_minus_cut_at_0"]["mean"] == pytest.approx((0 + 0.25 + 0.25) / 3)
    assert enough["rank_kept"]["mean"] == pytest.approx(1 / 3)
    assert measures["hdr_at_5"]["mean"] == pytest.approx(1 / 3)
    assert [point["paths"] for point in report["groups"]["all"]["curve"]] == [1, 5, 20, "all"]


@settings(max_examples=30)
@given(values=st.lists(st.floats(0, 1), min_size=10, max_size=30))
def test_intervals_hold_the_mean_and_stay_among_the_values(values) -> None:
    found = estimate(values)
    assert found["mean"] == pytest.approx(np.mean(values))
    assert estimate(values) == found
    assert estimate([]) is None
    if found["low"] is None:
        assert max(values) - min(values) < 1e-6  # all alike: nothing is known of others
    else:
        assert min(values) - 1e-9 <= found["low"] < found["high"] <= max(values) + 1e-9


@pytest.mark.parametrize(
    ("true", "of", "low", "high"),
    [(10, 10, 0.7225, 1.0), (0, 10, 0.0, 0.2775), (15, 20, 0.5313, 0.8881), (50, 100, 0.4038, 0.5962)],
)
def test_shares_have_the_interval_of_wilson(true: int, of: int, low: float, high: float) -> None:
    found = estimate([True] * true + [False] * (of - true))
    assert found == pytest.approx({"mean": true / of, "low": low, "high": high}, abs=1e-4)


def test_nothing_looks_certain_that_is_not() -> None:
    assert estimate([True] * 9) == {"mean": 1.0, "low": None, "high": None}
    assert estimate([0.25, 0.75]) == {"mean": 0.5, "low": None, "high": None}
    assert estimate([0.5] * 20) == {"mean": 0.5, "low": None, "high": None}
    lost = np.linspace(0.1, 0.9, 20)  # each lost all it had
    assert estimate(lost, of=lost) == {"mean": 1.0, "low": None, "high": None}


def test_a_task_with_candidates_is_measured_one_way(tmp_path) -> None:
    (tmp_path / "train.txt").write_text("a\tr\tb\nc\tr\td\n")
    (tmp_path / "test.txt").write_text("e\tr\td\n")
    (tmp_path / "graph.txt").write_text("a\ts\tb\nb\ts_inv\ta\nc\ts\td\nd\ts_inv\tc\ne\ts\td\nd\ts_inv\te\n")
    (tmp_path / "sort_test.pairs").write_text("thing$e,thing$d: +")
    task = dpmpn.Reasoner(**{**TINY, "n_epochs": 1}).fit(dpmpn.load_dataset(tmp_path))
    sample = measure_predictions(task)
    assert sample.of_questions == 1
    assert len(sample.measured) + sample.stayed == 1


def test_deciding_facts_are_tested_beside_as_many_others(reasoner: dpmpn.Reasoner) -> None:
    sample = measure_predictions(reasoner, Measurement("train", 6, 3))
    tests = [one.deciding for one in sample.measured if one.deciding]
    assert tests
    for one in sample.measured:
        if one.deciding and one.deciding.necessary:
            assert set(one.deciding.necessary.outcomes) == set(CHOICES)
            assert one.deciding.necessary.outcomes["decisive"].rank > one.before.rank
    group = summarise(sample)["groups"]["all"]["decisive"]
    assert group["predictions"] == len(tests)
    found = [test.necessary is not None for test in tests]
    assert group["necessary_found"]["mean"] == pytest.approx(np.mean(found))
    lost = group["most_lost"]["by_choice"]
    assert lost["decisive"]["fidelity_plus"]["mean"] >= lost["random"]["fidelity_plus"]["mean"] - 1e-6
