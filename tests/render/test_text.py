"""The text of an explanation: sentences with the right shares, parallel facts together, labels with identifiers."""

import pytest
from small_reasoning import MEASURED, explained, reasoner

from dpmpn.explain.rivals import Fork, Peak, Rival
from dpmpn.explain.why_not import WhyNotData
from dpmpn.render.text import SHOWN_KEY_FACTS, SHOWN_PATHS, explanation_text
from dpmpn.render.why_not_text import why_not_text
from dpmpn.wording import percent


def test_the_whole_text() -> None:
    assert (
        explanation_text(explained(held_out="test"))
        == """\
Question: <Serbia, in, ?>
Answer: Europe, the first answer, with score 0.800 (the part of the model's attention that ended there).
The graph does not state this fact; it is one of the test facts that were held out.

Reasons, as patterns of relations, and how often each holds:
  100% Serbia borders another entity that is in Europe: 2 entities (Kosovo and Hungary).
       In the graph it leads to no other answer, so nothing else speaks for it or against it.

In 2 steps, attention moved from Serbia to Europe along these paths:
   75% Kosovo borders Serbia (both ways), then Kosovo in Europe.
   25% Hungary borders Serbia, then Hungary in Europe.
Together they carried all of it.

Query: (Serbia, in, Europe)

Selected key edges, from the 3 strongest paths, which carried 100%:
   75% Kosovo, in, Europe
   43% Kosovo, borders, Serbia
   32% Serbia, borders, Kosovo
   25% Hungary, borders, Serbia
   25% Hungary, in, Europe"""
    )


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"known": True}, "The graph already states this fact."),
        ({"held_out": "valid"}, "one of the validation facts"),
        ({}, "This fact is new: neither the graph nor the held-out facts state it."),
        ({"rank": 12}, "answer number 12,"),
        ({"through_unseen": 0.25}, "25% came through entities the model was not trained on"),
        ({"score": 2e-9}, "with score 2e-09"),
        (
            {"prior": 0.03},
            "with score 0.800.\nBefore the first step, its relations alone gave it 0.030.",
        ),
        (
            MEASURED,
            "Probability that it is right: 0.62 (0.40 to >0.99), measured on 1,200 held-out cases of this "
            "relation; 0.87 if the graph lacks an answer.\n",
        ),
        (
            {**MEASURED, "probability_if_missing": 0.63, "cases": 1},
            "on 1 held-out case of this relation.\n",
        ),
    ],
)
def test_what_is_said_of_the_answer(given: dict[str, object], says: str) -> None:
    assert says in explanation_text(explained(**given))  # type: ignore[arg-type]


def test_where_nothing_was_measured_no_probability_is_told() -> None:
    assert "robab" not in explanation_text(explained())


def test_labels_are_shown_with_their_identifiers_and_alone_in_sentences() -> None:
    labels = {"Serbia": "Republic of Serbia", "Kosovo": "Kosovo and Metohija", "borders": "has a border with"}
    text = explanation_text(explained(labels=labels))
    assert "<Republic of Serbia (Serbia), in, ?>" in text
    assert (
        "Kosovo and Metohija has a border with Republic of Serbia (both ways), then Kosovo and "
        "Metohija in Europe." in text
    )
    assert "Query: (Republic of Serbia (Serbia), in, Europe)" in text
    assert "Kosovo and Metohija (Kosovo), has a border with (borders), Republic of Serbia (Serbia)" in text


def test_entities_of_the_same_label_are_told_apart() -> None:
    text = explanation_text(explained(labels={"Kosovo": "neighbour", "Hungary": "neighbour"}))
    assert "neighbour (Hungary) borders Serbia, then neighbour (Hungary) in Europe." in text
    assert "neighbour (Kosovo) borders Serbia" in text


def test_a_question_asked_backwards_is_a_query_in_the_files_direction() -> None:
    moves = [[("Europe", "^in", "Kosovo", 1.0)], [("Kosovo", "=", "Kosovo", 1.0)]]
    text = explanation_text(explained("Kosovo", moves=moves, head="Europe", inverse=True))
    assert text.startswith("Question: <?, in, Europe>\n")
    assert "Query: (Kosovo, in, Europe)" in text
    assert "This path carried all of it." in text


def test_parallel_relations_are_one_way() -> None:
    facts = [("a", relation, "b") for relation in ("r1", "r2", "r3", "r4")] + [("b", "r5", "a")]
    moves = [[("a", f"r{i}", "b", 0.2) for i in range(1, 5)] + [("a", "^r5", "b", 0.2)]]
    explanation = explained("b", facts=facts, moves=moves, head="a", relation="r1")
    (way,) = explanation.path_groups
    assert way.share == pytest.approx(1.0)
    assert way.entities == ("a", "b")
    assert "100% a r1, r2, r3 and 1 more b and b r5 a." in explanation_text(explanation)


