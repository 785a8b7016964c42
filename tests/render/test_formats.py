"""Explanations are written in every format: to files of a folder, all that was asked for, whole, over earlier ones."""

import json
import os
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from small_reasoning import explained, reasoner

from dpmpn.errors import ConfigError, RunError
from dpmpn.render.formats import FORMATS, Explanation

CSV = ["patterns.csv", "paths.csv", "key_facts.csv", "nodes.csv", "edges.csv"]


def test_files_of_formats(tmp_path: Path) -> None:
    explanation = explained()
    paths = explanation.save(tmp_path / "new" / "why", ["text", "json", "csv", "dot", "text"])
    names = ["explanation.txt", "explanation.json", *CSV, "full.dot", "pruned.dot"]
    assert [path.name for path in paths] == names
    assert sorted(path.name for path in (tmp_path / "new" / "why").iterdir()) == sorted(names)
    assert paths[0].read_text("utf-8") == explanation.text() + "\n"
    assert json.loads(paths[1].read_text("utf-8")) == explanation.to_dict()
    assert pl.read_csv(paths[2])["share"].to_list() == [1.0]
    assert pl.read_csv(paths[4])["share"].to_list()[0] == 0.75


def test_every_format_can_be_saved(tmp_path: Path) -> None:
    pytest.importorskip("resvg_py")
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
    explained().save(tmp_path, ["text"])
    explained("Hungary", moves=[[("Serbia", "^borders", "Hungary", 1.0)]]).save(tmp_path, ["text"])
    assert [path.name for path in tmp_path.iterdir()] == ["explanation.txt"]
    assert "Answer: Hungary" in (tmp_path / "explanation.txt").read_text("utf-8")


def other() -> Explanation:
    return explained("Hungary", moves=[[("Serbia", "^borders", "Hungary", 1.0)]])


def test_explanations_are_not_mixed(tmp_path: Path) -> None:
    undrawn = [format for format in FORMATS if format != "png"]
    names = {path.name for path in explained().save(tmp_path, undrawn)}
    (tmp_path / "explanation.png").write_bytes(b"\x89PNG of another one")
    (tmp_path / "notes.txt").write_text("mine")
    other().save(tmp_path, ["text"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["explanation.txt", "notes.txt"]
    assert len(names) == sum(len(FORMATS[format].beginnings) for format in undrawn)


def test_files_of_the_same_explanation_stay(tmp_path: Path) -> None:
    before = explained().save(tmp_path, ["json", "csv"])
    explained().save(tmp_path, ["text"])
    assert all(path.exists() for path in before)
    assert (tmp_path / "explanation.txt").exists()


def test_what_others_put_there_stays(tmp_path: Path) -> None:
    others = {"nodes.csv": "name,colour\n", "full.dot": "graph mine {}\n", "explanation.md": "mine"}
    for name, text in others.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "pruned.dot").symlink_to(tmp_path / "full.dot")
    (tmp_path / "edges.csv").mkdir()
    explained().save(tmp_path, ["text"])
    assert {name: (tmp_path / name).read_text() for name in others} == others
    assert (tmp_path / "pruned.dot").is_symlink() and (tmp_path / "edges.csv").is_dir()


def test_a_folder_in_the_index_of_a_file_leaves_all_as_it_was(tmp_path: Path) -> None:
    other().save(tmp_path, ["text"])
    before = (tmp_path / "explanation.txt").read_bytes()
    (tmp_path / "paths.csv").mkdir()
    with pytest.raises(RunError, match=r"paths\.csv: a folder has this name"):
        explained().save(tmp_path, ["text", "json", "csv"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["explanation.txt", "paths.csv"]
    assert (tmp_path / "explanation.txt").read_bytes() == before


@pytest.mark.parametrize("at", range(1, 8))
def test_a_crash_leaves_whole_files_of_one_explanation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    wanted = ["text", "json", "dot"]
    before = {path.name: path.read_bytes() for path in other().save(tmp_path / "a", wanted)}
    after = {path.name: path.read_bytes() for path in explained().save(tmp_path / "b", wanted)}
    calls = [0]

    def crash_at(function):
        def counting(*arguments, **options):
            calls[0] += 1
            if calls[0] == at:
                raise KeyboardInterrupt
            return function(*arguments, **options)

        return counting

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", crash_at(os.replace))
        patched.setattr(os, "fsync", crash_at(os.fsync))
        with pytest.raises(KeyboardInterrupt):
            explained().save(tmp_path / "a", wanted)
    left = {path.name: path.read_bytes() for path in (tmp_path / "a").iterdir()}
    assert left.items() <= before.items() or left.items() <= after.items()
    assert at > len(wanted) + 1 or left == before  # while files are written beside, all is as it was


def test_a_full_disk_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunError, match=r"cannot write to .*: No space left on device; choose another --out"):
        explained().save(tmp_path / "why", ["text"])
    assert not (tmp_path / "why").exists()


def test_formats_as_one_text(tmp_path: Path) -> None:
    assert [path.name for path in explained().save(tmp_path, "json")] == ["explanation.json"]
    both = explained().save(tmp_path, "Text, json,")
    assert [path.name for path in both] == ["explanation.txt", "explanation.json"]
    with pytest.raises(ConfigError, match="unknown format 'jsn'"):
        explained().save(tmp_path, "text,jsn")


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
        explained().save(tmp_path / "why", ["text", "pdf"])
    with pytest.raises(ConfigError, match="no format"):
        explained().save(tmp_path / "why", [])
    assert not (tmp_path / "why").exists()


def test_what_cannot_be_drawn_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> dict[str, bytes]:
        raise ConfigError("cannot be drawn")

    monkeypatch.setitem(FORMATS, "png", replace(FORMATS["png"], write=fail))
    with pytest.raises(ConfigError, match="cannot be drawn"):
        explained().save(tmp_path / "why", ["text", "png"])
    assert not (tmp_path / "why").exists()


def test_a_file_in_the_index_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "why").write_text("mine")
    with pytest.raises(RunError, match="not a folder"):
        explained().save(tmp_path / "why", ["text"])
    with pytest.raises(RunError, match="choose another"):
        explained().save(tmp_path / "why" / "deeper", ["text"])
    assert (tmp_path / "why").read_text() == "mine"


def test_every_format_begins_as_it_says_and_has_a_main_file() -> None:
    pytest.importorskip("resvg_py")
    for format in FORMATS.values():
        files = format.files(explained())
        assert files.keys() == format.beginnings.keys()
        assert format.content(explained()) == files[format.main]
        assert all(content.startswith(format.beginnings[name]) for name, content in files.items())
        assert all(name.endswith(f".{format.suffix}") for name in files)
    assert len({format.suffix for format in FORMATS.values()}) == len(FORMATS)  # each has a route of its own
