"""Numbers and lists are said as people say them."""

import pytest

from dpmpn.wording import counted, listed, probability_shown


def test_counts() -> None:
    assert [counted(count, "fact") for count in (0, 1, 1200)] == ["0 facts", "1 fact", "1,200 facts"]
    assert counted(2, "entity", "entities") == "2 entities"


@pytest.mark.parametrize(
    ("texts", "said"), [([], ""), (["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")]
)
def test_lists(texts: list[str], said: str) -> None:
    assert listed(texts) == said
    assert listed(texts, "or") == said.replace(" and ", " or ")


def test_next_to_nothing_is_not_nothing() -> None:
    shown = [probability_shown(probability) for probability in (1.0, 0.6871, 0.0005, 0.00049, 5e-6)]
    assert shown == ["1.000", "0.687", "0.001", "0.0005", "5e-06"]
