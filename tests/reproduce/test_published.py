"""Figures that others published: read, in order, and each with its source."""

import re

import pytest

from dpmpn.reproduce.published import published_map, published_rows, source_names
from dpmpn.reproduce.tasks import TASKS

METRICS = ("mrr", "hits_at_1", "hits_at_3", "hits_at_10")
ROWS_OF_THE_PAPER = {"FB15K-237": 14, "WN18RR": 14, "FB15K": 9, "WN18": 9, "YAGO3-10": 5}


@pytest.mark.parametrize(
    ("dataset", "scores"),
    [
        ("FB15K-237", (36.9, 28.6, 40.3, 53.0)),
        ("WN18RR", (48.2, 44.4, 49.7, 55.8)),
        ("FB15K", (76.4, 72.6, 78.4, 83.4)),
        ("WN18", (92.8, 91.6, 93.6, 94.9)),
        ("YAGO3-10", (55.3, 48.4, 59.5, 67.9)),
    ],
)
def test_the_papers_own_row_closes_its_table_and_later_systems_follow(dataset, scores):
    rows = published_rows(dataset)
    n_paper = ROWS_OF_THE_PAPER[dataset]
    assert [row.later for row in rows] == [False] * n_paper + [True] * (len(rows) - n_paper)
    own = rows[n_paper - 1]
    assert own.system == "DPMPN"
    assert tuple(getattr(own, metric) for metric in METRICS) == scores
    assert [row for row in rows if row.later]


@pytest.mark.parametrize("dataset", ROWS_OF_THE_PAPER)
def test_scores_are_percentages_and_no_row_stands_twice(dataset):
    rows = published_rows(dataset)
    for row in rows:
        assert row.printed
        for metric, text in row.printed.items():
            assert metric in METRICS
            assert re.fullmatch(r"\d\d(\.\d)?( \(\.\d\))?", text)
            assert getattr(row, metric) == float(text.split()[0])
    assert len({(row.system, row.source) for row in rows}) == len(rows)


def test_a_score_that_was_not_printed_is_a_dash():
    transe = published_rows("WN18RR")[0]
    assert (transe.system, transe.hits_at_1, transe.shown("hits_at_1")) == ("TransE", None, "-")
    assert transe.shown("mrr") == "22.6"


def test_a_system_quoted_from_two_sources_has_two_rows():
    found = [row for row in published_rows("FB15K-237") if row.system == "ConvE"]
    assert [row.shown("mrr") for row in found] == ["32.5", "30.8 (.2)"]
    assert len({row.source for row in found}) == 2


def test_every_source_is_used():
    used = {row.source for dataset in ROWS_OF_THE_PAPER for row in published_rows(dataset)}
    assert used == set(source_names().values())


def test_an_unknown_dataset_has_no_rows():
    assert published_rows("YAGO3-10-quarter") == published_rows("countries") == []


def test_maps_are_there_for_all_tasks_that_were_reported():
    maps = published_map()
    assert list(maps) == ["DPMPN", "M-Walk", "MINERVA", "DeepPath", "TransE", "TransR"]
    assert tuple(maps["DPMPN"]) == TASKS
    assert all(tuple(found) == TASKS[:10] for system, found in maps.items() if system != "DPMPN")
    assert maps["M-Walk"]["organizationhiredperson"] == "88.8 (0.6)"
