"""Names as people read them: told apart where labels are shared, and always on one line."""

import pytest
from small_reasoning import explained

from dpmpn.explain.explanation import Question
from dpmpn.render.names import DisplayNames
from dpmpn.render.text import explanation_text
from dpmpn.wording import one_line


def test_identifiers_follow_labels_only_where_two_of_a_kind_share_one() -> None:
    names = DisplayNames(
        {"a": "X", "b": "X", "c": "rel", "X": "other"}, {"r1": "rel", "r2": "near", "r3": "near"}
    )
    assert [names.entity(name) for name in "abc"] == ["X (a)", "X (b)", "rel"]
    assert [names.relation(name) for name in ("r1", "r2", "r3")] == ["rel", "near (r2)", "near (r3)"]
    assert names.exact_fact(("c", "r1", "X")) == ("rel (c)", "rel (r1)", "other (X)")


def test_labels_that_look_the_same_on_one_line_are_told_apart() -> None:
    names = DisplayNames({"a": "x\n", "b": "x\\n"})
    assert [names.entity(name) for name in "ab"] == ["x\\n (a)", "x\\n (b)"]


def test_relations_of_the_same_label_are_told_apart_in_sentences() -> None:
    facts = [("a", "r1", "b"), ("a", "r2", "b")]
    moves = [[("a", "r1", "b", 0.6), ("a", "r2", "b", 0.4)]]
    text = explanation_text(
        explained("b", {"r1": "rel\nnl", "r2": "rel\nnl"}, facts=facts, moves=moves, head="a", relation="r1")
    )
    assert "100% a rel\\nnl (r1) and rel\\nnl (r2) b." in text
    assert "Question: <a, rel\\nnl (r1), ?>" in text


@pytest.mark.parametrize("breaking", ["\n", "\r", "\x1b", "\x85", "\u2028", "\u2029", "\x00"])
def test_a_question_is_one_line(breaking: str) -> None:
    question = Question("h", "r", False, f"h{breaking}h", f"r{breaking}r")
    assert len(str(question).splitlines()) == 1
    assert breaking not in str(question)
    assert one_line(one_line(breaking)) == one_line(breaking)
