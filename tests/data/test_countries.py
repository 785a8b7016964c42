"""The bundled Countries graph is well formed, true in known cases, and its held-out questions are fair."""

from collections import defaultdict
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "src" / "dpmpn" / "data" / "countries"
SPLITS = ("train", "valid", "test")
AREA_RELATIONS = {"in_region", "in_subregion"}
KINDS = {
    "also_speaks": ("country", "language"),
    "has_capital": ("country", "city"),
    "in_language_family": ("language", "family"),
    "in_region": ("country", "area"),
    "in_subregion": ("country", "area"),
    "member_of": ("country", "organisation"),
    "neighbour_of": ("country", "country"),
    "official_language": ("country", "language"),
    "part_of": ("area", "area"),
    "subfamily_of": ("family", "family"),
    "uses_currency": ("country", "currency"),
    "week_starts_on": ("country", "weekday"),
    "written_in": ("language", "script"),
}

Triple = tuple[str, ...]


def read(split: str) -> list[Triple]:
    lines = (FOLDER / f"{split}.txt").read_bytes().decode("utf-8").split("\n")
    assert lines.pop() == "", "the last line must end with a line feed"
    return [tuple(line.split("\t")) for line in lines]


GRAPH = {split: read(split) for split in SPLITS}
TRAIN = set(GRAPH["train"])
HELD_OUT = [*GRAPH["valid"], *GRAPH["test"]]
FACTS = TRAIN | set(HELD_OUT)


@pytest.mark.parametrize("split", SPLITS)
def test_every_line_is_a_clean_triple(split: str) -> None:
    for triple in GRAPH[split]:
        assert len(triple) == 3
        assert triple[1] in KINDS
        assert all(field and field == field.strip() and "\r" not in field for field in triple)


def test_no_fact_stands_twice() -> None:
    assert len(FACTS) == sum(map(len, GRAPH.values()))


def test_sizes() -> None:
    assert len(GRAPH["train"]) > 2500
    assert 150 <= len(GRAPH["valid"]) <= 250
    assert 200 <= len(GRAPH["test"]) <= 350


def test_a_name_stands_for_one_kind_of_thing() -> None:
    kinds: dict[str, set[str]] = defaultdict(set)
    for head, relation, tail in FACTS:
        kinds[head].add(KINDS[relation][0])
        kinds[tail].add(KINDS[relation][1])
    assert {name: found for name, found in kinds.items() if len(found) > 1} == {}


def test_names_differ_by_more_than_case() -> None:
    names = {name for head, _, tail in FACTS for name in (head, tail)}
    assert len({name.casefold() for name in names}) == len(names)


def test_every_country_has_one_region_and_one_subregion_within_it() -> None:
    region = {head: tail for head, relation, tail in FACTS if relation == "in_region"}
    subregion = {head: tail for head, relation, tail in FACTS if relation == "in_subregion"}
    areas = [fact for fact in FACTS if fact[1] in AREA_RELATIONS]
    countries = {
        name
        for fact in FACTS
        for name, kind in zip(fact[::2], KINDS[fact[1]], strict=True)
        if kind == "country"
    }
    assert region.keys() == subregion.keys() == countries
    assert len(areas) == 2 * len(countries)
    assert all((subregion[country], "part_of", region[country]) in TRAIN for country in countries)


def test_borders_are_mirrored_within_their_split() -> None:
    for facts in GRAPH.values():
        borders = {fact for fact in facts if fact[1] == "neighbour_of"}
        assert borders == {(tail, relation, head) for head, relation, tail in borders}
        assert all(head != tail for head, _, tail in borders)


def test_held_out_entities_occur_in_train() -> None:
    known = {name for head, _, tail in TRAIN for name in (head, tail)}
    assert {name for head, _, tail in HELD_OUT for name in (head, tail)} <= known
    assert {relation for _, relation, _ in HELD_OUT} <= {relation for _, relation, _ in TRAIN}


def test_countries_asked_for_their_areas_have_none_in_train() -> None:
    asked = {split: {h for h, r, _ in GRAPH[split] if r in AREA_RELATIONS} for split in SPLITS}
    assert asked["valid"] and asked["test"]
    assert not asked["train"] & (asked["valid"] | asked["test"])
    assert not asked["valid"] & asked["test"]


def test_areas_asked_for_can_be_found_through_a_neighbour() -> None:
    for country, relation, area in HELD_OUT:
        if relation in AREA_RELATIONS:
            neighbours = {tail for head, kind, tail in TRAIN if (head, kind) == (country, "neighbour_of")}
            assert any((neighbour, relation, area) in TRAIN for neighbour in neighbours), country


def test_no_two_relations_say_the_same_or_the_reverse() -> None:
    relations: dict[tuple[str, str], set[str]] = defaultdict(set)
    for head, relation, tail in FACTS:
        relations[head, tail].add(relation)
    assert all(len(found) == 1 for found in relations.values())
    assert all(
        found == relations[pair[::-1]] == {"neighbour_of"}
        for pair, found in list(relations.items())
        if pair[::-1] in relations
    )


@pytest.mark.parametrize(
    "fact",
    [
        ("France", "neighbour_of", "Spain"),
        ("Spain", "neighbour_of", "France"),
        ("Botswana", "neighbour_of", "Zambia"),
        ("Japan", "has_capital", "Tokyo"),
        ("Australia", "has_capital", "Canberra"),
        ("Kazakhstan", "has_capital", "Astana"),
        ("Luxembourg", "has_capital", "Luxembourg (city)"),
        ("Brazil", "official_language", "Portuguese"),
        ("Switzerland", "official_language", "Italian"),
        ("United States", "also_speaks", "Spanish"),
        ("Croatia", "uses_currency", "Euro"),
        ("Senegal", "uses_currency", "West African CFA Franc"),
        ("Germany", "member_of", "European Union"),
        ("Kenya", "in_region", "Africa"),
        ("Peru", "in_subregion", "South America"),
        ("Western Europe", "part_of", "Europe"),
        ("Portuguese", "in_language_family", "Romance languages"),
        ("Serbian", "written_in", "Cyrillic script"),
    ],
)
def test_well_known_facts_hold(fact: Triple) -> None:
    assert fact in FACTS


@pytest.mark.parametrize(
    "fact",
    [
        ("France", "neighbour_of", "Portugal"),
        ("Cuba", "neighbour_of", "United States"),
        ("Australia", "has_capital", "Sydney"),
        ("United Kingdom", "member_of", "European Union"),
        ("Croatia", "uses_currency", "Croatian Kuna"),
    ],
)
def test_well_known_falsehoods_do_not(fact: Triple) -> None:
    assert fact not in FACTS
