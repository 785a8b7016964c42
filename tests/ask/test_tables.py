"""Tables hold what was put into them, whatever their format; parts survive kills and damage.

The table is the same however often the work was broken off.
"""

import gzip
import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmpn.ask import tables
from dpmpn.ask.tables import Parts, table_format, write_table
from dpmpn.data.spreadsheets import unmarked
from dpmpn.errors import DataError, RunError

REQUEST = {"top": 3, "model_sha256": "a" * 64}
FRAME = pl.DataFrame(
    {
        "head": ["a,b", 'say "hi"', "two\nlines", "ünï"],
        "probability": [0.25, 1e-9, 1.0, None],
        "known": [True, False, None, True],
        "why": [[{"facts": [["a", "r", "b"]], "share": 0.5}], [], None, [{"facts": [], "share": 1.0}]],
    }
)
# Line ends within a field: a reader of CSV may take CR LF for LF.
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), min_size=1)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.CSV.gz"])
def test_separated_text_has_one_header_and_nested_columns_as_json(tmp_path: Path, name: str) -> None:
    write_table(tmp_path / name, [FRAME, FRAME])
    content = (tmp_path / name).read_bytes()
    content = gzip.decompress(content) if name.endswith(".gz") else content
    separator = "\t" if "tsv" in name else ","
    read = pl.read_csv(content, separator=separator)
    assert read.drop("why").equals(pl.concat([FRAME, FRAME]).drop("why"))
    why = [text and json.loads(text) for text in read["why"]]
    assert why == FRAME["why"].to_list() * 2


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson", "a.jsonl.gz"])
def test_json_lines(tmp_path: Path, name: str) -> None:
    write_table(tmp_path / name, [FRAME, FRAME])
    content = (tmp_path / name).read_bytes()
    content = gzip.decompress(content) if name.endswith(".gz") else content
    assert [json.loads(line) for line in content.split(b"\n")[:-1]] == FRAME.to_dicts() * 2


def test_parquet_keeps_types_and_order(tmp_path: Path) -> None:
    frames = [FRAME.with_columns(number=pl.lit(i)) for i in range(300)]
    write_table(tmp_path / "a.parquet", iter(frames))
    assert pl.read_parquet(tmp_path / "a.parquet").equals(pl.concat(frames))


@pytest.mark.parametrize("name", ["a.csv.gz", "a.parquet", "a.jsonl"])
def test_the_same_rows_are_the_same_bytes(tmp_path: Path, name: str) -> None:
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
        write_table(tmp_path / folder / name, [FRAME] * 50)
    assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(st.tuples(TEXT, st.integers(-9, 9)), max_size=4), min_size=1, max_size=4))
def test_texts_come_back(frames: list[list[tuple[str, int]]]) -> None:
    made = [pl.DataFrame(rows, {"text": pl.String, "n": pl.Int64}, orient="row") for rows in frames]
    with tempfile.TemporaryDirectory() as folder:
        for name in ("a.csv", "a.tsv", "a.jsonl", "a.parquet"):
            path = Path(folder) / name
            write_table(path, made)
            read = {
                "csv": lambda path=path: pl.read_csv(path, schema=made[0].schema),
                "tsv": lambda path=path: pl.read_csv(path, schema=made[0].schema, separator="\t"),
                "jsonl": lambda path=path: pl.DataFrame(
                    [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]], made[0].schema
                ),
                "parquet": lambda path=path: pl.read_parquet(path),
            }[table_format(path)]()
            if name in ("a.csv", "a.tsv"):
                read = read.with_columns(unmarked(read["text"]))
            assert read.equals(pl.concat(made))


def test_frames_are_not_gathered_in_memory(tmp_path: Path) -> None:
    alive = []

    def frames():
        for _ in range(5):
            alive.append(next(tmp_path.glob(".*.partial")).stat().st_size)
            yield pl.DataFrame({"text": ["x" * 1000] * 100})

    write_table(tmp_path / "a.csv", frames())
    assert alive == sorted(alive) and alive[-1] > 300_000  # earlier frames were on the disk


def test_a_table_without_rows_has_its_columns(tmp_path: Path) -> None:
    for name in ("a.csv", "a.parquet"):
        write_table(tmp_path / name, [FRAME.clear()])
    assert (tmp_path / "a.csv").read_text() == "head,probability,known,why\n"
    assert pl.read_parquet(tmp_path / "a.parquet").schema == FRAME.schema


@pytest.mark.parametrize("name", ["a", "a.txt", "a.xlsx", "a.parquet.gz", "a.gz", ".csv"])
def test_other_names_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match=r"\.csv, \.tsv, \.jsonl"):
        write_table(tmp_path / name, [FRAME])


def test_a_table_that_fails_is_not_there(tmp_path: Path) -> None:
    def frames():
        yield FRAME
        raise RunError("a part is broken")

    for name in ("a.csv", "a.parquet"):
        with pytest.raises(RunError, match="a part is broken"):
            write_table(tmp_path / name, frames())
    assert not list(tmp_path.iterdir())


