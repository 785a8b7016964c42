"""A folder from somebody else's archive, full of links: whatever is done with it, what they lead to stays as it was."""

import os
import shutil
from pathlib import Path

import pytest
from forked_cli import ForkedCli
from hostile_links import FILES, WHY, Victims
from one_line import is_refused

from dpmpn.train.run_folder import run_path


@pytest.fixture(params=[False, True], ids=["symbolic", "hard"])
def hard(request: pytest.FixtureRequest) -> bool:
    return request.param


@pytest.fixture
def victims(trained: Path, tmp_path: Path, hard: bool) -> Victims:
    victims = Victims(tmp_path / "victims")
    for name in FILES:
        victims.file(trained / name, hard=hard)
    (trained / "why").mkdir()
    for name in WHY:
        for place in (trained / "why" / name, trained / "why" / f".{name}.partial"):
            victims.file(place, hard=hard)
    for name in (".answers.csv.partial", ".result.json.partial", ".lock"):
        victims.file(trained / name, hard=hard)
    return victims


def test_all_that_writes_into_a_run(
    cli: ForkedCli, family: Path, trained: Path, victims: Victims, hard: bool
) -> None:
    before = victims.state()
    questions = trained / "questions.csv"
    questions.write_text("head,relation\nchild0,mother\n")
    train = ("train", family, "--out", trained, "--resume")
    if not hard:
        assert is_refused(cli.run(*train), ".lock: it is a link, which you can remove")
        assert victims.state() == before
        (trained / ".lock").unlink()
    for line in (
        train,
        ("complete", trained, "--out", trained / "facts.csv"),
        ("predict", trained, "child0", "mother", "--json", trained / "result.json"),
        ("predict", trained, "--queries", questions, "--out", trained / "answers.csv"),
        ("explain", trained, "child0", "mother", "--out", trained / "why"),
        ("evaluate", trained, "--json", trained / "result.json"),
    ):
        ended = cli.run(*line)
        assert (ended.code, ended.err) == (0, ""), ended
        assert victims.state() == before, line
    for name in ("metrics.jsonl", "checkpoint.json"):
        assert (trained / name).lstat().st_nlink == 1 and not (trained / name).is_symlink()


def test_what_is_measured_is_kept_beside_links(cli: ForkedCli, tmp_path: Path, hard: bool) -> None:
    run = shutil.copytree(run_path("demo"), tmp_path / "run")
    victims = Victims(tmp_path / "victims")
    for name in ("calibration.json", "plot.svg"):
        victims.file(run / name, hard=hard)
    before = victims.state()
    drawing = () if hard else ("--reliability", tmp_path / "plot.svg")  # a link that a user names leads on
    ended = cli.run("calibrate", run, "--questions", 30, "--threads", 1, *drawing)
    assert ended.code == 0, ended
    assert victims.state() == before
    assert (run / "calibration.json").lstat().st_nlink == 1 and not (run / "calibration.json").is_symlink()


def test_folders_that_are_links(cli: ForkedCli, family: Path, trained: Path, tmp_path: Path) -> None:
    victims, out = Victims(tmp_path / "victims"), tmp_path / "out"
    out.mkdir()
    (out / "questions.csv").write_text("head,relation\nchild0,mother\n")
    for name in ("answers.csv.parts", ".answers.csv.parts.removed", "graph", "new", "why.txt"):
        victims.place(out / name)
    before = victims.state()
    ask = ("predict", trained, "--queries", out / "questions.csv", "--out", out / "answers.csv")
    assert is_refused(cli.run(*ask), "it is a link")
    assert victims.state() == before
    (out / "answers.csv.parts").unlink()
    assert cli.run(*ask).code == 0
    assert is_refused(cli.run("import", family / "train.txt", "--out", out / "graph"), "already exists")
    assert is_refused(cli.run("train", family, "--out", out / "new"), "already exists")
    assert victims.state() == before


def test_a_link_that_a_user_names_leads_on(cli: ForkedCli, trained: Path, tmp_path: Path) -> None:
    """The user's own links: a run, a folder and a result that lie elsewhere."""
    for name in ("elsewhere", "results"):
        (tmp_path / name).mkdir()
    shutil.move(trained, tmp_path / "elsewhere" / "run")
    trained.symlink_to(tmp_path / "elsewhere" / "run")
    link = tmp_path / "result.json"
    link.symlink_to(tmp_path / "results" / "result.json")
    why = tmp_path / "why"
    why.symlink_to(tmp_path / "results")
    assert cli.run("predict", trained, "child0", "mother", "--json", link).code == 0
    assert cli.run("explain", trained, "child0", "mother", "--out", why).code == 0
    assert link.is_symlink() and why.is_symlink() and trained.is_symlink()
    assert {"result.json", "explanation.txt"} <= {path.name for path in (tmp_path / "results").iterdir()}


def test_what_is_no_file_holds_nobody_up_and_fills_no_memory(
    cli: ForkedCli, family: Path, trained: Path, tmp_path: Path
) -> None:
    """A pipe, which nobody ever writes to, and a device, which has no end, in the place of each file of a run."""
    train = ("train", family, "--out", trained, "--resume")
    ask, measure = ("predict", trained, "child0", "mother"), ("evaluate", trained)
    weights = [next(trained.glob(f"{kind}-*.safetensors")).name for kind in ("best", "checkpoint")]
    readers = {
        **dict.fromkeys(("config.json", "best.json", weights[0], "graph/manifest.json"), ask),
        **dict.fromkeys(("graph/tails.npy", "graph/entities.txt", "dataset.json"), ask),
        "triples/valid.npy": measure,
        **dict.fromkeys(("checkpoint.json", weights[1], "metrics.jsonl"), train),
    }
    for name, line in readers.items():
        path, aside = trained / name, tmp_path / "aside"
        path.rename(aside)
        for make in (os.mkfifo, lambda path: os.symlink("/dev/zero", path)):
            make(path)
            assert is_refused(cli.run(*line), name.rpartition("/")[2]), name
            path.unlink()
        aside.rename(path)
    for line in (ask, measure, train):
        assert cli.run(*line).code == 0
