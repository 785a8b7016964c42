"""Imports that are killed, ended, or run out of disk: a dataset is there whole or not at all, and nothing is left."""

import errno
import functools
import gzip
import http.server
import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from accident_data import can_mount
from crash_points import crashes
from forked_cli import ForkedCli, Running
from killed_calls import FILES
from one_line import caller, is_refused

from dpmpn.data.importer import load_dataset
from dpmpn.errors import DataError, RunError
from dpmpn.files import whole_folder

N_MANY = 300_000


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> list[object]:
    """Some facts and labels, as arguments of an import."""
    folder = tmp_path_factory.mktemp("source")
    facts = [
        f"c{i}\tmother\tm{i % 5}\nm{i % 5}\thusband\tf{i % 5}\nc{i}\tfather\tf{i % 5}\n" for i in range(20)
    ]
    (folder / "facts.tsv").write_text("".join(facts))
    names = [f"c{i}\tChild {i}\tchild\n" for i in range(20)]
    (folder / "names.tsv").write_text("id\tname\ttype\n" + "".join(names))
    return [folder / "facts.tsv", "--labels", folder / "names.tsv"]


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """So many facts that reading them takes a while."""
    path = tmp_path_factory.mktemp("many") / "facts.tsv.gz"
    lines = (f"e{i * 7919 % 30011}\tr{i % 37}\te{i * 31 % 40009}\n" for i in range(N_MANY))
    path.write_bytes(gzip.compress("".join(lines).encode(), 1))
    return path


def content_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def begun(running: Running, parent: Path) -> Running:
    """An import that has begun to make its folder."""
    until = time.monotonic() + 60
    while not list(parent.glob(".*.partial")):
        assert running.is_running() and time.monotonic() < until, running.wait()
        time.sleep(0.005)
    return running


def test_every_step_of_an_import(cli: ForkedCli, source: list[object], tmp_path: Path) -> None:
    """Each import is killed one step later than the one before, whose leftovers it removes."""
    graphs = tmp_path / "graphs"
    assert cli.run("import", *source, "--out", graphs / "older").code == 0
    older, out, points = content_of(graphs / "older"), graphs / "new", 0
    call = ("killed_calls", "import_facts", str(source[0]), str(source[2]), str(out))
    for point, ended in crashes(cli, graphs, call=call):
        points = point
        assert content_of(graphs / "older") == older
        assert len(list(graphs.iterdir())) <= 2  # what an earlier one left is gone
        if out.exists():
            break
        assert ended.code == -signal.SIGKILL, ended
        with pytest.raises(DataError):
            load_dataset(str(out))
    assert points > 30
    report = "import.json"  # holds the time it took
    assert content_of(out).keys() == older.keys()
    changed = {name for name, content in content_of(out).items() if content != older[name]}
    assert changed == {report, "dataset.json"}  # which holds the name
    assert load_dataset(str(out)).graph.entities.label(0) == "Child 0"
    assert sorted(path.name for path in graphs.iterdir()) == ["new", "older"]
    assert is_refused(cli.run("import", *source, "--out", out), out, "already exists")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_an_import_that_is_ended_leaves_nothing(
    cli: ForkedCli, many: Path, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    out = tmp_path / "graphs" / "new"
    running = begun(cli.start("import", many, "--out", out), out.parent)
    running.send(number)
    ended = running.wait()
    assert ended.code == code
    assert number == signal.SIGINT or ended.err.startswith("dpmpn: ended by SIGTERM")
    assert ended.err.count("\n") <= 1
    assert not list(out.parent.iterdir())


def test_two_imports_into_one_folder(cli: ForkedCli, many: Path, tmp_path: Path) -> None:
    out = tmp_path / "new"
    first = begun(cli.start("import", many, "--out", out, "--split", "none"), tmp_path)
    second = cli.start("import", many, "--out", out, "--split", "none")
    won, lost = sorted([first.wait(), second.wait()], key=lambda ended: ended.code)
    assert (won.code, won.err) == (0, "")
    assert is_refused(lost, out, "choose another --out")
    assert [path.name for path in tmp_path.iterdir()] == ["new"]
    dataset = load_dataset(str(out))
    assert len(dataset.train) == len(set(map(tuple, dataset.train.tolist()))) > N_MANY // 2


def test_files_that_cannot_grow(cli: ForkedCli, source: list[object], tmp_path: Path) -> None:
    out = tmp_path / "graphs" / "new"
    sizes = {}
    assert cli.run("import", *source, "--out", out).code == 0
    for path in out.rglob("*.*"):
        sizes.setdefault(path.suffix, []).append(path.stat().st_size)
    shutil.rmtree(out)
    limits = {0, max(sizes[".npy"]) - 1, max(sizes[".parquet"]) - 1, max(sizes[".json"]) - 8}
    # Of JSON a few bytes more: import.json says how long it took, in two digits or four.
    assert len(limits) == 4  # it fails at arrays, labels and manifests
    for limit in limits:
        ended = cli.run("import", *source, "--out", out, largest_file=limit)
        assert is_refused(ended, f"cannot write {out}: File too large; free some space or choose another")
        assert not list(out.parent.iterdir())


@pytest.fixture(scope="module")
def small_disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ForkedCli, Path, Path]]:
    """A process with a disk of 200 kB and one that cannot be written."""
    if not can_mount():
        pytest.skip("`unshare -rm` may not mount file systems here")
    small, read_only = tmp_path_factory.mktemp("small"), tmp_path_factory.mktemp("read-only")
    prepare = f"mount -t tmpfs -o size=200k none {small} && mount -t tmpfs -o ro none {read_only}"
    with ForkedCli(unshared=prepare) as forked:
        assert forked.run("--help").code == 0  # everything is mounted
        yield forked, small, read_only


