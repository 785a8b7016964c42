"""Names one slip away are suggested first, also among many names; a head and a relation that were swapped."""

import pytest

from dpmpn.data.near_names import near_names

COUNTRIES = ["Syria", "Algeria", "Austria", "Serbia", "Siberia", "Liberia", "Nigeria", "Bulgaria"]


@pytest.mark.parametrize("typed", ["Sebria", "Serbi", "Serbiaa", "Srebia", "Serbka", "eSrbia"])
@pytest.mark.parametrize("others", [0, 3000])
def test_one_slip_comes_first(typed: str, others: int) -> None:
    names = [*COUNTRIES, *(f"{i} Seria {i}" for i in range(others))]
    assert near_names(typed, names)[0] == "Serbia"


def test_two_slips_are_no_reason_to_come_first() -> None:
    assert near_names("Austrai", ["Serbia", "Austria"]) == ["Austria"]