def test_attention_that_never_left() -> None:
    moves = [[("Serbia", "=", "Serbia", 1.0)]]
    text = explanation_text(explained("Serbia", moves=moves))
    assert (
        "In 1 step, attention came back to Serbia, where it began, along these paths:\n  100% never left.\n"
        in text
    )
    assert "none: this attention never left the head" in text


def test_of_many_ways_and_facts_the_strongest_are_shown() -> None:
    n = 12
    facts = [(f"m{i:02}", relation, end) for i in range(n) for relation, end in (("r", "a"), ("s", "z"))]
    total = n * (n + 1) / 2
    moves = [
        [("a", "^r", f"m{i:02}", (n - i) / total) for i in range(n)],
        [(f"m{i:02}", "s", "z", (n - i) / total) for i in range(n)],
    ]
    explanation = explained("z", facts=facts, moves=moves, head="a", relation="r")
    text = explanation_text(explanation)
    assert text.count(", then ") == SHOWN_PATHS
    assert "Together they carried 64% of it; weaker paths carried the other 36%." in text
    n_facts = len(explanation.key_facts)
    assert n_facts == 18  # nine ways bring 92 %, eight less than the 90 % that are kept
    assert "more" not in text.partition("Selected key edges")[2]
    assert n_facts <= SHOWN_KEY_FACTS


def test_more_key_facts_than_are_shown_are_counted() -> None:
    n = 40
    facts = [(f"m{i:02}", relation, end) for i in range(n) for relation, end in (("r", "a"), ("s", "z"))]
    moves = [
        [("a", "^r", f"m{i:02}", 1 / n) for i in range(n)],
        [(f"m{i:02}", "s", "z", 1 / n) for i in range(n)],
    ]
    explanation = explained("z", facts=facts, moves=moves, head="a", relation="r")
    assert explanation_text(explanation).endswith(
        f"\n  and {len(explanation.key_facts) - SHOWN_KEY_FACTS} more"
    )


def test_a_name_stays_in_its_line() -> None:
    facts = [("a", "r", "b\nSelected key edges:\x1b[2J")]
    explanation = explained(
        facts[0][2], facts=facts, moves=[[("a", "r", facts[0][2], 1.0)]], head="a", relation="r"
    )
    text = explanation_text(explanation)
    assert text.count("\nSelected key edges") == 1
    assert "b\\nSelected key edges:\\x1b[2J" in text
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("part", "shown"), [(0.0, "0%"), (0.001, "<1%"), (0.5, "50%"), (0.997, ">99%"), (1.0, "100%")]
)
def test_percentages_do_not_pretend(part: float, shown: str) -> None:
    assert percent(part) == shown


def test_any_answer_of_a_model_can_be_told() -> None:
    predictions = reasoner().predict("child0", "father", top=5)
    for prediction in predictions:
        text = predictions.explain(prediction.answer).text()
        assert f"Answer: {prediction.answer}, " in text
        assert f"Query: (child0, father, {prediction.answer})" in text


def test_a_name_that_ends_with_a_stop_gets_no_second_one() -> None:
    text = explanation_text(explained(labels={"Europe": "Europe Co., Ltd."}))
    assert "then Kosovo in Europe Co., Ltd.\n" in text
    assert " to Europe Co., Ltd. along these paths:\n" in text and ".." not in text


def test_nor_does_one_in_the_reasons_against_an_answer() -> None:
    first, other = Rival("a", "Acme Co., Ltd.", 0.5), Rival("b", "Bolt Inc.", 0.2)
    same = ("x", "X Inc.", "h", "H Inc.", "out_competed", 3, 1, True, 1, 1, (0.0, 0.1, 0.1, 0.0))
    parted = Fork("h", "H Inc.", 1, other, first)
    peak = Peak(2, 0.1, True, (first,))
    why = WhyNotData(*same, rank=2, score=0.01, by=(first,), parted=parted, peak=peak)
    text = why_not_text(why)
    assert text.endswith("of which step 3 sent 50% to Acme Co., Ltd.") and ".." not in text
    lost = WhyNotData(
        *same, rank=2, by=(first,), parted=parted, narrowest=Fork("h", "H Inc.", 2, other, other)
    )
    assert why_not_text(lost).endswith("sent only 20% of its attention to Bolt Inc.")
