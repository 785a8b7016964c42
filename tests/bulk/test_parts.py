"""Parts survive kills and damage: the result is the same however often, and in how many shares, it was made."""

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmpn.ask.tables import write_table
from dpmpn.bulk import parts as module
from dpmpn.bulk.parts import Parts
from dpmpn.errors import RunError

REQUEST = {"top": 3, "model_sha256": "a" * 64}


def part(index: int) -> pl.DataFrame:
    return pl.DataFrame({"query": [index, index], "answer": [f"ä{index}", None], "why": [[index], []]})


def table(frames: Iterator[pl.DataFrame]) -> Callable[[Path], None]:
    return lambda path: write_table(path, frames)


def written(out: Path, count: int) -> None:
    with Parts(out, REQUEST) as parts:
        for index in parts.missing(range(count)):
            parts.write(index, part(index))


def finished(out: Path, count: int) -> bytes:
    with Parts(out, REQUEST) as parts:
        for index in parts.missing(range(count)):
            parts.write(index, part(index))
        parts.finish(table(parts.read(range(count))))
    return out.read_bytes()


def parts_of(out: Path) -> list[Path]:
    return sorted(out.with_name(out.name + ".parts").glob("*.parquet"))


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "ndjson", "parquet", "csv.gz", "jsonl.gz"])
def test_a_table_made_in_two_runs_is_the_table_made_in_one(tmp_path: Path, suffix: str) -> None:
    broken, whole = tmp_path / f"broken.{suffix}", tmp_path / f"whole.{suffix}"
    written(broken, 2)
    assert not broken.exists()
    assert finished(broken, 5) == finished(whole, 5)
    assert sorted(tmp_path.iterdir()) == [broken, whole]  # no folder is left


def test_parts_are_read_in_order(tmp_path: Path) -> None:
    written(tmp_path / "a.csv", 12)
    with Parts(tmp_path / "a.csv", REQUEST) as parts:
        assert parts.missing(range(14)) == [12, 13]
        assert pl.concat(parts.read(range(12))).equals(pl.concat(part(index) for index in range(12)))


