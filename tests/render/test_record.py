"""Records are what their schema says: valid, finite, and their parts add up as its texts promise."""

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from small_reasoning import MEASURED, explained, reasoner

from dpmpn.errors import DataError
from dpmpn.render.export import as_record, json_text, schema

VALIDATOR = jsonschema.Draft202012Validator(schema())
EXACT = 1e-4  # six digits of each of many numbers
CASES = {
    "by hand": lambda: explained(),
    "with labels": lambda: explained(labels={"Serbia": "Republic of Serbia", "in": "lies in"}),
    "at the head": lambda: explained("Serbia", moves=[[("Serbia", "=", "Serbia", 1.0)]]),
    "with a prior": lambda: explained(prior=0.03),
    "measured": lambda: explained(**MEASURED),
    "first": lambda: reasoner().explain("child0", "father"),
    "backwards": lambda: reasoner().explain("father1", "father", inverse=True),
    "not first": lambda: reasoner().explain("child7", "father", "mother7"),
    "changed": lambda: (
        reasoner().with_facts([("new", "mother", "mother0")]).explain("new", "father", "father0")
    ),
}


@pytest.fixture(scope="module", params=CASES, name="record")
def record_of(request: pytest.FixtureRequest) -> dict[str, Any]:
    return as_record(CASES[request.param]())


def test_the_schema_is_one_and_describes_every_field() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    for place, field in _fields(schema(), "explanation"):
        definition = schema()["$defs"].get(field.get("$ref", "").rpartition("/")[2], {})
        assert "description" in field or "description" in definition, place
    for place, part in _objects(schema(), "explanation"):
        if "properties" in part:
            assert part["additionalProperties"] is False, place
            asked_for = {"why_not", "with_fact", "decisive", "necessary", "sufficient"}
            optional = asked_for if place == "explanation" else {"provenance"}
            assert set(part["required"]) == set(part["properties"]) - optional, place


def _objects(part: Any, place: str) -> list[tuple[str, dict[str, Any]]]:
    if isinstance(part, list):
        return [found for each in part for found in _objects(each, place)]
    if not isinstance(part, dict):
        return []
    return [
        (place, part),
        *(found for key, each in part.items() for found in _objects(each, f"{place}/{key}")),
    ]


def _fields(part: Any, place: str) -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"{where}/{name}", field)
        for where, each in _objects(part, place)
        if isinstance(each.get("properties"), dict) and each.get("type") is not None
        for name, field in each["properties"].items()
    ]


def test_records_are_valid_and_the_same_after_json(record: dict[str, Any]) -> None:
    VALIDATOR.validate(record)
    assert json.loads(json_text(record)) == record
    json.dumps(record, allow_nan=False)


def test_a_field_more_is_refused() -> None:
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate({**as_record(explained()), "more": 1})


