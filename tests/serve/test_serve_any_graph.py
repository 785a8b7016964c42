"""A file of facts served without training: what the API and the page say of it, and of answers that are guesses."""

import re
from pathlib import Path

import pytest
from pages import Open, served

from dpmpn.reasoner.reasoner import Reasoner
from dpmpn.serve import bodies, replies
from dpmpn.serve.status import model_info

FACTS = [
    *((f"child{i}", "mother", f"mother{i}") for i in range(8)),
    *((f"mother{i}", "husband", f"father{i}") for i in range(8)),
    *((f"child{i}", "father", f"father{i}") for i in range(6)),
    ("child0", "pet", "dog0"),
]


@pytest.fixture(scope="module")
def asked() -> Reasoner:
    return Reasoner.pretrained(threads=1).on(FACTS)


def test_what_is_served_was_not_trained_here(asked: Reasoner) -> None:
    info = model_info(asked, None)
    assert bodies.ModelInfo(**info, limits={}).versions.trained_with == {} and info["metrics"] == {}
    assert info["dataset"]["train"] == len(FACTS) and info["examples"]


@pytest.mark.parametrize(("relation", "n_notes"), [("father", 0), ("pet", 1)])
def test_answers_come_with_what_can_be_expected(asked: Reasoner, relation: str, n_notes: int) -> None:
    (result,) = asked.ask([asked.question_ids("child7", relation)])
    every, fitting = (
        bodies.Answered(**replies.answers(result, 3, new=False, any_role=any_role))
        for any_role in (True, False)
    )
    assert len(every.notes) == n_notes
    assert fitting.notes[:n_notes] == every.notes
    assert all("not shown" in note for note in fitting.notes[n_notes:])


def test_the_page(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "facts.csv").write_text("".join(",".join(fact) + "\n" for fact in FACTS))
    with served("any-graph", "--on", tmp_path / "facts.csv") as url:
        page = opened("?head=child7&relation=pet", url=url)
        page.sees("#answers", "Note: 'pet' has 1 fact in this graph")
        page.sees("#answers", "No answer fits.")
        page = opened("?head=child0&relation=pet", url=url)
        page.sees("#answers", "Note: 'pet' has 1 fact in this graph")
        page.sees("#explanation-title", "Why dog0?")
        page = opened("?head=child7&relation=father", url=url)
        page.sees(".answers button")
        notes = re.findall("Note: .*", page.locator("#answers").inner_text())
        assert len(notes) == 1 and notes[0].startswith("Note: not shown, because no similar entity is ")