def test_parts_are_made_in_any_order_and_each_once(tmp_path: Path) -> None:
    with Parts(tmp_path / "a.csv", REQUEST) as parts:
        for index in (3, 1, 0, 2):
            parts.write(index, part(index))
        with pytest.raises(ValueError, match="part 1 is there already"):
            parts.write(1, part(1))
    assert finished(tmp_path / "a.csv", 4) == finished(tmp_path / "b.csv", 4)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_only_damaged_parts_are_made_again(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "a.csv"
        written(out, 4)
        index = data.draw(st.integers(0, 3))
        path = parts_of(out)[index]
        content = bytearray(path.read_bytes())
        match data.draw(st.sampled_from(["flip", "cut", "remove"])):
            case "flip":
                content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
                path.write_bytes(content)
            case "cut":
                path.write_bytes(content[: data.draw(st.integers(0, len(content) - 1))])
            case "remove":
                path.unlink()
        with Parts(out, REQUEST) as parts:
            assert parts.missing(range(4)) == [index]
        assert finished(out, 4) == finished(Path(folder) / "b.csv", 4)


def test_a_part_damaged_while_in_use_is_not_written_to_the_table(tmp_path: Path) -> None:
    out = tmp_path / "a.csv"
    written(out, 2)
    with Parts(out, REQUEST) as parts:
        path = parts_of(out)[1]
        path.write_bytes(path.read_bytes()[:-1])
        with pytest.raises(RunError, match="same command again"):
            parts.finish(table(parts.read(range(2))))
    assert not out.exists()


def test_parts_of_another_request_are_not_mixed_in(tmp_path: Path) -> None:
    written(tmp_path / "a.csv", 1)
    with pytest.raises(RunError, match=r"top was 3, is 5\).*remove the folder"):
        Parts(tmp_path / "a.csv", {**REQUEST, "top": 5})
    with Parts(tmp_path / "a.csv", REQUEST) as parts:
        assert parts.missing(range(2)) == [1]


def test_a_request_for_which_nothing_was_done_stands_in_nobodys_way(tmp_path: Path) -> None:
    written(tmp_path / "a.csv", 0)
    with Parts(tmp_path / "a.csv", {**REQUEST, "top": 5}) as parts:
        parts.write(0, part(0))
    with pytest.raises(RunError, match="top was 5, is 3"):
        Parts(tmp_path / "a.csv", REQUEST)


def test_two_processes_do_not_work_on_one_table(tmp_path: Path) -> None:
    with (
        Parts(tmp_path / "a.csv", REQUEST),
        pytest.raises(RunError, match="another process"),
    ):
        Parts(tmp_path / "a.csv", REQUEST)
    Parts(tmp_path / "a.csv", REQUEST).close()


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    # No fork: polars does not work in one.
    code = (
        "import json, os, signal, sys, polars as pl; from dpmpn.bulk.parts import Parts;"
        "parts = Parts(sys.argv[1], json.loads(sys.argv[2]));"
        "parts.write(0, pl.DataFrame({'query': [0]})); os.kill(os.getpid(), signal.SIGKILL)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "a.csv"), json.dumps(REQUEST)]
    assert subprocess.run(command, timeout=60).returncode == -signal.SIGKILL
    with Parts(tmp_path / "a.csv", REQUEST) as parts:
        assert parts.missing(range(2)) == [1]


def test_a_table_that_exists_is_not_overwritten(tmp_path: Path) -> None:
    out = tmp_path / "a.csv"
    out.write_text("mine")
    with pytest.raises(RunError, match="already exists"):
        Parts(out, REQUEST)
    assert list(tmp_path.iterdir()) == [out]
    out.unlink()
    with Parts(out, REQUEST) as parts:
        parts.write(0, part(0))
        out.write_text("mine")
        with pytest.raises(RunError, match="already exists"):
            parts.finish(table(parts.read([0])))
    with pytest.raises(RunError, match="already exists"):
        Parts(out, REQUEST)
    assert out.read_text() == "mine"


@pytest.mark.parametrize("call", ["put_in_place", "remove_folder"])
def test_a_kill_after_the_table_took_its_place(tmp_path: Path, monkeypatch, call: str) -> None:
    out = tmp_path / "a.csv"
    written(out, 2)
    with Parts(out, REQUEST) as parts, monkeypatch.context() as patch:
        plain = getattr(module, call)

        def killed(first: Path, *rest: Path) -> None:
            if first.name.startswith("result-"):
                return plain(first, *rest)
            raise KeyboardInterrupt

        patch.setattr(module, call, killed)
        with pytest.raises(KeyboardInterrupt):
            parts.finish(table(parts.read(range(2))))
    content = out.read_bytes()
    assert finished(out, 2) == content
    assert list(tmp_path.iterdir()) == [out]


def test_an_error_while_the_table_is_written_leaves_the_parts(tmp_path: Path) -> None:
    out = tmp_path / "a.parquet"

    def frames(parts: Parts) -> Iterator[pl.DataFrame]:
        yield next(parts.read([0]))
        raise RuntimeError("out of luck")

    written(out, 2)
    with Parts(out, REQUEST) as parts, pytest.raises(RuntimeError, match="out of luck"):
        parts.finish(table(frames(parts)))
    assert not out.exists()
    finished(out, 2)
    assert pl.read_parquet(out).height == 4


def test_the_table_may_be_made_from_the_parts(tmp_path: Path) -> None:
    with Parts(tmp_path / "a.jsonl", REQUEST) as parts:
        for index in range(3):
            parts.write(index, part(index))
        parts.finish(table(frame.head(1) for frame in parts.read(range(3))))
    assert pl.read_ndjson(tmp_path / "a.jsonl")["query"].to_list() == [0, 1, 2]


def test_folders_that_are_not_ours_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "a.csv.parts").mkdir()
    (tmp_path / "a.csv.parts" / "thesis.txt").write_text("mine")
    with pytest.raises(RunError, match=r"thesis\.txt"):
        Parts(tmp_path / "a.csv", REQUEST)
    assert (tmp_path / "a.csv.parts" / "thesis.txt").exists()


def test_a_place_that_cannot_be_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="not a folder"):
        Parts(tmp_path / "no" / "a.csv", REQUEST)