def test_the_example_of_the_documentation_is_valid() -> None:
    page = Path(__file__).parents[2] / "docs" / "explanation-format.md"
    (example,) = re.findall(r"```json\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    VALIDATOR.validate(json.loads(example))


def test_what_was_measured_of_the_answer_is_in_the_record_and_null_where_nothing_was() -> None:
    answer = as_record(explained(**MEASURED))["answer"]
    assert answer["score"] == pytest.approx(0.8) and answer.items() >= MEASURED.items()
    assert as_record(explained())["answer"].items() >= dict.fromkeys(MEASURED).items()


def test_why_not_is_part_of_the_record_where_it_was_asked() -> None:
    asked = reasoner().predict("child7", "father")
    reasons = [asked.why_not(name) for name in ("father7", "mother7", "mother1", "child7", asked[0].answer)]
    record = as_record(asked.explain(), reasons)
    VALIDATOR.validate(record)
    assert [each["candidate"] for each in record["why_not"]] == [reason.candidate for reason in reasons]
    assert "why_not" not in as_record(asked.explain())


def test_paths_add_up_and_lead_from_head_to_answer(record: dict[str, Any]) -> None:
    assert sum(path["share"] for path in record["paths"]) == pytest.approx(record["kept_share"], abs=EXACT)
    shares = [path["share"] for path in record["paths"]]
    assert shares == sorted(shares, reverse=True)
    for path in record["paths"]:
        at = record["question"]["head"]
        for fact in path["facts"]:
            start, end = ("tail", "head") if fact["inverse"] else ("head", "tail")
            assert fact[start] == at
            at = fact[end]
        assert at == record["answer"]["answer"]


def test_key_facts_have_the_shares_of_their_paths(record: dict[str, Any]) -> None:
    shares: dict[tuple[str, ...], float] = defaultdict(float)
    for path in record["paths"]:
        # A path from the head back to it may take a fact both ways: that is one fact.
        for fact in {(fact["head"], fact["relation"], fact["tail"]) for fact in path["facts"]}:
            shares[fact] += path["share"]
    found = {(key["head"], key["relation"], key["tail"]): key["share"] for key in record["key_facts"]}
    assert found == pytest.approx(shares, abs=EXACT)
    assert list(found.values()) == sorted(found.values(), reverse=True)


def test_shares_of_the_full_subgraph_add_up(record: dict[str, Any]) -> None:
    steps, nodes, edges = record["steps"], record["full"]["nodes"], record["full"]["edges"]
    by_name = {node["name"]: node for node in nodes}
    assert len(by_name) == len(nodes)
    for t in range(steps + 1):
        assert sum(node["share"][t] for node in nodes) == pytest.approx(1.0, abs=EXACT)
    for t in range(steps):
        leaving: dict[str, float] = defaultdict(float)
        for edge in edges:
            leaving[edge["source"]] += edge["share"][t]
        assert all(share <= by_name[name]["share"][t] + EXACT for name, share in leaving.items())
    assert by_name[record["question"]["head"]]["share"][0] == pytest.approx(1.0)
    assert by_name[record["question"]["head"]]["attention"][0] == 1.0
    assert by_name[record["answer"]["answer"]]["share"][-1] == pytest.approx(1.0)
    end = by_name[record["answer"]["answer"]]["attention"][-1]
    assert end == pytest.approx(record["answer"]["score"], rel=1e-4)


def test_lists_have_a_number_for_each_time_or_step(record: dict[str, Any]) -> None:
    steps = record["steps"]
    for which in ("full", "pruned"):
        for node in record[which]["nodes"]:
            assert (len(node["attention"]), len(node["share"]), len(node["waited"])) == (
                steps + 1,
                steps + 1,
                steps,
            )
        for edge in record[which]["edges"]:
            assert len(edge["flow"]) == len(edge["share"]) == steps


def test_the_pruned_subgraph_is_part_of_the_full_one(record: dict[str, Any]) -> None:
    def parts(which: str) -> tuple[set[str], set[tuple[Any, ...]]]:
        edges = {(e["source"], e["relation"], e["inverse"], e["target"]) for e in record[which]["edges"]}
        return {node["name"] for node in record[which]["nodes"]}, edges

    (nodes, edges), (all_nodes, all_edges) = parts("pruned"), parts("full")
    assert nodes <= all_nodes
    assert edges <= all_edges


def test_labels_stand_beside_identifiers() -> None:
    record = as_record(explained(labels={"Serbia": "Republic of Serbia", "in": "lies in"}))
    assert record["question"]["head_label"] == "Republic of Serbia"
    fact = next(fact for fact in record["key_facts"] if fact["relation"] == "in")
    assert (fact["relation_label"], fact["tail"], fact["tail_label"]) == ("lies in", "Europe", "Europe")


def test_numbers_have_six_digits() -> None:
    record = as_record(explained())
    assert sorted(path["share"] for path in record["paths"]) == [0.25, 0.321429, 0.428571]


def test_a_number_that_is_not_finite_is_refused() -> None:
    with pytest.raises(DataError, match="not a finite number"):
        as_record(explained(score=float("nan")))


def test_the_text_of_a_record_has_a_line_for_each_edge() -> None:
    record = as_record(explained())
    lines = json_text(record).splitlines()
    assert sum('"source": ' in line for line in lines) == len(record["full"]["edges"]) + len(
        record["pruned"]["edges"]
    )
