"""Names in requests: what is found by its label, and what is wrong with the others."""

import asyncio
from collections.abc import Iterator

import polars as pl
import pytest

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.serve.asking import Ids
from dpmpn.serve.bodies import AskedQuestion
from dpmpn.serve.counts import Counts
from dpmpn.serve.desk import Desk
from dpmpn.serve.naming import Naming
from dpmpn.serve.problems import Problem

LABELS = {"id": ["q1", "q2", "q3", "r1"], "name": ["Bank", "bank", "River", "lies at"]}


@pytest.fixture
def desk() -> Iterator[Desk]:
    desk = Desk("lookups", 1, 5, Counts())
    yield desk
    desk.close()


def graph(add_inverses: bool = True) -> KnowledgeGraph:
    facts = [("q1", "r1", "q3"), ("q2", "r1", "q3")]
    frame = pl.DataFrame({**LABELS, "description": ["a slope", "a house", None, None], "type": [None] * 4})
    return KnowledgeGraph.from_tuples(facts, add_inverses).labelled(
        frame.with_columns(pl.col("type").cast(pl.String))
    )


def found(naming: Naming, head: str, relation: str, inverse: bool = False) -> Ids:
    return asyncio.run(naming.question(AskedQuestion(head=head, relation=relation, inverse=inverse)))


def test_labels_in_any_case_and_the_inverse(desk: Desk) -> None:
    naming = Naming(graph(), desk)
    assert found(naming, "river", "LIES AT") == found(naming, "q3", "r1") == (2, 0, False)
    assert found(naming, "q3", "r1", inverse=True) == (2, 1, True)
    assert found(naming, "Bank", "r1")[0] == 0  # written exactly so, only one has it


@pytest.mark.parametrize(
    ("head", "relation", "code", "near"),
    [
        ("BANK", "r1", "ambiguous_name", ["q1", "q2"]),
        ("rivver", "r1", "unknown_entity", ["River"]),
        ("q1", "lies on", "unknown_relation", ["lies at"]),
    ],
)
def test_what_is_wrong_with_a_name(desk: Desk, head: str, relation: str, code: str, near: list[str]) -> None:
    with pytest.raises(Problem) as refused:
        found(Naming(graph(), desk), head, relation)
    assert refused.value.code == code and refused.value.near == near


def test_a_relation_without_an_inverse(desk: Desk) -> None:
    with pytest.raises(Problem) as refused:
        found(Naming(graph(add_inverses=False), desk), "q3", "r1", inverse=True)
    assert refused.value.code == "no_inverse" and refused.value.status == 400
