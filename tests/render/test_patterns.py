"""Sentences of patterns read as a person would say them, with types where there are any, and records in words."""

import re

import pytest
from small_reasoning import explained, reasoner

from dpmpn.explain.record import PatternRecord, Tally
from dpmpn.render.formats import Explanation
from dpmpn.render.patterns import record_text
from dpmpn.render.relation_words import relation_words, several, type_words

FACTS = [
    *((f"P{i}", "sold_in", "China") for i in range(5)),
    *((f"P{i}", "sold_in", "EU") for i in range(2)),
    *((f"P{i}", "requires", "CCC") for i in range(1, 5)),
    ("P0", "made_by", "Acme"),
    ("P1", "made_by", "Acme"),
    ("Acme", "owner_of", "Bolt"),
    ("Bolt", "has_rule", "CCC"),
]
TYPES = {
    **{f"P{i}": "Product" for i in range(5)},
    **{"China": "Region", "EU": "Region", "CCC": "certificate"},
}


def through(*moves: list[tuple[str, str, str, float]], typed: bool = True) -> Explanation:
    """Why P0 requires CCC, by some moves of attention."""
    explanation = explained(
        "CCC",
        facts=FACTS,
        moves=list(moves),
        head="P0",
        relation="requires",
        labels={name: name for name in TYPES} if typed else None,
        types=TYPES if typed else None,
    )
    return explanation


REGIONS = (
    [("P0", "sold_in", "China", 0.7), ("P0", "sold_in", "EU", 0.3)],
    [
        *(("China", "^sold_in", f"P{i}", share) for i, share in ((1, 0.3), (2, 0.2), (3, 0.1), (4, 0.1))),
        ("EU", "^sold_in", "P1", 0.3),
    ],
    [(f"P{i}", "requires", "CCC", share) for i, share in ((1, 0.6), (2, 0.2), (3, 0.1), (4, 0.1))],
)


def test_the_rule_of_the_regions_is_one_sentence() -> None:
    (pattern,) = through(*REGIONS).patterns
    assert pattern.sentence == (
        "P0 is sold in a region where another product is sold that requires CCC: 2 regions (China and EU) and "
        "4 products (P1, P2, P3 and 1 more)."
    )
    assert pattern.share == pytest.approx(1.0) and len(pattern.instances) == 5
    assert [(each.place, each.count, each.what) for each in pattern.varies] == [
        (1, 2, "regions"),
        (2, 4, "products"),
    ]
    assert [(r.relation, r.inverse) for r in pattern.relations] == [
        ("sold_in", False),
        ("sold_in", True),
        ("requires", False),
    ]


def test_without_types_there_is_a_plain_word() -> None:
    (pattern,) = through(*REGIONS, typed=False).patterns
    assert pattern.sentence == (
        "P0 is sold in another entity where another entity is sold that requires CCC: 2 entities (China and EU) "
        "and 4 entities (P1, P2, P3 and 1 more)."
    )


def test_facts_say_what_an_entity_is_where_labels_do_not() -> None:
    typed = [(name, "is_a", "region") for name in ("China", "EU")]
    explanation = explained("CCC", facts=FACTS + typed, moves=list(REGIONS), head="P0", relation="requires")
    (pattern,) = explanation.patterns
    assert pattern.sentence.startswith(
        "P0 is sold in a region where another entity is sold that requires CCC"
    )


def test_types_may_hold_anything() -> None:
    odd = dict.fromkeys(("China", "EU"), "a\x1b[31m\u202eregion")
    explanation = explained(
        "CCC",
        facts=FACTS,
        moves=list(REGIONS),
        head="P0",
        relation="requires",
        labels={name: name for name in odd},
        types=odd,
    )
    sentence = explanation.patterns[0].sentence
    assert "\x1b" not in sentence and "\u202e" not in sentence and "region" in sentence


def _spelled_out(name: str) -> str:
    return re.sub(r"^P(?=\d)", "product-", name)


def test_names_with_numbers_say_it_too() -> None:
    facts = [(_spelled_out(head), relation, tail) for head, relation, tail in FACTS]
    moves = [
        [
            (_spelled_out(source), relation, _spelled_out(target), flow)
            for source, relation, target, flow in step
        ]
        for step in REGIONS
    ]
    explanation = explained("CCC", facts=facts, moves=moves, head="product-0", relation="requires")
    assert "another product is sold that requires CCC" in explanation.patterns[0].sentence
    assert explanation.patterns[0].varies[1].what == "products"


