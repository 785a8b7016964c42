"""The tutorial runs from its first line to its last, and shows what comes out."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from docs_reading import ROOT, Block, blocks

from dpmpn.cli.main import run

TUTORIAL = ROOT / "docs" / "tutorial.md"
CUT = "..."


def calls(block: Block) -> Iterator[tuple[list[str], list[str]]]:
    """The commands of a console block, each with the lines shown below it."""
    for call in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, *shown = call.splitlines()
        yield shlex.split(command), [line for line in shown if line.strip() not in ("", CUT)]


def without_figures(line: str) -> str:
    """A line as far as it is the same on any machine."""
    return " ".join(re.sub(r"\d[\d.,:]*%?", "#", line).split())


def _came(line: str, came: set[str]) -> bool:
    """Whether a line came out; one that ends in dots is cut."""
    shown = without_figures(line)
    if shown.endswith(CUT):
        return any(other.startswith(shown.removesuffix(CUT).rstrip()) for other in came)
    return shown in came


def test_it_runs_and_shows_what_comes_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    names: dict[str, object] = {}
    done = []
    for block in blocks(TUTORIAL):
        if block.language == "python":
            exec(compile(block.text, "tutorial.md", "exec"), names)
        elif block.language == "console":
            for command, shown in calls(block):
                capsys.readouterr()
                with pytest.raises(SystemExit) as ended:
                    run(command[1:])
                out, err = capsys.readouterr()
                assert not ended.value.code, err
                came = {without_figures(line) for line in [*out.splitlines(), *err.splitlines()]}
                lacking = [line for line in shown if not _came(line, came)]
                assert not lacking, f"{command}\n{out}\n{err}"
                done.append(command[1])
    assert done == ["import", "train", "evaluate", "predict", "explain", "explain", "predict", "complete"]
    assert names["reasoner"].predict("Dorado M5", "has_mount")[0].answer == "mount-31"  # type: ignore[attr-defined]
    assert names["newer"].predict("camera-new", "has_mount")[0].answer == "mount-31"  # type: ignore[attr-defined]
    assert len(names["right"]) >= 6  # type: ignore[arg-type]  # of the twelve
