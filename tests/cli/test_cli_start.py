"""`dpmpn start` as a process: facts are read, questions answered, the model tuned; ended anyhow, it goes on."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from dpmpn.cli import main, start
from dpmpn.reasoner.reasoner import Reasoner
from dpmpn.start import folder as start_folder
from dpmpn.start.folder import folder_for, run_of
from dpmpn.start.verdict import Verdict, verdict_of
from dpmpn.train.run_folder import RunFolder


@pytest.fixture
def facts(tmp_path: Path) -> Path:
    rows = [
        row for i in range(30) for row in (f"c{i},mother,m{i}", f"m{i},husband,f{i}", f"c{i},father,f{i}")
    ]
    (tmp_path / "facts.csv").write_text("head,relation,tail\n" + "\n".join(rows) + "\n")
    return tmp_path / "facts.csv"


class Started:
    def __init__(self, process: "subprocess.Popen[str]", log: Path) -> None:
        self.process, self.log = process, log

    def said(self, text: str, seconds: float = 300) -> str:
        """What was printed, once a text is in it."""
        until = time.monotonic() + seconds
        while text not in (printed := self.log.read_text()):
            assert time.monotonic() < until and self.process.poll() is None, printed
            time.sleep(0.05)
        return printed

    def get(self, route: str) -> dict[str, object]:
        address = self.said("in a browser").split("open ")[1].split("/ ")[0]
        return dict(httpx.get(f"{address}/api/v1/{route}", timeout=30).json())


@contextmanager
def started(facts: Path, *more: str) -> Iterator[Started]:
    log = facts.with_name("log")
    words = [sys.executable, "-m", "dpmpn", "start", str(facts), "--port", "0", "--no-browser", *more]
    with log.open("w") as file:
        process = subprocess.Popen(words, stdout=file, stderr=subprocess.STDOUT, env={**os.environ})
    try:
        yield Started(process, log)
    finally:
        process.kill()
        process.wait()


def test_it_is_tuned_ended_and_goes_on(facts: Path) -> None:
    folder = facts.with_name("facts.dpmpn")
    with started(facts) as running:
        assert running.get("model")["model"] in ("any-graph", "tuned")
        running.said("(best)")
        running.process.send_signal(signal.SIGINT)
        assert running.process.wait(60) == 0
    assert "continue with: dpmpn start" in running.log.read_text()
    run = RunFolder.open(folder)
    assert run.has_weights() and Reasoner.load(folder).predict("c0", "father")
    with started(facts) as running:
        assert "these facts were read before" in running.said("in a browser")
        running.said("Tuning has ended")
        assert running.get("tuning")["state"] == "done"
        running.process.kill()  # whatever ends it, what it wrote is whole
    verdict = verdict_of(run)
    with started(facts) as running:
        expected = "tuned" if verdict is not None and verdict.is_better else "any-graph"
        assert running.get("model")["model"] == expected


@pytest.mark.parametrize("when", ["run_of", "_explorer"])
def test_ended_before_the_page_opens_it_says_how_to_continue(
    when: str, facts: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = start_folder if when == "run_of" else start
    work = getattr(module, when)

    def interrupted(*given: Any) -> Any:
        done = work(*given)
        os.kill(os.getpid(), signal.SIGINT)
        return done

    monkeypatch.setattr(module, when, interrupted)
    out = facts.with_name("elsewhere")
    with pytest.raises(SystemExit) as ended:
        main.run(["start", str(facts), "--port", "0", "--no-browser", "--out", str(out)])
    assert ended.value.code == 130
    printed = "".join(capsys.readouterr())
    assert (
        f"stopped; continue with: dpmpn start {facts} --out {out}\n" in printed and "open http" not in printed
    )
    assert RunFolder.open(out).dataset().graph.n_forward == 3


def test_it_answers_without_tuning(facts: Path) -> None:
    with started(facts, "--no-tuning") as running:
        assert running.get("tuning") == {"model": "any-graph", "state": "off"}
    assert not RunFolder.open(facts.with_name("facts.dpmpn")).has_weights()


def test_changed_facts_begin_anew_and_the_old_folder_stays(facts: Path) -> None:
    folder, said = folder_for([str(facts)]), []
    assert folder == facts.with_name("facts.dpmpn")
    run_of([str(facts)], folder, said.append)
    with facts.open("a") as file:
        file.write("c0,sister,c1\n")
    run = run_of([str(facts)], folder, said.append)
    assert "facts.dpmpn.1" in said[-2] or "facts.dpmpn.1" in said[-1]
    assert run.dataset().graph.n_forward == 4
    assert RunFolder.open(folder.with_name("facts.dpmpn.1")).dataset().graph.n_forward == 3
    run_of([str(facts)], folder, said.append)
    assert "read before" in said[-1] and not folder.with_name("facts.dpmpn.2").exists()


def test_a_folder_of_somebody_else_is_left_alone(facts: Path, tmp_path: Path) -> None:
    with started(facts, "--out", str(tmp_path)) as running:
        assert running.process.wait(60) == 2
    assert "is not empty" in running.log.read_text()


@pytest.mark.parametrize(
    ("tuned", "error", "is_better"), [(0.6, 0.05, True), (0.52, 0.05, False), (0.4, 0.01, False)]
)
def test_a_verdict_does_not_follow_noise(tuned: float, error: float, is_better: bool) -> None:
    assert Verdict(0.5, tuned, error, 100, 10).is_better is is_better


def test_a_broken_verdict_is_said(facts: Path) -> None:
    run = run_of([str(facts)], folder_for([str(facts)]), lambda _: None)
    (run.path / "tuning.json").write_text(json.dumps({"mrr": 1}))
    with started(facts) as running:
        assert running.process.wait(60) == 2
    assert "tuning.json" in running.log.read_text()