def test_what_does_not_vary_has_its_name() -> None:
    one = (
        [("P0", "sold_in", "China", 1.0)],
        [("China", "^sold_in", "P1", 1.0)],
        [("P1", "requires", "CCC", 1.0)],
    )
    (pattern,) = through(*one).patterns
    assert pattern.sentence == "P0 is sold in China, where P1 is sold, and P1 requires CCC."
    assert pattern.varies == ()
    two = (
        [("P0", "made_by", "Acme", 1.0)],
        [("Acme", "owner_of", "Bolt", 1.0)],
        [("Bolt", "has_rule", "CCC", 1.0)],
    )
    (pattern,) = through(*two).patterns
    assert pattern.sentence == "P0 is made by Acme, which is owner of Bolt, which has rule CCC."


def test_the_fact_that_was_asked_for_is_said_to_be_that() -> None:
    explanation = explained(
        "Europe", facts=[("Serbia", "in", "Europe")], moves=[[("Serbia", "in", "Europe", 1.0)]]
    )
    (pattern,) = explanation.patterns
    assert pattern.sentence == "Serbia is in Europe; this is the fact that was asked for."
    assert pattern.record is None and record_text(pattern.record) == ""


def test_attention_that_never_left() -> None:
    (pattern,) = explained("Serbia", moves=[[("Serbia", "=", "Serbia", 1.0)]]).patterns
    assert pattern.sentence == "The attention never left Serbia." and pattern.relations == ()


def test_entities_with_the_same_label_are_told_apart() -> None:
    (pattern,) = explained(labels={"Kosovo": "K", "Hungary": "K"}).patterns
    assert "(K (Kosovo) and K (Hungary))" in pattern.sentence


def test_patterns_of_a_trained_model_carry_most_of_the_answer() -> None:
    explanation = reasoner().explain("child0", "father")
    shares = [pattern.share for pattern in explanation.patterns]
    assert shares == sorted(shares, reverse=True)
    assert explanation.kept_share - 1e-6 <= sum(shares) <= 1 + 1e-6
    for pattern in explanation.patterns:
        assert sum(each.share for each in pattern.instances) == pytest.approx(pattern.share)


@pytest.mark.parametrize(
    ("name", "forward", "backward"),
    [
        ("sold_in", "is sold in", None),
        ("requires", "requires", None),
        ("official_language", "has official language", "is official language of"),
        ("has_capital", "has capital", "is capital of"),
        ("neighbour_of", "is neighbour of", "has neighbour"),
        ("in_subregion", "is in subregion", "is subregion of"),
        ("also_speaks", "also speaks", None),
        ("lives_in", "lives in", None),
        ("week_starts_on", "week starts on", None),
        ("takes_battery", "takes battery", "is battery of"),
        ("uses_currency", "uses currency", "is currency of"),
        ("located_in_country", "is located in country", None),
        ("father", "has father", "is father of"),
        ("/people/person/nationality", "has nationality", "is nationality of"),
        ("/award/award_nominee/award_nominations./award/award_nomination/award", "has award", "is award of"),
        ("http://schema.org/birthPlace", "has birth place", "is birth place of"),
        ("_hypernym", "has hypernym", "is hypernym of"),
        ("P27", "P27", None),
        ("part_of", "is part of", "has part"),
        ("_", "_", None),
    ],
)
def test_words_of_relations(name: str, forward: str, backward: str | None) -> None:
    words = relation_words(name)
    assert (words.forward, words.backward) == (forward, backward)


def test_words_of_types() -> None:
    assert [
        several(type_words(type)) for type in ("Product", "http://x/Country", "US state", "person", "box")
    ] == [*("products", "countries", "US states", "people", "boxes")]


def test_records_in_words() -> None:
    exact = Tally(144, 213, 66, 66 / 213, 66 / 121)
    assert record_text(PatternRecord(exact, Tally(26, 38, 26, 26 / 38, 26 / 38))) == (
        "In the graph it leads from 144 entities to 213 answers; 66 are stated (31%; 55% where any answer is stated). "
        "To validation questions it adds 38 answers; 26 are right (68%)."
    )
    drawn = Tally(1, 1, 1, 1.0, 1.0, 0.4, 1.0)
    assert record_text(PatternRecord(drawn, None)) == (
        "In the graph it leads from 1 entity to 1 answer; 1 is stated (100%, 40% to 100% by a sample)."
    )
    nowhere = PatternRecord(Tally(0, 0, 0, None), Tally(0, 0, 0, None))
    assert record_text(nowhere).startswith("In the graph it leads to no other answer")
