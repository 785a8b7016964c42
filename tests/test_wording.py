"""Numbers, lists and times are written as people read them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmpn.wording import (
    about,
    counted,
    duration,
    in_json,
    interval_shown,
    listed,
    megabytes,
    memory,
    on_terminal,
    one_line,
    percent,
    percentage,
    plural,
    probability_shown,
    score_shown,
    sentence,
    six_digits,
    small_percent,
)


def test_a_sentence_ends_with_one_stop() -> None:
    assert sentence("Wood comes from Acme Co., Ltd.") == "Wood comes from Acme Co., Ltd."
    assert sentence("Wood comes from Acme") == "Wood comes from Acme."


def test_counts() -> None:
    assert [counted(count, "fact") for count in (0, 1, 1200)] == ["0 facts", "1 fact", "1,200 facts"]
    assert counted(2, "entity", "entities") == "2 entities"
    assert [plural(count, "epoch") for count in (0.5, 1.0, 3)] == ["epochs", "epoch", "epochs"]


@pytest.mark.parametrize(
    ("texts", "said"), [([], ""), (["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")]
)
def test_lists(texts: list[str], said: str) -> None:
    assert listed(texts) == said
    assert listed(texts, "or") == said.replace(" and ", " or ")


def test_next_to_nothing_is_not_nothing() -> None:
    shown = [score_shown(score) for score in (1.0, 0.6871, 0.0005, 0.00049, 5e-6)]
    assert shown == ["1.000", "0.687", "0.001", "0.0005", "5e-06"]


def test_no_probability_is_certain_or_impossible() -> None:
    shown = [probability_shown(p) for p in (1.0, 0.996, 0.994, 0.6871, 0.006, 0.004, 0.0)]
    assert shown == [">0.99", ">0.99", "0.99", "0.69", "0.01", "<0.01", "<0.01"]
    assert interval_shown(0.001, 0.5) == "<0.01 to 0.50"


def test_parts_in_per_cent() -> None:
    parts = (0.0, 0.0049, 0.005, 0.374, 0.9949, 0.996, 0.9996, 1.0)
    assert [percent(part) for part in parts] == ["0%", "<1%", "<1%", "37%", "99%", ">99%", "100%", "100%"]
    assert [small_percent(part) for part in (0.0, 1e-6, 0.0021, 0.37)] == ["0%", "<1%", "0.2%", "37%"]
    assert [percentage(part) for part in (None, 0.0, 0.4821)] == ["-", "0.0", "48.2"]
    assert percentage(0.4821, 0) == "48"


def test_six_digits_of_whatever_a_value_holds() -> None:
    value = {"p": 0.12345678, "n": 12345678, "in": (1 / 3, ["a", 2e-9 / 3])}
    assert six_digits(value) == {"p": 0.123457, "n": 12345678, "in": [0.333333, ["a", 6.66667e-10]]}


def test_durations() -> None:
    assert [duration(s) for s in (48, 61.6, 3725, float("inf"), float("nan"))] == [
        *("0:48", "1:02", "1:02:05", "-", "-")
    ]
    assert [about(s) for s in (0.1, 89, 90, 3600, 7500)] == [
        *("about 1 s", "about 89 s", "about 2 min", "about 60 min", "about 2 h 05 min")
    ]


def test_sizes() -> None:
    assert [megabytes(22e6), megabytes(1.26e9, 1)] == ["22 MB", "1,260.0 MB"]
    assert [memory(200 << 20), memory(5 << 30)] == ["200 MB", "5 GB"]


HOSTILE = "\x1b[31m \x07\x9b1m\x7f\r\n\u202e\u2066\u200b\ufeff\u2028\ud800"


def test_what_a_terminal_acts_on_is_spelled_out() -> None:
    assert one_line(HOSTILE) == (r"\x1b[31m \x07\x9b1m\x7f\r\n\u202e\u2066\u200b\ufeff\u2028\ud800")
    assert on_terminal("a\tb\nc\r\x1b\u202e") == "a\tb\n" + r"c\r\x1b\u202e"
    for text in ("Café 北京 שלום", "नमस्ते", "👩\u200d🔬", "می\u200cخواهم"):  # joiners belong to their scripts
        assert one_line(text) == on_terminal(text) == text


@given(st.text())
def test_json_says_the_same_without_what_a_terminal_acts_on(text: str) -> None:
    written = in_json(json.dumps([text], ensure_ascii=False))
    assert json.loads(written) == [text]
    assert on_terminal(written) == written and "\n" not in written
    assert one_line(one_line(text)) == one_line(text)
