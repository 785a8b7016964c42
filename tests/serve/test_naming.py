"""Names in requests: what is found by its label, and what is wrong with the others."""

import asyncio
from collections.abc import Iterator

import polars as pl
import pytest

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.data.vocabulary import Vocabulary
from dpmpn.serve.bodies import AskedQuestion
from dpmpn.serve.metrics import Metrics
from dpmpn.serve.names import Naming
from dpmpn.serve.problems import Problem
from dpmpn.serve.queues import Ids, WorkQueue

LABELS = {"id": ["q1", "q2", "q3", "r1"], "name": ["Bank", "bank", "River", "lies at"]}


@pytest.fixture
def queue() -> Iterator[WorkQueue]:
    queue = WorkQueue("lookups", 1, 5, Metrics())
    yield queue
    queue.close()


def graph(add_inverses: bool = True) -> KnowledgeGraph:
    facts = [("q1", "r1", "q3"), ("q2", "r1", "q3")]
    frame = pl.DataFrame({**LABELS, "description": ["a slope", "a house", None, None], "type": [None] * 4})
    return KnowledgeGraph.from_tuples(facts, add_inverses).labelled(
        frame.with_columns(pl.col("type").cast(pl.String))
    )


def found(naming: Naming, head: str, relation: str, inverse: bool = False) -> Ids:
    return asyncio.run(naming.question(AskedQuestion(head=head, relation=relation, inverse=inverse)))


def test_labels_in_any_case_and_the_inverse(queue: WorkQueue) -> None:
    naming = Naming(graph(), queue)
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
def test_what_is_wrong_with_a_name(
    queue: WorkQueue, head: str, relation: str, code: str, near: list[str]
) -> None:
    with pytest.raises(Problem) as refused:
        found(Naming(graph(), queue), head, relation)
    assert refused.value.code == code and refused.value.near == near


def test_a_relation_without_an_inverse(queue: WorkQueue) -> None:
    with pytest.raises(Problem) as refused:
        found(Naming(graph(add_inverses=False), queue), "q3", "r1", inverse=True)
    assert refused.value.code == "no_inverse" and refused.value.status == 400


def test_many_unknown_names_are_searched_for_only_a_few_times(
    queue: WorkQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[str] = []
    plain = Vocabulary.near

    def near(names: Vocabulary, name: str, among: int | None = None) -> list[str]:
        searched.append(name)
        return plain(names, name, among)

    monkeypatch.setattr(Vocabulary, "near", near)
    heads = ["rivver", "q1", "rivver", *(f"riverr{i}" for i in range(20)), "BANK"]
    asked = [AskedQuestion(head=head, relation="r1") for head in heads]
    asked += [
        AskedQuestion(head="q1", relation="lies on"),
        AskedQuestion(head="q3", relation="r1", inverse=True),
    ]
    found = asyncio.run(Naming(graph(), queue).questions(asked))
    assert searched == ["rivver", "riverr0", "riverr1"]
    assert found[1] == (0, 0, False) and found[-1] == (2, 1, True)
    told = [(each.code, each.near) for each in found if isinstance(each, Problem)]
    assert told[0] == told[1] == ("unknown_entity", ["River"]) and told[4] == ("unknown_entity", [])
    assert told[-2:] == [("ambiguous_name", []), ("unknown_relation", [])]


def test_near_names_of_a_very_long_one_are_not_searched_for(
    queue: WorkQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Vocabulary, "near", lambda *_: pytest.fail("searched"))
    with pytest.raises(Problem) as refused:
        found(Naming(graph(), queue), "x" * 4000, "r1")
    assert refused.value.code == "unknown_entity" and "/api/v1/entities" in str(refused.value)
