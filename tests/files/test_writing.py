"""Files are written whole, never through a link, with the mode that was there; what nobody holds is a leftover."""

import multiprocessing
import os
import shutil
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dpmpn.errors import RunError
from dpmpn.files import (
    append,
    own_folder,
    remove_folder,
    whole_folder,
    write_named,
    write_text,
    write_together,
    write_whole,
)
from dpmpn.files.held import holding, is_own

LEFT = ".dpmpn-0123456789abcdef.partial"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def umask():
    before = os.umask(0o027)
    yield
    os.umask(before)


def test_a_new_file_has_the_mode_of_the_umask_and_an_old_one_keeps_its_own(tmp_path: Path, umask) -> None:
    path = tmp_path / "a.json"
    write_text(path, "new")
    assert mode(path) == 0o640
    for kept in (0o600, 0o664, 0o444):
        path.chmod(kept)
        write_text(path, "newer")
        assert (mode(path), path.read_text()) == (kept, "newer")
    with whole_folder(tmp_path / "run") as folder:
        (folder / "x").touch()
    assert mode(tmp_path / "run") == 0o750


def test_a_link_in_the_place_of_a_file_is_replaced_and_its_victim_stays(tmp_path: Path) -> None:
    victim, path = tmp_path / "victim", tmp_path / "run" / "calibration.json"
    path.parent.mkdir()
    victim.write_text("precious")
    victim.chmod(0o600)
    for link in (os.symlink, os.link):
        link(victim, path)
        write_text(path, "mine")
        assert (victim.read_text(), mode(victim)) == ("precious", 0o600)
        assert not path.is_symlink() and path.read_text() == "mine"
        path.unlink()
    path.symlink_to(tmp_path / "nowhere")
    write_text(path, "mine")
    assert not (tmp_path / "nowhere").exists() and path.read_text() == "mine"


def test_names_beside_cannot_be_foreseen(tmp_path: Path) -> None:
    names = set()
    for _ in range(3):
        write_whole(tmp_path / "a", lambda _: names.update(path.name for path in tmp_path.glob(".*")))
    assert len(names) == 3


def test_a_link_of_a_users_own_leads_on(tmp_path: Path) -> None:
    target, link = tmp_path / "result.json", tmp_path / "link.json"
    link.symlink_to(target)
    for text in ("new", "newer"):
        write_named(link, lambda file, text=text: file.write(text.encode()))
        assert link.is_symlink() and target.read_text() == text


def test_pipes_and_open_streams_are_written_into(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write_named(pipe, lambda file: file.write(b"through"))
    reader.join()
    assert read == [b"through"] and stat.S_ISFIFO(pipe.stat().st_mode)
    write_named(Path("/dev/null"), lambda file: file.write(b"gone"))
    code = (
        "import sys; from pathlib import Path; from dpmpn.files import write_named; print('first', flush=True);"
        "write_named(Path('/dev/stdout'), lambda file: file.write(b'second\\n')); print('third')"
    )
    printed = tmp_path / "printed"
    for out in (printed.open("wb"), printed.open("ab"), subprocess.PIPE):
        ended = subprocess.run([sys.executable, "-c", code], stdout=out, check=True)
        assert (ended.stdout or printed.read_bytes()) == b"first\nsecond\nthird\n"
        printed.write_bytes(b"")


def test_lines_are_not_added_through_a_link(tmp_path: Path) -> None:
    victim, path = tmp_path / "victim", tmp_path / "metrics.jsonl"
    victim.write_text("precious")
    path.symlink_to(victim)
    with pytest.raises(RunError, match="cannot write"):
        append(path, b"line\n")
    assert victim.read_text() == "precious" and not is_own(path)


def test_a_lock_is_not_written_through_a_link(tmp_path: Path) -> None:
    victim, run = tmp_path / "victim", tmp_path / "run"
    run.mkdir()
    victim.write_text("precious")
    os.link(victim, run / ".lock")
    with holding(run):
        assert victim.read_text() == "precious"
    (run / ".lock").unlink()
    (run / ".lock").symlink_to(victim)
    with pytest.raises(RunError, match=r"\.lock: it is a link, which you can remove"), holding(run):
        pass
    assert victim.read_text() == "precious"


def test_folders_of_ours_are_no_links(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "file").touch()
    (tmp_path / "models").symlink_to(victim)
    with pytest.raises(OSError, match="link"):
        own_folder(tmp_path / "models")
    remove_folder(tmp_path / "models")
    assert (victim / "file").exists() and not (tmp_path / "models").is_symlink()


def test_what_nobody_holds_goes_and_what_somebody_holds_stays(tmp_path: Path) -> None:
    (tmp_path / LEFT).write_text("of a killed process")
    (tmp_path / LEFT.replace("0", "f")).mkdir()
    (tmp_path / LEFT.replace("0", "f") / "file").touch()
    foreign = [".another.partial", ".dpmpn.partial", "file.partial"]
    for name in foreign:
        (tmp_path / name).touch()
    victim = tmp_path / "victim"
    victim.write_text("precious")
    link = tmp_path / LEFT.replace("0", "e")
    link.symlink_to(victim)
    seen = []

    def write(file) -> None:
        write_text(tmp_path / "b", "another, while the first is being written")
        seen.extend(path.name for path in tmp_path.glob(".dpmpn-*") if not path.is_symlink())
        file.write(b"first")

    with whole_folder(tmp_path / "run") as folder:
        write_whole(tmp_path / "a", write)
        assert folder.is_dir()
    assert len(seen) == 2  # the folder and the first file
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"a", "b", "run", "victim", link.name, *foreign}
    assert (tmp_path / "a").read_text() == "first" and victim.read_text() == "precious"


