"""Figures that others published: read, in order, and each with its source."""

import re

import pytest

from dpmpn.lab.figures import published_map, published_rows, source_names
from dpmpn.lab.reproduce.nell995 import TASKS

COLUMNS = ("hits_at_1", "hits_at_3", "hits_at_10", "mrr")
# The paper's tables, line by line, read again from its source: a system and who is quoted, then H@1, H@3, H@10 and MRR
# on each dataset.
TABLES = {
    ("FB15K-237", "WN18RR"): """
TransE Nguyen | - | - | 46.5 | 29.4 | - | - | 50.1 | 22.6
DistMult Dettmers | 15.5 | 26.3 | 41.9 | 24.1 | 39 | 44 | 49 | 43
DistMult Shen | 20.6 (.4) | 31.8 (.2) | - | 29.0 (.2) | 38.4 (.4) | 42.4 (.3) | - | 41.3 (.3)
ComplEx Dettmers | 15.8 | 27.5 | 42.8 | 24.7 | 41 | 46 | 51 | 44
ComplEx Shen | 20.8 (.2) | 32.6 (.5) | - | 29.6 (.2) | 38.5 (.3) | 43.9 (.3) | - | 42.2 (.2)
ConvE Dettmers | 23.7 | 35.6 | 50.1 | 32.5 | 40 | 44 | 52 | 43
ConvE Shen | 23.3 (.4) | 33.8 (.3) | - | 30.8 (.2) | 39.6 (.3) | 44.7 (.2) | - | 43.3 (.2)
RotatE Sun | 24.1 | 37.5 | 53.3 | 33.8 | 42.8 | 49.2 | 57.1 | 47.6
ComplEx-N3 Lacroix | - | - | 56 | 37 | - | - | 57 | 48
NeuralLP Shen | 18.2 (.6) | 27.2 (.3) | - | 24.9 (.2) | 37.2 (.1) | 43.4 (.1) | - | 43.5 (.1)
MINERVA Shen | 14.1 (.2) | 23.2 (.4) | - | 20.5 (.3) | 35.1 (.1) | 44.5 (.4) | - | 40.9 (.1)
MINERVA Das | - | - | 45.6 | - | 41.3 | 45.6 | 51.3 | -
M-Walk Shen | 16.5 (.3) | 24.3 (.2) | - | 23.2 (.2) | 41.4 (.1) | 44.5 (.2) | - | 43.7 (.1)
DPMPN Xu | 28.6 (.1) | 40.3 (.1) | 53.0 (.3) | 36.9 (.1) | 44.4 (.4) | 49.7 (.8) | 55.8 (.5) | 48.2 (.5)
""",
    ("FB15K", "WN18"): """
TransE Nickel | 29.7 | 57.8 | 74.9 | 46.3 | 11.3 | 88.8 | 94.3 | 49.5
HolE Nickel | 40.2 | 61.3 | 73.9 | 52.4 | 93.0 | 94.5 | 94.9 | 93.8
DistMult Dettmers | 54.6 | 73.3 | 82.4 | 65.4 | 72.8 | 91.4 | 93.6 | 82.2
ComplEx Dettmers | 59.9 | 75.9 | 84.0 | 69.2 | 93.6 | 93.6 | 94.7 | 94.1
ConvE Dettmers | 55.8 | 72.3 | 83.1 | 65.7 | 93.5 | 94.6 | 95.6 | 94.3
RotatE Sun | 74.6 | 83.0 | 88.4 | 79.7 | 94.4 | 95.2 | 95.9 | 94.9
ComplEx-N3 Lacroix | - | - | 91 | 86 | - | - | 96 | 95
NeuralLP Yang | - | - | 83.7 | 76 | - | - | 94.5 | 94
DPMPN Xu | 72.6 (.4) | 78.4 (.4) | 83.4 (.5) | 76.4 (.4) | 91.6 (.8) | 93.6 (.4) | 94.9 (.4) | 92.8 (.6)
""",
    ("YAGO3-10",): """
DistMult Dettmers | 24 | 38 | 54 | 34
ComplEx Dettmers | 26 | 40 | 55 | 36
ConvE Dettmers | 35 | 49 | 62 | 44
ComplEx-N3 Lacroix | - | - | 71 | 58
DPMPN Xu | 48.4 | 59.5 | 67.9 | 55.3
""",
}
DATASETS = [dataset for datasets in TABLES for dataset in datasets]
NOT_IN_THE_PAPER = ["NELL-995", "Family"]
SYSTEMS = ("DPMPN", "M-Walk", "MINERVA", "DeepPath", "TransE", "TransR")
MAPS = """
AthletePlaysForTeam | 83.9 (0.5) | 84.7 (1.3) | 82.7 (0.8) | 72.1 (1.2) | 62.7 | 67.3
AthletePlaysInLeague | 97.5 (0.1) | 97.8 (0.2) | 95.2 (0.8) | 92.7 (5.3) | 77.3 | 91.2
AthleteHomeStadium | 93.6 (0.1) | 91.9 (0.1) | 92.8 (0.1) | 84.6 (0.8) | 71.8 | 72.2
AthletePlaysSport | 98.6 (0.0) | 98.3 (0.1) | 98.6 (0.1) | 91.7 (4.1) | 87.6 | 96.3
TeamPlayssport | 90.4 (0.4) | 88.4 (1.8) | 87.5 (0.5) | 69.6 (6.7) | 76.1 | 81.4
OrgHeadQuarteredInCity | 94.7 (0.3) | 95.0 (0.7) | 94.5 (0.3) | 79.0 (0.0) | 62.0 | 65.7
WorksFor | 86.8 (0.0) | 84.2 (0.6) | 82.7 (0.5) | 69.9 (0.3) | 67.7 | 69.2
PersonBornInLocation | 84.1 (0.5) | 81.2 (0.0) | 78.2 (0.0) | 75.5 (0.5) | 71.2 | 81.2
PersonLeadsOrg | 88.4 (0.1) | 88.8 (0.5) | 83.0 (2.6) | 79.0 (1.0) | 75.1 | 77.2
OrgHiredPerson | 84.7 (0.8) | 88.8 (0.6) | 87.0 (0.3) | 73.8 (1.9) | 71.9 | 73.7
AgentBelongsToOrg | 89.3 (1.2) | - | - | - | - | -
TeamPlaysInLeague | 97.2 (0.3) | - | - | - | - | -
"""


