"""One probability: the same wherever a fact is shown, kept with the run, and unknown where nothing was measured."""

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

from dpmpn.ask.measure import FILE
from dpmpn.complete import complete
from dpmpn.reasoner.reasoner import Reasoner
from dpmpn.train.run_folder import run_path


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo") / "run"
    shutil.copytree(run_path("demo"), folder)
    return folder


def test_every_face_says_the_same(demo: Path, tmp_path: Path) -> None:
    reasoner = Reasoner.load(demo, threads=1)
    listed = complete(reasoner, ["in_subregion"], top=40, held_out=True)
    rows = listed.filter(pl.col("held_out").is_not_null()).head(5).to_dicts()
    assert rows
    for row in rows:
        answers = reasoner.predict(row["head"], "in_subregion", top=30)
        answer = next(a for a in answers if a.answer == row["tail"])
        explained = answers.explain(row["tail"])
        frame = reasoner.predict(pl.DataFrame({"head": [row["head"]], "relation": ["in_subregion"]}), top=30)
        framed = frame.filter(pl.col("answer") == row["tail"]).row(0, named=True)
        for name in ("probability", "probability_low", "probability_high", "probability_if_missing"):
            assert row[name] == pytest.approx(getattr(answer, name), rel=1e-4)
            assert explained.to_dict()["answer"][name] == pytest.approx(row[name], rel=1e-4)
            assert framed[name] == pytest.approx(row[name], rel=1e-4)
        assert row["cases"] == answer.cases == framed["cases"] > 0
        assert f"{answer.cases} held-out cases" in explained.text()


def test_known_answers_have_none(demo: Path) -> None:
    known = [a for a in Reasoner.load(demo, threads=1).predict("France", "neighbour_of", top=30) if a.known]
    assert known and all(a.probability is None and a.score > 0 for a in known)


def test_what_was_measured_is_kept_with_the_run(demo: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(demo, run)
    first = Reasoner.load(run).calibration
    assert first is not None
    (run / FILE).unlink()
    reasoner = Reasoner.load(run, threads=1)
    assert reasoner.calibration is None
    assert reasoner.predict("Serbia", "in_subregion")[0].probability is None
    assert reasoner.calibrate(sample=60) is not None
    assert (run / FILE).exists()
    assert reasoner.predict("Serbia", "in_subregion")[0].probability is not None


@pytest.mark.parametrize("damage", ["", "[]", "{}", '{"calibration": 3}', "\x00\xff", None])
def test_a_broken_file_is_not_believed(demo: Path, tmp_path: Path, damage: str | None) -> None:
    run = tmp_path / "run"
    shutil.copytree(demo, run)
    text = (run / FILE).read_text()
    changed = text.replace('"asked": 8', '"asked": 9') if damage is None else damage
    assert changed != text
    (run / FILE).write_text(changed)
    assert Reasoner.load(run).calibration is None


def test_it_holds_for_one_way_of_asking(demo: Path) -> None:
    assert Reasoner.load(demo).calibration is not None
    assert Reasoner.load(demo, ask_attending_from_per_step=3).calibration is None


def test_facts_more_or_fewer_keep_it_and_another_graph_does_not(demo: Path) -> None:
    reasoner = Reasoner.load(demo, threads=1)
    more = reasoner.with_facts(add=[("Atlantis", "neighbour_of", "Portugal")])
    assert more.predict("Atlantis", "in_subregion")[0].probability is not None
    other = reasoner.on([("x", "neighbour_of", "y"), ("y", "in_subregion", "z")])
    assert other.calibration is None


def test_a_folder_that_cannot_be_written_costs_nothing(demo: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(demo, run)
    (run / FILE).unlink()
    (run / FILE).mkdir()  # nothing can be written there
    reasoner = Reasoner.load(run, threads=1)
    assert reasoner.calibrate(sample=60) is not None


def test_the_kept_file_is_plain_json(demo: Path) -> None:
    values = json.loads((demo / FILE).read_text())
    assert values["format"] == "dpmpn-calibration"
    assert set(values["calibration"]) >= {"right", "if_missing", "cases", "more"}
