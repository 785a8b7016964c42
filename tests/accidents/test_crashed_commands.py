"""Every command that writes, ended before each of its changes: all is old or new, whole, and the same command goes on.

A new command is one line of `WRITING`, or a name in `NOT_WRITING`, with the reason.
"""

import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
import pytest
import typer
from accident_data import SETTINGS, weights
from forked_cli import Ended, ForkedCli

from dpmpn.cli.main import app
from dpmpn.train.checkpoint import best_kept
from dpmpn.train.run_folder import RunFolder, read_lines, run_path

AT_ONCE = 4  # processes
WORK = "--threads 1"
WRITING = {
    "import": "import family/train.txt --split none --out graph --json result.json",
    "inductive": "inductive family --out parts --json result.json",
    "datasets": "datasets --json result.json",
    "datasets stats": "datasets stats family --json result.json",
    "train": f"train family --out new {' '.join(SETTINGS)} --max-queries 10 --json result.json",
    "train --from": "train family --out new --from any-graph --batch-size 10 --threads 1 --epochs 1 "
    "--max-queries 10 --json result.json",
    "train --resume": "train family --out run --resume --max-queries 30 --json result.json",
    "pretrain": "pretrain family --out weights --n-dims 4 --n-steps-in-agnn 2 --threads 1 --batch-size 4 "
    "--checkpoint-every-seconds 0 --questions 24 --json result.json",
    "ask": f"ask family child0 mother {WORK} --json result.json",
    "evaluate": f"evaluate run {WORK} --json result.json",
    "predict": f"predict run child0 mother {WORK} --json result.json",
    "predict --queries": f"predict run --queries questions.csv {WORK} --out answers.csv --json result.json",
    "explain": f"explain run child0 mother {WORK} --out why --format text,csv --json result.json",
    "patterns": f"patterns run --sample 4 --top 2 {WORK} --draw patterns.svg --json result.json",
    "complete": f"complete run {WORK} --out facts.parquet --json result.json",
    "evaluate --out": f"evaluate run {WORK} --out report.json --json result.json",
    "calibrate": f"calibrate measured --questions 30 {WORK} --json result.json",
    "calibrate --reliability": f"calibrate measured --questions 30 {WORK} --reliability plot.svg --json result.json",
    "explain-eval": "explain-eval run --sample 1 --json result.json",
}
"""Command lines in a folder with `family`, a `run` on it, `questions.csv` and an older `result.json` and `why`.

`measured` is a run with enough held-out facts."""
NOT_WRITING = {
    "merge": "it gives the command of the shards once more, which finds all parts made and goes on from there",
    "serve": "it reads a run",
    "start": "it serves until it is ended: tests/cli/test_cli_start.py kills it and starts it again",
    "bench": "it writes nothing but --json, as evaluate does",
    "datasets fetch": "it needs a mirror: test_import_accidents.py ends it at every step",
    "reproduce": "it takes minutes: it trains as train does, and keeps the result of each piece as JSON",
    "compare": "it takes minutes: it keeps the result of each model as JSON",
}
_THERE = ("already exists", "already holds a run")
_TRAINED = re.compile(
    r"(run|new|weights)/(checkpoint|best|metrics|log)[-.].*"
)  # of which there are more than two versions
_LEFT = re.compile(r"(.*/)?\.dpmpn-[0-9a-f]{16}\.partial(/.*)?")


class State(NamedTuple):
    """A folder before a change, without what is only left over."""

    path: Path
    files: dict[str, bytes]
    has_leftovers: bool

    @classmethod
    def of(cls, path: Path) -> "State":
        found = {str(file.relative_to(path)): file for file in sorted(path.rglob("*")) if file.is_file()}
        left = any(_LEFT.fullmatch(str(file.relative_to(path))) for file in path.rglob("*"))
        files = {name: file.read_bytes() for name, file in found.items() if not _LEFT.fullmatch(name)}
        return cls(path, {n: x for n, x in files.items() if not n.endswith(".lock")}, left)

    def names(self) -> set[str]:
        """The names of files, but those of weights, which say when they were saved."""
        return {name for name in self.files if not name.endswith(".safetensors")}

    def digest(self) -> str:
        content = [(name, hashlib.sha256(x).hexdigest()) for name, x in self.files.items()]
        return repr((content, self.has_leftovers))