def part(index: int) -> pl.DataFrame:
    return pl.DataFrame({"query": [index, index], "answer": [f"ä{index}", None], "why": [[index], []]})


def written(out: Path, count: int) -> None:
    with Parts(out, REQUEST) as parts:
        for index in range(parts.done(), count):
            parts.write(index, part(index))


def finished(out: Path, count: int) -> bytes:
    with Parts(out, REQUEST) as parts:
        for index in range(parts.done(), count):
            parts.write(index, part(index))
        parts.finish(parts.read())
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
        assert parts.done() == 12
        assert pl.concat(parts.read()).equals(pl.concat(part(index) for index in range(12)))


def test_a_part_follows_the_one_before(tmp_path: Path) -> None:
    with Parts(tmp_path / "a.csv", REQUEST) as parts, pytest.raises(ValueError):
        parts.write(1, part(1))


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_damaged_parts_and_those_behind_are_made_again(data: st.DataObject) -> None:
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
            assert parts.done() == index
        assert finished(out, 4) == finished(Path(folder) / "b.csv", 4)


def test_a_part_damaged_while_in_use_is_not_written_to_the_table(tmp_path: Path) -> None:
    out = tmp_path / "a.csv"
    written(out, 2)
    with Parts(out, REQUEST) as parts:
        path = parts_of(out)[1]
        path.write_bytes(path.read_bytes()[:-1])
        with pytest.raises(RunError, match="same command again"):
            parts.finish(parts.read())
    assert not out.exists()


def test_parts_of_another_request_are_not_mixed_in(tmp_path: Path) -> None:
    written(tmp_path / "a.csv", 1)
    with pytest.raises(RunError, match=r"top was 3, is 5\).*remove the folder"):
        Parts(tmp_path / "a.csv", {**REQUEST, "top": 5})
    with Parts(tmp_path / "a.csv", REQUEST) as parts:
        assert parts.done() == 1


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
        "import json, os, signal, sys, polars as pl; from dpmpn.ask.tables import Parts;"
        "parts = Parts(sys.argv[1], json.loads(sys.argv[2]));"
        "parts.write(0, pl.DataFrame({'query': [0]})); os.kill(os.getpid(), signal.SIGKILL)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "a.csv"), json.dumps(REQUEST)]
    assert subprocess.run(command, timeout=60).returncode == -signal.SIGKILL
    with Parts(tmp_path / "a.csv", REQUEST) as parts:
        assert parts.done() == 1


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
            parts.finish(parts.read())
    with pytest.raises(RunError, match="already exists"):
        Parts(out, REQUEST)
    assert out.read_text() == "mine"


@pytest.mark.parametrize("call", ["put_in_place", "remove_folder"])
def test_a_kill_after_the_table_took_its_place(tmp_path: Path, monkeypatch, call: str) -> None:
    out = tmp_path / "a.csv"
    written(out, 2)
    with Parts(out, REQUEST) as parts, monkeypatch.context() as patch:
        plain = getattr(tables, call)

        def killed(first: Path, *rest: Path) -> None:
            if first.name.startswith("table-"):
                return plain(first, *rest)
            raise KeyboardInterrupt

        patch.setattr(tables, call, killed)
        with pytest.raises(KeyboardInterrupt):
            parts.finish(parts.read())
    content = out.read_bytes()
    assert finished(out, 2) == content
    assert list(tmp_path.iterdir()) == [out]


def test_an_error_while_the_table_is_written_leaves_the_parts(tmp_path: Path) -> None:
    out = tmp_path / "a.parquet"

    def frames(parts: Parts) -> Iterator[pl.DataFrame]:
        yield next(parts.read())
        raise RuntimeError("out of luck")

    written(out, 2)
    with Parts(out, REQUEST) as parts, pytest.raises(RuntimeError, match="out of luck"):
        parts.finish(frames(parts))
    assert not out.exists()
    finished(out, 2)
    assert pl.read_parquet(out).height == 4


def test_the_table_may_be_made_from_the_parts(tmp_path: Path) -> None:
    with Parts(tmp_path / "a.jsonl", REQUEST) as parts:
        for index in range(3):
            parts.write(index, part(index))
        parts.finish(frame.head(1) for frame in parts.read())
    assert pl.read_ndjson(tmp_path / "a.jsonl")["query"].to_list() == [0, 1, 2]


def test_folders_that_are_not_ours_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "a.csv.parts").mkdir()
    (tmp_path / "a.csv.parts" / "thesis.txt").write_text("mine")
    with pytest.raises(RunError, match=r"thesis\.txt"):
        Parts(tmp_path / "a.csv", REQUEST)
    assert (tmp_path / "a.csv.parts" / "thesis.txt").exists()


def test_what_could_not_be_written_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"end the name in \.csv"):
        Parts(tmp_path / "a.xlsx", REQUEST)
    with pytest.raises(RunError, match="not a folder"):
        Parts(tmp_path / "no" / "a.csv", REQUEST)
