"""The load of the server is made of facts there are."""

from pathlib import Path

import pytest
from serve_load import questions_of

import dpmpn

FACTS = [("anna", "mother", "berta"), ("berta", "mother", "clara")]


@pytest.mark.parametrize("test", [[], [("anna", "mother", "clara")]])
def test_questions_are_of_test_facts_or_else_of_others(
    tmp_path: Path, test: list[tuple[str, str, str]]
) -> None:
    dataset = dpmpn.dataset_from_tuples(FACTS, test=test)
    dpmpn.Reasoner(model="paper", n_dims=4, n_dims_att=2, n_epochs=1, threads=1).fit(
        dataset, tmp_path / "run"
    )
    asked = questions_of(tmp_path / "run")
    facts = test or FACTS
    assert {each["head"] for each in asked} == {name for head, _, tail in facts for name in (head, tail)}
    assert len(asked) == 2 * len(facts)