def test_a_new_file_that_was_taken_for_a_leftover_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its making and its lock, another process may remove it."""
    from dpmpn.files import held

    plain, stolen = held._lock, []

    def slow(handle: int) -> bool:
        found = next(tmp_path.glob(".dpmpn-*"))
        if len(stolen) < 2:
            stolen.append(found)
            found.rmdir() if found.is_dir() else found.unlink()
        return plain(handle)

    monkeypatch.setattr(held, "_lock", slow)
    write_text(tmp_path / "a", "whole")
    assert len(stolen) == 2 and (tmp_path / "a").read_text() == "whole"
    stolen.clear()
    with whole_folder(tmp_path / "run") as folder:
        (folder / "file").touch()
    assert len(stolen) == 2 and (tmp_path / "run" / "file").exists()


def test_files_that_belong_together_replace_others(tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.touch()
    write_together({tmp_path / name: lambda file: file.write(b"x") for name in "ab"}, [old])
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b"}


def _write_for_a_while(folder: str, number: int) -> None:
    os.getpid, socket.gethostname = (lambda: 1), (lambda: "same")
    for time in range(25):
        write_text(Path(folder) / f"{number}", f"{time}")
        with whole_folder(Path(folder) / f"{number}-{time}") as new:
            (new / "file").write_text("x")


def test_processes_that_believe_to_be_the_same_one_do_not_disturb_each_other(tmp_path: Path) -> None:
    """As in containers: each is number 1 of a host of one name."""
    fork = multiprocessing.get_context("fork")
    writers = [fork.Process(target=_write_for_a_while, args=(str(tmp_path), number)) for number in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0] * 4
    assert not list(tmp_path.glob(".*"))
    assert len(list(tmp_path.glob("*-*/file"))) == 100


_IN_A_NAMESPACE = """
import os, sys, time
from pathlib import Path
from dpmpn.files import whole_folder
out, started = Path(sys.argv[1]), Path(sys.argv[2])
with whole_folder(out) as folder:
    (folder / "file").write_text(f"{os.getpid()}")
    started.touch()
    while started.exists():
        time.sleep(0.01)
    assert (folder / "file").exists()
"""


def test_namespaces_of_processes_do_not_disturb_each_other(tmp_path: Path) -> None:
    unshare = ["unshare", "-r", "--pid", "--fork"]
    if shutil.which("unshare") is None or subprocess.run([*unshare, "true"], capture_output=True).returncode:
        pytest.skip("`unshare --pid` is not permitted here")
    started = tmp_path / "started"
    command = [*unshare, sys.executable, "-c", _IN_A_NAMESPACE]
    with subprocess.Popen([*command, str(tmp_path / "a"), str(started)]) as first:
        while not started.exists():
            assert first.poll() is None
        with whole_folder(tmp_path / "b") as folder:  # of another namespace than the first
            (folder / "file").touch()
        with subprocess.Popen([*command, str(tmp_path / "c"), str(tmp_path / "other")]) as second:
            while not (tmp_path / "other").exists():
                assert second.poll() is None
            (tmp_path / "other").unlink()
        started.unlink()
    assert (first.returncode, second.returncode) == (0, 0)
    assert (tmp_path / "a" / "file").read_text() == (tmp_path / "c" / "file").read_text()  # the same number
