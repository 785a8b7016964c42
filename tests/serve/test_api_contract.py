"""The API keeps its own description: requests made up from it get no 5xx, and only answers it describes."""

import json

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from serving import Server

NAMES = {
    "head": ["child7", "mother1", "a/b c", "FATHER2"],
    "relation": ["father", "mother", "husband"],
    "answer": ["father7", "child0", "<i>Zoë</i>"],
    "candidate": ["father7", "child7", "<i>Zoë</i>"],
    "name": ["child7", "father1"],
}


MODES = [GenerationMode.POSITIVE, GenerationMode.NEGATIVE]


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
def test_requests_made_up_from_the_description(server: Server, mode: GenerationMode) -> None:
    described = schemathesis.openapi.from_url(f"{server.url}/api/openapi.json")
    operations = [found.ok() for found in described.get_all_operations()]
    assert len(operations) >= 17
    for operation in operations:
        if mode is GenerationMode.POSITIVE or _has_parameters(operation):
            _fuzz(operation, mode)
    answered = server.metric("dpmpn_requests_total", route="/api/v1/explain", status="200")
    assert answered > 3  # not all were refused


def _fuzz(operation: schemathesis.APIOperation, mode: GenerationMode) -> None:
    @given(operation.as_strategy(generation_mode=mode))
    @settings(max_examples=20, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    def fuzz(case: schemathesis.Case) -> None:
        for part in _objects(case):
            _name(part)
        case.call_and_validate()

    fuzz()


def _has_parameters(operation: schemathesis.APIOperation) -> bool:
    return bool(len(operation.body) or len(operation.query))


def _objects(case: schemathesis.Case) -> list[dict]:
    """Where names stand in a request."""
    body = case.body if isinstance(case.body, dict) else {}
    questions = body.get("questions", [])
    many = [each for each in questions if isinstance(each, dict)] if isinstance(questions, list) else []
    return [body, *many, case.query if isinstance(case.query, dict) else {}]


def _name(given: dict) -> None:
    """Put names that exist in the place of most that are made up: else all would end at the first look-up."""
    for key, names in NAMES.items():
        value = given.get(key)
        if isinstance(value, str) and 1 <= len(value) <= 4096:
            number = sum(json.dumps(value).encode())
            if number % 8:
                given[key] = names[number % len(names)]