@pytest.fixture(scope="module")
def prepared(
    cli: ForkedCli, family: Path, trained_once: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    folder = tmp_path_factory.mktemp("prepared")
    shutil.copytree(family, folder / "family")
    shutil.copytree(trained_once, folder / "run")
    shutil.copytree(run_path("demo"), folder / "measured")
    (folder / "questions.csv").write_text("head,relation\nchild0,mother\nchild1,father\n")
    (folder / "result.json").write_text('"older"')
    here = ("crash_points", "stand_in", str(folder))
    older = ("explain", "run", "child1", "mother", "--out", "why", "--format", "text,csv")
    assert cli.run(*older, before=here).code == 0
    return folder


def ended_at_every_step(cli: ForkedCli, folder: Path, line: str) -> Iterator[State]:
    """Each different state that a kill could leave."""
    copies, seen = folder.with_name("copies"), set()
    copies.mkdir()
    before = ("crash_points", "copy_before_changes", str(folder), str(copies))
    ended = cli.run(*line.split(), before=before)
    assert ended.code == 0, ended
    for path in sorted(copies.iterdir()):
        state = State.of(path)
        if state.digest() not in seen:
            seen.add(state.digest())
            yield state


def is_whole(state: State, before: State, after: State) -> bool:
    """Whether each file is the old or the new one, and each run opens with a model that is no worse."""
    for name, content in state.files.items():
        if not _TRAINED.fullmatch(name) and (name in before.files or name in after.files):
            assert content in (before.files.get(name), after.files.get(name)), name
    for name in before.files.keys() & after.files.keys():
        assert name in state.files or _TRAINED.fullmatch(name) or name.startswith("why/"), name
    for run in (state.path / "run", state.path / "new"):
        if run.exists():
            opened = RunFolder.open(run)
            assert opened.dataset().name == "family"
            read_lines(opened.metrics)
            for kind in ("checkpoint", "best"):
                assert not (run / f"{kind}.json").exists() or weights(run, kind)
            assert opened.has_weights() or not list(run.glob("best*"))
    return best(state.path) >= best(before.path)


def best(folder: Path) -> float:
    kept = best_kept(folder / "run")
    assert kept is not None
    return kept.mrr


def go_on(cli: ForkedCli, states: list[State], line: str) -> Iterator[tuple[State, Ended]]:
    """The same command in each folder; where it says that it goes on with --resume, with that."""
    for some in (states[at : at + AT_ONCE] for at in range(0, len(states), AT_ONCE)):
        started = [cli.start(*line.split(), before=("crash_points", "stand_in", str(s.path))) for s in some]
        for state, running in zip(some, started, strict=True):
            ended, words = running.wait(), line.split()
            if ended.code == 2 and "--resume" in ended.err:
                here = ("crash_points", "stand_in", str(state.path))
                ended = cli.run(*words[:4], "--resume", *words[-4:], before=here)
            yield state, ended


@pytest.mark.parametrize("name", WRITING)
def test_a_command_ended_at_every_step(cli: ForkedCli, prepared: Path, tmp_path: Path, name: str) -> None:
    folder = shutil.copytree(prepared, tmp_path / "folder", symlinks=True)
    states = list(ended_at_every_step(cli, folder, WRITING[name]))
    before, after = State.of(prepared), State.of(folder)
    assert len(states) > 1 and not after.has_leftovers and after.names() >= before.names()
    assert all(is_whole(state, before, after) for state in states)
    for state, ended in go_on(cli, states, WRITING[name]):
        done = State.of(state.path)
        assert best(state.path) >= best(prepared)
        if ended.code == 2 and any(text in ended.err for text in _THERE):  # all was done but to say so
            assert after.names() - done.names() <= {"result.json"}
            continue
        assert ended.code == 0, ended
        assert done.names() == after.names() and not done.has_leftovers
        assert json.loads(done.files["result.json"]) != "older"


def names_of(command: click.Command, before: str = "") -> Iterator[str]:
    """The names of all commands, those of groups included."""
    for name, inner in getattr(command, "commands", {}).items():
        yield f"{before}{name}"
        yield from names_of(inner, f"{before}{name} ")


def test_no_command_is_left_out() -> None:
    known = {re.split(" --", name)[0] for name in WRITING} | NOT_WRITING.keys()
    assert set(names_of(typer.main.get_command(app))) == known
    assert not {re.split(" --", name)[0] for name in WRITING} & NOT_WRITING.keys()
