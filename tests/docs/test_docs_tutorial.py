"""The tutorial runs from its first line to its last, and shows what comes out."""

import re
import shlex
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

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


def form(line: str, words: Collection[str]) -> str:
    """A line as far as it is the same on any machine: rounding may turn near ties between paths or facts around."""
    longest_first = "|".join(sorted(map(re.escape, words), key=len, reverse=True))
    line = re.sub(rf"(?<![\w-])({longest_first})(?![\w-])", "@", line)
    line = re.sub(r"\d[\d.,:]*%?", "#", line.removesuffix("(best)"))
    return " ".join(line.split())


def came_out(shown: str, came: Iterable[str]) -> bool:
    """Whether a line of this form came out; one that ends in dots is cut."""
    if shown.endswith(CUT):
        return any(other.startswith(shown.removesuffix(CUT).rstrip()) for other in came)
    return shown in came


def words_of_the_shop(names: dict[str, Any]) -> set[str]:
    """Everything and every relation the script made up."""
    things = {word for identifier, name, _ in names["names"] for word in (identifier, name)}
    return things | {relation for _, relation, _ in names["facts"]}


def test_it_runs_and_shows_what_comes_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    names: dict[str, Any] = {}
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
                words = words_of_the_shop(names)
                came = {form(line, words) for line in [*out.splitlines(), *err.splitlines()]}
                lacking = [line for line in shown if not came_out(form(line, words), came)]
                assert not lacking, f"{command}\n{out}\n{err}"
                done.append(command[1])
    assert done == ["import", "train", "evaluate", "predict", "explain", "explain", "predict", "complete"]
    assert names["reasoner"].predict("Dorado M5", "has_mount")[0].answer == "mount-31"
    assert names["newer"].predict("camera-new", "has_mount")[0].answer == "mount-31"
    assert len(names["right"]) >= 6  # of twelve; ten where the tutorial was written
