"""Many questions and completions that are killed, ended or run out of disk: the same command gives the same table."""

import shutil
import signal
from pathlib import Path
from typing import NamedTuple

import pytest
from crash_points import crashes
from forked_cli import ForkedCli
from one_line import caller, is_refused

from dpmpn.reasoner.reasoner import Reasoner
from dpmpn.train.run_folder import RunFolder, run_path

KEPT = "what was done is kept: free some space and run the same command again"
N_QUESTIONS = 2500  # three parts


class Work(NamedTuple):
    """A command that makes a table, without its --out, and the table it makes when nothing goes wrong."""

    command: list[object]
    table: bytes


@pytest.fixture(scope="module")
def folder(trained_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bulk")
    shutil.copytree(trained_once, folder / "run")
    rows = [f"child{i % 8},{('mother', 'father')[i % 2]}\n" for i in range(N_QUESTIONS)]
    (folder / "questions.csv").write_text("head,relation\n" + "".join(rows))
    return folder


def unbroken(cli: ForkedCli, out: Path, *command: object) -> Work:
    ended = cli.run(*command, "--threads", 1, "--out", out)
    assert (ended.code, ended.err) == (0, ""), ended
    return Work([*command, "--threads", 1], out.read_bytes())


@pytest.fixture(scope="module")
def predict(cli: ForkedCli, folder: Path) -> Work:
    asked = ("--queries", folder / "questions.csv", "--any-role")
    return unbroken(cli, folder / "predicted.csv", "predict", folder / "run", *asked)


@pytest.fixture(scope="module")
def complete(cli: ForkedCli, folder: Path) -> Work:
    return unbroken(cli, folder / "completed.csv", "complete", folder / "run")


@pytest.fixture(params=["predict", "complete"])
def work(request: pytest.FixtureRequest) -> Work:
    return request.getfixturevalue(request.param)


def parts_of(out: Path) -> list[Path]:
    return sorted(out.with_name(out.name + ".parts").glob("0*.parquet"))


def broken_off(cli: ForkedCli, work: Work, out: Path) -> list[Path]:
    """The parts of a run that was killed after its first part."""
    done = []
    for point, ended in crashes(cli, out.parent, *work.command, "--out", out, first=8):
        assert ended.code == -signal.SIGKILL and point < 20, ended
        done = parts_of(out)
        if done:
            break
    return done


def goes_on(cli: ForkedCli, work: Work, out: Path) -> bool:
    """Whether the same command ends well, with the same table and nothing beside it."""
    ended = cli.run(*work.command, "--out", out)
    assert (ended.code, ended.err) == (0, ""), ended
    assert out.read_bytes() == work.table
    assert list(out.parent.iterdir()) == [out]
    return True


def test_every_step(cli: ForkedCli, work: Work, tmp_path: Path) -> None:
    """Each run goes on from where the one before was killed, and dies one step later."""
    out, points = tmp_path / "table.csv", 0
    for point, ended in crashes(cli, tmp_path, *work.command, "--out", out):
        points = point
        assert not out.exists() or out.read_bytes() == work.table
        if ended.code != -signal.SIGKILL:
            # The one before was killed when all was done but the last of its files removed.
            assert ended.code == 0 or is_refused(ended, f"{out} already exists")
    assert points > 15
    assert list(tmp_path.iterdir()) == [out]
    assert out.read_bytes() == work.table


def test_every_step_of_measuring(cli: ForkedCli, tmp_path: Path) -> None:
    run = shutil.copytree(run_path("demo"), tmp_path / "run")
    measuring = ("calibrate", run, "--questions", 40, "--threads", 1)
    assert cli.run(*measuring).code == 0
    whole, points = (run / "calibration.json").read_bytes(), 0
    (run / "calibration.json").unlink()
    for point, ended in crashes(cli, run, *measuring):
        points = point
        assert ended.code in (0, -signal.SIGKILL), ended
        RunFolder.open(run).model("best")
    assert points >= 4
    assert (run / "calibration.json").read_bytes() == whole
    assert not list(run.glob(".*.partial"))


@pytest.mark.parametrize("point", [1, 6])
def test_ended_by_a_signal(cli: ForkedCli, work: Work, tmp_path: Path, point: int) -> None:
    out = tmp_path / "table.csv"
    ended = cli.run(*work.command, "--out", out, before=("killed_calls", "end_at", point, str(tmp_path)))
    assert ended.code == 143
    assert (
        ended.err
        == "dpmpn: ended by SIGTERM; files written so far are complete: run the same command again\n"
    )
    assert not out.exists()
    assert goes_on(cli, work, out)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "csv.gz"])
