"""Explanations are saved as files of a folder: all that was asked for, whole, over earlier ones."""

import json
from pathlib import Path

import polars as pl
import pytest
from small_reasoning import explained, reasoner

from dpmpn.errors import ConfigError, RunError
from dpmpn.explain import save
from dpmpn.explain.save import FORMATS, save_explanation

CSV = ["paths.csv", "key_facts.csv", "nodes.csv", "edges.csv"]


def test_files_of_formats(tmp_path: Path) -> None:
    explanation = explained()
    paths = save_explanation(explanation, tmp_path / "new" / "why", ["text", "json", "csv", "dot", "text"])
    names = ["explanation.txt", "explanation.json", *CSV, "full.dot", "pruned.dot"]
    assert [path.name for path in paths] == names
    assert sorted(path.name for path in (tmp_path / "new" / "why").iterdir()) == sorted(names)
    assert paths[0].read_text("utf-8") == explanation.text() + "\n"
    assert json.loads(paths[1].read_text("utf-8")) == explanation.to_dict()
    assert pl.read_csv(paths[3])["share"].to_list()[0] == 0.75


def test_every_format_can_be_saved(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for format in FORMATS:
        paths = explained().save(tmp_path, [format])
        assert paths
        assert all(path.stat().st_size for path in paths)
    assert (tmp_path / "explanation.svg").read_text("utf-8").lstrip().startswith("<")
    assert (tmp_path / "explanation.png").read_bytes().startswith(b"\x89PNG")


def test_a_notebook_shows_text_and_picture() -> None:
    shown = explained(labels={"Kosovo": "<Kosovo>"})._repr_html_()
    assert "&lt;Kosovo&gt; borders Serbia" in shown
    assert "<Kosovo>" not in shown
    assert "<svg" in shown


def test_an_earlier_explanation_is_replaced(tmp_path: Path) -> None:
    save_explanation(explained(), tmp_path, ["text"])
    save_explanation(
        explained("Hungary", moves=[[("Serbia", "^borders", "Hungary", 1.0)]]), tmp_path, ["text"]
    )
    assert [path.name for path in tmp_path.iterdir()] == ["explanation.txt"]
    assert "Answer: Hungary" in (tmp_path / "explanation.txt").read_text("utf-8")


def test_why_not_is_in_the_text_and_the_record(tmp_path: Path) -> None:
    asked = reasoner().predict("child7", "father")
    reasons = [asked.why_not("mother7")]
    text, record = asked.explain().save(tmp_path, ["text", "json"], reasons)
    assert f"\n\nWhy not mother7?\n{reasons[0].text()}\n" in text.read_text("utf-8")
    assert json.loads(record.read_text("utf-8"))["why_not"][0]["candidate"] == "mother7"


def test_unknown_formats_are_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match="unknown format 'pdf'; choose among text, json, csv, svg, png, html"
    ):
        save_explanation(explained(), tmp_path / "why", ["text", "pdf"])
    with pytest.raises(ConfigError, match="no format"):
        save_explanation(explained(), tmp_path / "why", [])
    assert not (tmp_path / "why").exists()


def test_what_cannot_be_drawn_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> dict[str, bytes]:
        raise ConfigError("cannot be drawn")

    monkeypatch.setitem(save.FORMATS, "png", fail)
    with pytest.raises(ConfigError, match="cannot be drawn"):
        save_explanation(explained(), tmp_path / "why", ["text", "png"])
    assert not (tmp_path / "why").exists()


def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "why").write_text("mine")
    with pytest.raises(RunError, match="not a folder"):
        save_explanation(explained(), tmp_path / "why", ["text"])
    with pytest.raises(RunError, match="choose another"):
        save_explanation(explained(), tmp_path / "why" / "deeper", ["text"])
    assert (tmp_path / "why").read_text() == "mine"
