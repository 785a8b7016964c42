"""Where a graph says too little, a sentence says so; where it says enough, none does."""

import pytest

from dpmpn.ask.expectations import Expectations
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.reasoner.reasoner import Reasoner

RICH = [
    *((f"child{i}", "mother", f"mother{i}") for i in range(5)),
    *((f"mother{i}", "husband", f"father{i}") for i in range(5)),
]
ONE_RELATION = [(f"e{i}", "next", f"e{i + 1}") for i in range(9)]
APART = [(f"a{i}", "r" if i % 2 else "s", f"b{i}") for i in range(12)]


def told(facts: list[tuple[str, str, str]], relation: str, inverse: bool = False) -> list[str]:
    graph = KnowledgeGraph.from_tuples(facts)
    asked = graph.relation_names.id(relation)
    return list(Expectations(graph).of_question(int(graph.inverse[asked]) if inverse else asked))


@pytest.mark.parametrize("inverse", [False, True])
def test_what_is_enough_needs_no_words(inverse: bool) -> None:
    assert told(RICH, "mother", inverse) == []


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("count", [1, 4])
def test_few_facts_of_the_relation(count: int, inverse: bool) -> None:
    (note,) = told([*RICH, *(("mother0", "likes", f"mother{i + 1}") for i in range(count))], "likes", inverse)
    assert f"'likes' has {count} fact{'s' if count > 1 else ''} in this graph" in note and "guesses" in note
    graph = KnowledgeGraph.from_tuples([*RICH, ("mother0", "likes", "mother1")])
    assert Expectations(graph).few == ("likes",)


def test_one_relation() -> None:
    (note,) = told(ONE_RELATION, "next")
    assert "one relation, 'next'" in note


def test_facts_that_share_no_entity() -> None:
    (note,) = told(APART, "r")
    assert note.startswith("no two facts of this graph share an entity")
    joined = [*APART, *((f"c{i}", "r", f"d{i}") for i in range(50)), ("b0", "s", "b1")]
    assert "5% of the facts share an entity" in " ".join(told(joined, "r")).replace("<", "")


def test_a_fact_of_one_entity_shares_it_with_no_other() -> None:
    assert told([*((f"self{i}", "r", f"self{i}") for i in range(5)), *APART], "r")


def test_names_cannot_act_on_a_terminal() -> None:
    (note,) = told([*RICH, ("mother0", "x\x1b[2J", "mother1")], "x\x1b[2J")
    assert "\x1b" not in note


def test_they_come_with_the_answers() -> None:
    predictions = Reasoner.pretrained(threads=1).on(ONE_RELATION[:3]).predict("e0", "next")
    assert len(predictions.notes) == 2
    assert repr(predictions).count("Note: ") == 2