def test_files_that_cannot_grow(cli: ForkedCli, predict: Work, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"table.{suffix}"
    for limit, n_kept in ((0, 0), (12_000, 3)):  # not even the request; the parts, but not the table
        ended = cli.run(*predict.command, "--out", out, largest_file=limit)
        assert is_refused(ended, f"cannot write {out}.parts", "File too large; " + KEPT)
        assert len(parts_of(out)) == n_kept
        assert not out.exists()
    ended = cli.run(*predict.command, "--out", out)
    assert ended.code == 0
    assert f"{N_QUESTIONS:,} of them by an earlier run" in ended.out
    assert suffix != "csv" or out.read_bytes() == predict.table
    assert list(tmp_path.iterdir()) == [out]


def test_completion_on_a_disk_that_is_full(cli: ForkedCli, complete: Work, tmp_path: Path) -> None:
    out = tmp_path / "table.csv"
    for limit in (0, 1000):
        ended = cli.run(*complete.command, "--out", out, largest_file=limit)
        assert is_refused(ended, f"cannot write {out}.parts", "File too large; " + KEPT)
    assert goes_on(cli, complete, out)


def test_two_processes(cli: ForkedCli, work: Work, tmp_path: Path) -> None:
    out = tmp_path / "table.csv"
    started = [cli.start(*work.command, "--out", out) for _ in range(2)]
    won, lost = sorted((running.wait() for running in started), key=lambda ended: ended.code)
    assert (won.code, won.err) == (0, "")
    assert is_refused(lost, out, "choose another --out")
    assert out.read_bytes() == work.table
    assert list(tmp_path.iterdir()) == [out]


def test_damaged_parts_are_made_again(cli: ForkedCli, work: Work, tmp_path: Path) -> None:
    out = tmp_path / "table.csv"
    (part,) = broken_off(cli, work, out)
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 1
    part.write_bytes(content)
    (part.parent / "result-table.csv").write_text("half a line of a ta")
    (part.parent / ".dpmpn-0123456789abcdef.partial").write_bytes(content[:7])
    (part.parent / "00000007-0000.parquet").write_bytes(b"PAR1")
    assert goes_on(cli, work, out)


def test_a_damaged_request_is_not_guessed(cli: ForkedCli, predict: Work, tmp_path: Path) -> None:
    out = tmp_path / "table.csv"
    (part,) = broken_off(cli, predict, out)
    request = part.parent / "request.json"
    request.write_bytes(request.read_bytes()[:-9])
    ended = cli.run(*predict.command, "--out", out)
    assert is_refused(ended, request, "cannot be read", "remove")
    assert part.exists()


def test_questions_that_changed_in_between(
    cli: ForkedCli, folder: Path, predict: Work, tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    out = tmp_path / "out" / "table.csv"
    questions = shutil.copy(folder / "questions.csv", tmp_path)
    command = ["predict", folder / "run", "--queries", questions, "--any-role", "--threads", 1]
    (part,) = broken_off(cli, Work(command, b""), out)
    text = Path(questions).read_text()
    Path(questions).write_text(text + "child1,husband\n")
    assert is_refused(cli.run(*command, "--out", out), "other options (the queries changed);")
    Path(questions).write_text(text)
    assert is_refused(cli.run(*command, "--out", out, "--top", 3), "(top was 10, is 3);")
    assert is_refused(cli.run("complete", folder / "run", "--out", out), "more); finish it with the command")
    assert part.exists()
    assert goes_on(cli, Work(command, predict.table), out)


def test_places_where_no_table_can_be(
    folder: Path,
    predict: Work,
    complete: Work,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    call = caller(capsys)
    (tmp_path / "mine.csv").write_text("mine")
    (tmp_path / "folder.csv").mkdir()
    before = sorted(tmp_path.rglob("*"))
    # It is said before minutes of measuring.
    monkeypatch.setattr(Reasoner, "calibrate", lambda *_, **__: pytest.fail("measured"))
    places = {
        tmp_path / "missing" / "x.csv": "missing is not a folder",
        folder / "questions.csv" / "x.csv": "questions.csv is not a folder",
        tmp_path / "mine.csv": "already exists",
        tmp_path / "folder.csv": "already exists",
        tmp_path / "table.txt": "end it in",
        tmp_path: "end it in",
        "": "end it in",
        tmp_path / ("n" * 245 + ".csv"): "File name too long",
        tmp_path / ("n" * 300 + ".csv"): "File name too long",
    }
    for place, says in places.items():
        for work in (predict, complete):
            assert is_refused(call(*work.command, "--out", place), says)
    monkeypatch.undo()
    for work in (predict, complete):
        assert is_refused(call(*work.command, "--out", "/proc/x.csv"), "/proc/x.csv")
    assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / "mine.csv").read_text() == "mine"
