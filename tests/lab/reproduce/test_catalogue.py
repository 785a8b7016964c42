"""Where the paper has each exhibit, by the dataset that was asked for, and which options an exhibit takes."""

from pathlib import Path

import pytest

from dpmpn.errors import ConfigError
from dpmpn.lab.reproduce.making import EXHIBITS
from dpmpn.lab.reproduce.workshop import Request


@pytest.mark.parametrize(
    ("name", "on_wn18rr", "on_fb15k_237"),
    [
        ("convergence", "Figure 4 (A)", "Figure 7 (A)"),
        ("ignn", "Figure 4 (B)", "Figure 7 (B)"),
        ("horizons", "Figure 4 (C)-(F)", "Figure 7 (C)-(F)"),
        ("time-cost", "Figure 6", "Figure 8"),
    ],
)
def test_charts_of_the_two_datasets_stand_in_different_places(name, on_wn18rr, on_fb15k_237):
    exhibit = EXHIBITS[name]
    assert exhibit.place_of(Request()) == exhibit.place_of(Request(dataset="WN18RR")) == on_wn18rr
    assert exhibit.place_of(Request(dataset="FB15K-237")) == on_fb15k_237


def test_what_has_no_runs_of_others_to_use_refuses_them():
    refusing = {"datasets", "convergence", "time-cost"}
    for name, exhibit in EXHIBITS.items():
        if name in refusing:
            with pytest.raises(ConfigError, match=f"'{name}' .* leave out --runs"):
                exhibit.check(Request(runs=Path("x")))
        else:
            exhibit.check(Request(runs=Path("x")))
