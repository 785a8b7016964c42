"""What a model has learnt: facts are asked for while they are hidden, and their patterns are put together."""

from functools import cache

import numpy as np
import pytest

from dpmpn import LearntPatterns, Reasoner, dataset_from_tuples
from dpmpn.errors import ConfigError, UnknownName
from dpmpn.learnt import facts_to_ask, flows_to, learnt_relations
from dpmpn.render.export import pattern_row
from dpmpn.render.learnt import named

FACTS = [
    *((f"child{i}", "mother", f"mother{i}") for i in range(12)),
    *((f"mother{i}", "husband", f"father{i}") for i in range(12)),
    *((f"child{i}", "father", f"father{i}") for i in range(10)),
]


@cache
def reasoner(model: str) -> Reasoner:
    if model == "any-graph":
        return Reasoner.load("any-graph", threads=1).on(FACTS)
    dataset = dataset_from_tuples(
        FACTS, [("child10", "father", "father10")], [("child11", "father", "father11")], "family"
    )
    sizes = {"n_dims": 6, "n_steps_in_agnn": 3, "batch_size": 10, "threads": 1, "n_epochs": 1}
    return Reasoner(model=model, **sizes).fit(dataset, progress=False)


@cache
def learnt(model: str) -> LearntPatterns:
    return reasoner(model).patterns("father", sample=10, progress=False)


@pytest.mark.parametrize("model", ["paper", "strong", "any-graph"])
def test_the_rule_of_the_family_is_learnt(model: str) -> None:
    (relation,) = learnt(model)
    assert relation.questions == relation.reached == 10
    first, pattern = named(relation)[0]
    assert pattern.sentence == "X has father Y if X has a mother that has husband Y."
    assert [each.relation for each in pattern.relations] == ["mother", "husband"]
    assert first.questions == 10 and 0.5 < pattern.share <= 1
    assert pattern.record is not None
    tally = pattern.record.graph
    assert (tally.heads, tally.answers, tally.support) == (12, 12, 10)
    assert tally.pca_confidence == 1


def test_the_fact_that_is_asked_for_is_never_the_reason() -> None:
    graph = reasoner("any-graph").graph
    for relation in learnt_relations(reasoner("any-graph"), ["father"], sample=10):
        for each in relation.patterns:
            assert [hop.relation for hop in each.pattern.hops] != [relation.asked]
    facts = facts_to_ask(reasoner("any-graph"), graph.relation_names.id("father", "relation"), 4)
    for flow, fact in zip(flows_to(reasoner("any-graph"), facts), facts.tolist(), strict=True):
        for step in flow.query.steps:
            nodes = flow.query.nodes
            along = zip(
                nodes[step.head].tolist(), step.relation.tolist(), nodes[step.tail].tolist(), strict=True
            )
            assert tuple(fact) not in set(along)


def test_facts_are_drawn_alike_whatever_else_is_asked() -> None:
    asked = reasoner("any-graph").graph.relation_names.id("father", "relation")
    first, again = (facts_to_ask(reasoner("any-graph"), asked, 4) for _ in range(2))
    assert np.array_equal(first, again) and len(first) == 4
    assert len(facts_to_ask(reasoner("any-graph"), asked, 1000)) == 10


def test_all_relations_both_ways_and_as_a_table() -> None:
    found = reasoner("any-graph").patterns(sample=3, top=2, progress=False)
    assert {record["relation"] for record in found.to_dict()["relations"]} == {"father", "husband", "mother"}
    table = found.to_frame()
    assert {"relation", "inverse", "weight", "sentence", "support", "confidence"} <= set(table.columns)
    assert len(table) == sum(len(relation.patterns) for relation in found)
    (back,) = reasoner("any-graph").patterns("father", sample=3, top=1, inverse=True, progress=False)
    assert named(back)[0][1].sentence == "X is father of Y if X is husband of a mother that is mother of Y."


def test_records_texts_and_drawings_say_the_same() -> None:
    found = learnt("any-graph")
    (record,) = found.to_dict()["relations"]
    assert (record["relation"], record["inverse"], record["questions"]) == ("father", False, 10)
    first = record["patterns"][0]
    assert {
        "weight",
        "sentence",
        "relations",
        "support",
        "confidence",
        "validation",
        "examples",
    } <= first.keys()
    weights = [pattern["weight"] for pattern in record["patterns"]]
    assert weights == sorted(weights, reverse=True) and sum(weights) <= 1.0001
    for pattern in record["patterns"]:
        assert pattern["sentence"] in found.text() and pattern["sentence"] in found.svg()
    assert found.svg().startswith("<svg") and found.svg() in found._repr_html_()
    assert pattern_row(1, named(found[0])[0][1])["relations"] == "mother, husband"


def test_what_cannot_be_asked_is_refused() -> None:
    with pytest.raises(UnknownName):
        reasoner("any-graph").patterns("fathr", progress=False)
    with pytest.raises(ConfigError):
        reasoner("any-graph").patterns("father", sample=0, progress=False)
    with pytest.raises(ConfigError, match="at least 1"):
        list(learnt_relations(reasoner("any-graph"), ["father"], top=0))