def test_a_full_disk(small_disk: tuple[ForkedCli, Path, Path], source: list[object]) -> None:
    cli, disk, _ = small_disk
    seen = Path(f"/proc/{cli.process.pid}/root{disk}")
    filler = seen / "filler"
    for pages in (0, 4, 12):  # how much is left: for nothing, for the first files, for most
        with filler.open("wb", buffering=0) as file:
            try:
                while file.write(bytes(4096)):
                    pass
            except OSError as error:
                assert error.errno == errno.ENOSPC
            file.truncate(file.tell() - pages * 4096)
        ended = cli.run("import", *source, "--out", disk / "new")
        assert is_refused(ended, f"cannot write {disk / 'new'}: No space left on device; free some space")
        assert list(seen.iterdir()) == [filler]
        filler.unlink()
    assert cli.run("import", *source, "--out", disk / "new").code == 0
    assert cli.run("datasets", "stats", disk / "new").code == 0


def test_a_disk_that_cannot_be_written(
    small_disk: tuple[ForkedCli, Path, Path], source: list[object]
) -> None:
    cli, _, read_only = small_disk
    for out in (read_only / "new", read_only / "a" / "new"):
        ended = cli.run("import", *source, "--out", out)
        assert is_refused(ended, out, "Read-only file system", "choose another --out")


def test_places_where_nothing_can_be_made(
    source: list[object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = caller(capsys)
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "of").touch()
    before = sorted(tmp_path.rglob("*"))
    file = Path(str(source[0]))
    for out in (
        file,
        file / "x",
        "/proc/nothing",
        "/dev/null",
        *map(tmp_path.joinpath, ("loop", "pipe", "full")),
    ):
        assert is_refused(call("import", *source, "--out", out), out)
    assert is_refused(call("import", *source, "--out", tmp_path / ("n" * 300)), "File name too long")
    assert is_refused(call("import", *source, "--out", tmp_path / "loop" / "x"), "not a folder")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_file_that_cannot_be_read_is_not_said_to_be_one_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="gone"), whole_folder(tmp_path / "new"):
        (tmp_path / "gone").read_bytes()
    with (
        pytest.raises(RunError, match=r"cannot write .*new: No such file"),
        whole_folder(tmp_path / "new") as new,
    ):
        (new / "not" / "made").write_bytes(b"")
    assert not list(tmp_path.iterdir())


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def test_every_step_of_fetching(cli: ForkedCli, tmp_path: Path) -> None:
    (tmp_path / "mirror" / "UMLS").mkdir(parents=True)
    for name, content in FILES.items():
        (tmp_path / "mirror" / "UMLS" / name).write_bytes(content)
    data, points = tmp_path / "data", 0
    handler = functools.partial(Quiet, directory=str(tmp_path / "mirror"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        for point, ended in crashes(cli, data, call=("killed_calls", "fetch", url, str(data))):
            points = point
            assert ended.code in (0, -signal.SIGKILL), ended
            if (data / "UMLS").exists():
                break
        server.shutdown()
    assert points > 8
    assert {path.name: path.read_bytes() for path in (data / "UMLS").iterdir()} == FILES
    assert sorted(path.name for path in data.iterdir()) == [".UMLS.lock", "UMLS"]
