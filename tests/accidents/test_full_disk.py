"""Disks that are full or may not be written: one sentence, exit code 2, and everything written before is intact."""

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from accident_data import SETTINGS, can_mount, outcome, weights
from forked_cli import Ended, ForkedCli

from dpmpn.train.run_folder import append_line


def is_one_sentence(ended: Ended, *says: str) -> bool:
    assert ended.code == 2, ended
    assert ended.err.startswith("dpmpn: ") and ended.err.count("\n") == 1
    assert all(text in ended.err for text in says), ended.err
    return True


@pytest.fixture(scope="module")
def unbroken(cli: ForkedCli, family: Path, trained_once: Path) -> tuple:
    # Made again where a process of tests leaves this file and comes back to it.
    run = shutil.copytree(trained_once, Path(tempfile.mkdtemp(dir=trained_once.parent)) / "never-full")
    assert cli.run("train", family, "--out", run, "--resume").code == 0
    return outcome(run)


def test_files_that_cannot_grow(cli: ForkedCli, family: Path, trained: Path, unbroken: tuple) -> None:
    before = weights(trained, "checkpoint")
    tensors = (trained / json.loads((trained / "checkpoint.json").read_text())["file"]).stat().st_size
    for limit in (0, 300, tensors - 1):
        ended = cli.run("train", family, "--out", trained, "--resume", largest_file=limit)
        assert is_one_sentence(ended, "cannot write", "File too large; free some space", "--resume")
        assert weights(trained, "checkpoint") == before
        assert not list(trained.glob("*.partial")) + list(trained.glob(".*.partial"))
    assert cli.run("train", family, "--out", trained, "--resume").code == 0
    assert outcome(trained) == unbroken


def test_a_new_run_that_does_not_fit(cli: ForkedCli, family: Path, tmp_path: Path) -> None:
    out = tmp_path / "new"
    for limit in (0, 700):
        ended = cli.run("train", family, "--out", out, *SETTINGS, largest_file=limit)
        assert is_one_sentence(ended, "cannot write", str(tmp_path), "File too large")
        assert not list(tmp_path.iterdir())


def test_half_a_line_of_metrics_is_taken_back(cli: ForkedCli, tmp_path: Path) -> None:
    metrics = tmp_path / "metrics.jsonl"
    append_line(metrics, {"a": 1})
    whole = metrics.read_bytes()
    limit = len(whole) + 20
    ended = cli.run(call=("failing_writes", "append_long_line", str(metrics)), largest_file=limit)
    assert "File too large" in ended.out
    assert metrics.read_bytes() == whole


def test_a_result_is_written_whole_or_not_at_all(cli: ForkedCli, trained: Path, tmp_path: Path) -> None:
    target = tmp_path / "result.json"
    target.write_text("older\n")
    ask = ("predict", trained, "child0", "mother", "--json")
    assert is_one_sentence(cli.run(*ask, target, largest_file=200), "result.json", "File too large")
    assert target.read_text() == "older\n"
    link = tmp_path / "link.json"
    link.symlink_to(target)
    assert cli.run(*ask, link).code == 0
    assert link.is_symlink() and json.loads(target.read_text())
    assert sorted(file.name for file in tmp_path.iterdir()) == ["link.json", "result.json", "run"]
    assert cli.run(*ask, "/dev/null").code == 0 and Path("/dev/null").is_char_device()
    printed = cli.run(*ask, "/dev/stdout")
    assert printed.code == 0 and '"probability"' in printed.out


def test_places_where_nothing_can_be_written(cli: ForkedCli, family: Path, trained: Path) -> None:
    for place in ("/proc/nothing", "/sys/nothing", family / "train.txt" / "nothing"):
        assert is_one_sentence(cli.run("train", family, "--out", place, *SETTINGS), str(place))
        ask = ("predict", trained, "child0", "mother", "--json", place)
        assert is_one_sentence(cli.run(*ask), str(place))


class Mounts(NamedTuple):
    """A namespace with a disk of 200 kB and one that cannot be written, which holds a run."""

    cli: ForkedCli
    small: Path
    read_only: Path

    def seen_from_here(self, path: Path) -> Path:
        return Path(f"/proc/{self.cli.process.pid}/root{path}")


@pytest.fixture(scope="module")
def mounts(trained_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mounts]:
    if not can_mount():
        pytest.skip("`unshare -rm` may not mount file systems here")
    small, read_only = tmp_path_factory.mktemp("small"), tmp_path_factory.mktemp("read-only")
    prepare = [
        f"mount -t tmpfs -o size=200k none {small}",
        f"cp -r {trained_once} {small}/run",
        f"mount -t tmpfs none {read_only}",
        f"cp -r {trained_once} {read_only}/run",
        f"mount -o remount,ro {read_only}",
    ]
    with ForkedCli(unshared=" && ".join(prepare)) as cli:
        assert cli.run("--help").code == 0  # everything is mounted
        yield Mounts(cli, small, read_only)


def test_a_full_disk(mounts: Mounts, family: Path, unbroken: tuple) -> None:
    run = mounts.small / "run"
    seen = mounts.seen_from_here(run)
    before, refused = weights(seen, "checkpoint"), 0
    filler = seen.with_name("filler")
    for pages in (0, 2, 3):  # how much is left: for nothing, then for some of the files
        with filler.open("wb", buffering=0) as file:
            try:
                while file.write(bytes(4096)):
                    pass
            except OSError:
                file.truncate(max(0, file.tell() - pages * 4096))
        ended = mounts.cli.run("train", family, "--out", run, "--resume")
        if ended.code != 0:
            assert is_one_sentence(
                ended, "cannot write", "No space left on device; free some space", "--resume"
            )
            refused += 1
        filler.unlink()
        weights(seen, "checkpoint")
        weights(seen, "best")
        assert not list(seen.glob(".*.partial"))
        assert pages or weights(seen, "checkpoint") == before
    assert refused >= 2
    assert mounts.cli.run("train", family, "--out", run, "--resume").code == 0
    assert outcome(seen) == unbroken


def test_a_disk_that_cannot_be_written(mounts: Mounts, family: Path) -> None:
    run, cli = mounts.read_only / "run", mounts.cli
    said = "Read-only file system"
    assert is_one_sentence(cli.run("train", family, "--out", run, "--resume"), said)
    new = cli.run("train", family, "--out", mounts.read_only / "new", *SETTINGS)
    assert is_one_sentence(new, str(mounts.read_only / "new"), said)
    ask = ("predict", run, "child0", "mother", "--json")
    assert is_one_sentence(cli.run(*ask, mounts.read_only / "x.json"), "x.json", said)
    assert cli.run("evaluate", run).code == 0  # reading needs no writing
