"""The facts that decide: whatever is said of a set is true when the question is asked on the graph that was changed."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import dpmpn
from dpmpn.data.changed_graph import only_edges
from dpmpn.decisive.deciding import decisive
from dpmpn.decisive.search import smaller
from dpmpn.decisive.variants import Variants, edges_of, facts_among, facts_of
from dpmpn.engine.engine import Engine

GOLDENS = Path(__file__).parents[1] / "goldens"
QUESTIONS = [("Serbia", "in_subregion"), ("Austria", "neighbour_of"), ("Albania", "in_region")]


@cache
def reasoner(model):
    if model == "any-graph":
        return dpmpn.Reasoner.pretrained(threads=1).on("countries")
    return dpmpn.Reasoner.load("demo" if model == "demo" else GOLDENS / "run-paper", threads=1)


def some_questions(model):
    asked = reasoner(model)
    if model != "paper":
        return [asked.question_ids(*names) for names in QUESTIONS]
    graph = asked.graph
    edges = np.linspace(0, graph.n_edges - 1, 4).astype(int)
    return [
        (int(h), int(r), False) for h, r in zip(graph.edge_heads(edges), graph.relations[edges], strict=True)
    ]


def first_of(asked, question, answer, engine=None):
    """What is listed first on a graph, of what may compete with the answer on the graph as it is."""
    variants = Variants(asked, *question[:2], answer, 10)
    return variants._once(engine or asked.engine)


def names_of(graph, facts):
    entity, relation = graph.entities.name, graph.relation_names.name
    return [(entity(head), relation(r), entity(tail)) for head, r, tail in facts]


def cases():
    return [(model, number) for model in ("demo", "any-graph", "paper") for number in range(3)]


@pytest.mark.parametrize(("model", "number"), cases())
def test_what_is_said_of_the_sets_is_true_of_the_changed_graphs(model, number):
    asked, question = reasoner(model), some_questions(model)[number]
    (result,) = asked.ask([question])
    answer = int(result.reached.entities[result._judged.fits.argmax()])
    found, graph = decisive(asked, *question[:2], answer), asked.graph
    itself = facts_among(graph, np.array([[*question[:2], answer]])) if found.as_unknown else ()

    def rank_without(facts):
        changed = asked.with_facts(remove=names_of(graph, [*facts, *itself]))
        return first_of(asked, question, answer, changed.engine)

    assert rank_without(()).rank == found.before.rank
    necessary = found.necessary
    if necessary.facts is None:
        assert necessary.reason
    else:
        assert not necessary.reason and len(set(necessary.facts)) == len(necessary.facts) <= 20
        assert not rank_without(necessary.facts).keeps_rank(found.before)
        assert rank_without(necessary.facts).rank == necessary.outcome.rank
        if necessary.is_smallest and model != "any-graph":  # whose statistics are counted anew on each graph
            for fact in necessary.facts:
                rest = [other for other in necessary.facts if other != fact]
                assert rank_without(rest).keeps_rank(found.before)
    if found.sufficient.facts is None:
        assert found.sufficient.reason
    else:
        assert not set(itself) & set(found.sufficient.facts)
        alone = only_edges(graph, edges_of(graph, found.sufficient.facts))
        outcome = first_of(asked, question, answer, asked.engine_beside.beside(alone))
        assert outcome.keeps_rank(found.before) and outcome.keeps_overall(found.before)


def test_on_the_bundled_graph_the_neighbours_decide():
    found = reasoner("demo").explain("Serbia", "in_subregion", decisive=True)
    record = found.to_dict()
    assert {fact["relation"] for fact in record["necessary"]} == {"in_subregion"}
    assert len(record["sufficient"]) == 2 and record["decisive"]["questions"] < 200
    text = found.text()
    assert "Necessary: without these" in text and "Sufficient: with these 2 facts alone" in text
    assert "The prior decides" not in text


def test_with_few_questions_what_was_found_until_then_is_told():
    asked = reasoner("demo")
    head, relation, _ = asked.question_ids("Serbia", "in_subregion")
    answer = asked.graph.entities.id("Southern Europe")
    whole = decisive(asked, head, relation, answer).necessary
    sizes = []
    for questions in (3, 30, 36, 38, 40, 42, 60):
        found = decisive(asked, head, relation, answer, questions).necessary
        if found.facts is None:
            assert not sizes and found.reason.endswith("then there were no questions left")
        else:
            sizes.append(len(found.facts))
            assert not found.is_smallest or found.facts == whole.facts
    assert sizes and sizes == sorted(sizes, reverse=True) and sizes[-1] == len(whole.facts)


def test_where_the_prior_decides_that_is_the_first_sentence():
    asked = reasoner("demo")
    found = asked.explain("Serbia", "in_subregion", decisive=True)
    prior = replace(found.decisive, isolated=found.decisive.before)
    assert replace(found, decisive=prior).text().startswith("The prior alone would decide the same")


def test_a_fact_never_explains_itself():
    asked = reasoner("demo")
    fact = ("Austria", "in_subregion", "Western Europe")
    found = asked.explain(*fact, decisive=True)
    assert found.with_fact is not None and found.answer.known and found.decisive.as_unknown
    sets = [*found.decisive.necessary.facts, *found.decisive.sufficient.facts, *found.fact_shares]
    assert fact not in names_of(asked.graph, sets)
    unknown = asked.with_facts(remove=[fact]).explain(*fact)
    assert found.answer.score == pytest.approx(unknown.answer.score, rel=1e-5)
    kept = asked.explain(*fact, keep_fact=True)
    assert kept.with_fact is None and fact in names_of(asked.graph, kept.fact_shares)
    assert kept.answer.score == pytest.approx(found.with_fact.score, rel=1e-5)


def test_what_if_compares_with_the_graph_as_it_is():
    asked = reasoner("demo")
    removed = [
        ("Croatia", "in_subregion", "Southern Europe"),
        ("Montenegro", "in_subregion", "Southern Europe"),
    ]
    found = asked.what_if("Serbia", "in_subregion", remove=removed)
    assert found.answer == "Southern Europe" and found.before.rank == 1 and found.after.rank == 2
    other = asked.with_facts(remove=removed).predict("Serbia", "in_subregion")[0]
    assert found.first_after == other and other.answer in found.text
    back = asked.with_facts(remove=removed).what_if("Serbia", "in_subregion", "Southern Europe", add=removed)
    assert back.before.rank == 2 and back.after.rank == 1
    itself = asked.what_if(
        "Austria", "in_subregion", "Western Europe", remove=[("Austria", "in_subregion", "Western Europe")]
    )
    assert itself.before.known and not itself.after.known


def test_variants_in_a_batch_are_those_of_one_by_one():
    asked = reasoner("demo")
    head, relation, _ = asked.question_ids("Serbia", "in_subregion")
    answer = asked.graph.entities.id("Southern Europe")
    variants = Variants(asked, head, relation, answer, 1000)
    facts = facts_of(asked.graph, head)[:12]
    sets = [facts[:at] for at in range(len(facts))]
    for together, alone in zip(variants.without(sets), [variants.without([s])[0] for s in sets], strict=True):
        assert together.rank == alone.rank and together.score == pytest.approx(alone.score, rel=1e-5)
    for some, one in zip(variants.alone(sets[1:]), map(variants.on_facts_alone, sets[1:]), strict=True):
        assert some.rank == one.rank and some.score == pytest.approx(one.score, rel=1e-4)
    assert isinstance(variants.engine, Engine)


def test_leaving_out_ends_with_a_set_of_which_nothing_can_go():
    needed = {(1, 0, 0), (5, 0, 0)}
    facts = tuple((number, 0, 0) for number in range(9))

    def test(sets):
        return [(needed <= set(some), float(len(some))) for some in sets]

    *_, last = smaller(facts, test)
    assert set(last) == needed
