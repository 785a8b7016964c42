from hypothesis import given
from hypothesis import strategies as st

from dpmpn.render.markup import ELLIPSIS, NO_NAME, readable, text_width, wrapped


def test_a_short_name_stays_as_it_is():
    assert wrapped("Southern Europe", 140, 2, 11) == ("Southern Europe",)


def test_a_name_is_broken_where_its_parts_end_and_loses_nothing():
    assert wrapped("/people/person/place_of_birth", 120, 2, 11) == ("/people/person/", "place_of_birth")
    lines = wrapped("concept_personnorthamerica_michael_turner", 148, 3, 11)
    assert "".join(lines) == "concept_personnorthamerica_michael_turner"
    assert all(line.endswith("_") for line in lines[:-1])


def test_the_middle_of_what_is_too_long_is_left_out():
    first, last = wrapped("/travel/travel_destination/climate./travel/monthly_climate/month", 120, 2, 11)
    assert first.startswith("/travel/") and first.endswith(ELLIPSIS) and last.endswith("month")
    (line,) = wrapped("x" * 10_000, 100, 1, 11)
    assert line.count(ELLIPSIS) == 1 and line.startswith("x") and line.endswith("x")


def test_names_that_xml_cannot_hold_are_made_readable():
    assert readable("") == readable(" \n ") == NO_NAME
    assert readable("a\nb") == "a b"
    assert readable("a\x00b") == "a\ufffdb"
    assert readable("\ud800") == "\ufffd"


@given(st.text(max_size=120), st.integers(1, 3), st.sampled_from([60.0, 140.0]))
def test_no_line_is_too_wide_and_there_are_not_too_many(text: str, most_lines: int, width: float):
    lines = wrapped(text, width, most_lines, 10)
    assert 1 <= len(lines) <= most_lines
    assert all(text_width(line, 10) <= width + 1e-9 for line in lines)
    assert all(line for line in lines)


def test_wide_and_bold_letters_take_more():
    assert text_width("日本", 10) > text_width("ab", 10)
    assert text_width("name", 10, bold=True) > text_width("name", 10)
    assert text_width("e\u0301", 10) == text_width("e", 10)