def lines(table: str) -> list[list[str]]:
    """The cells of each line."""
    return [[cell.strip() for cell in line.split("|")] for line in table.strip().splitlines()]


@pytest.mark.parametrize("datasets", TABLES)
def test_every_row_is_as_the_paper_prints_it(datasets):
    for at, dataset in enumerate(datasets):
        cells = slice(1 + at * len(COLUMNS), 1 + (at + 1) * len(COLUMNS))
        paper = [row for row in published_rows(dataset) if not row.later]
        assert [
            [f"{row.system} {row.source.split()[0]}", *(row.shown(column) for column in COLUMNS)]
            for row in paper
        ] == [[line[0], *line[cells]] for line in lines(TABLES[datasets])]


@pytest.mark.parametrize("dataset", DATASETS)
def test_later_systems_follow_the_papers_own_row(dataset):
    later = [row.later for row in published_rows(dataset)]
    assert later == sorted(later) and any(later)


@pytest.mark.parametrize("dataset", NOT_IN_THE_PAPER)
def test_datasets_of_later_systems_have_no_row_of_the_paper(dataset):
    rows = published_rows(dataset)
    assert rows and all(row.later for row in rows)


@pytest.mark.parametrize("dataset", [*DATASETS, *NOT_IN_THE_PAPER])
def test_scores_are_percentages_and_no_row_stands_twice(dataset):
    rows = published_rows(dataset)
    for row in rows:
        assert row.printed
        for metric, text in row.printed.items():
            assert metric in COLUMNS
            assert re.fullmatch(r"\d\d(\.\d)?( \(\.\d\))?", text)
            assert row.scores[metric] == float(text.split()[0])
    assert len({(row.system, row.source) for row in rows}) == len(rows)


def test_a_score_that_was_not_printed_is_a_dash():
    transe = published_rows("WN18RR")[0]
    assert (transe.system, transe.scores["hits_at_1"], transe.shown("hits_at_1")) == ("TransE", None, "-")
    assert transe.shown("mrr") == "22.6"


def test_a_system_quoted_from_two_sources_has_two_rows():
    found = [row for row in published_rows("FB15K-237") if row.system == "ConvE"]
    assert [row.shown("mrr") for row in found] == ["32.5", "30.8 (.2)"]
    assert len({row.source for row in found}) == 2


def test_every_source_is_used():
    used = {row.source for dataset in DATASETS for row in published_rows(dataset)}
    assert used == set(source_names().values())


def test_an_unknown_dataset_has_no_rows():
    assert published_rows("YAGO3-10-quarter") == published_rows("countries") == []


def test_every_map_is_as_the_paper_prints_it():
    maps = published_map()
    assert tuple(maps) == SYSTEMS
    assert tuple(maps["DPMPN"]) == TASKS
    for task, (name, *cells) in zip(TASKS, lines(MAPS), strict=True):
        assert re.sub("^org|org$", "organization", name.lower()) == task
        assert [maps[system].get(task, "-") for system in SYSTEMS] == cells
