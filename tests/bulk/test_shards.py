"""However many shards there are, and in whatever order they are made, the result is that of one run."""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmpn.ask.tables import write_table
from dpmpn.bulk.parts import Parts, check_shards, division_of
from dpmpn.bulk.shards import Shard
from dpmpn.bulk.work import InMemory, Kept, cut, make_parts
from dpmpn.errors import ConfigError, RunError

COMMAND = ("predict", "my run", "--out", "a.csv")


class Squares:
    """A square for each number: work that is quick, and counts how often each part was made."""

    def __init__(self, n: int, size: int = 3) -> None:
        self.request = {"n": n}
        self.sizes = cut(n, size)
        self.size, self.made = size, []

    def part(self, index: int, tick: Callable[[int], None]) -> pl.DataFrame:
        self.made.append(index)
        numbers = list(range(index * self.size, index * self.size + self.sizes[index]))
        tick(len(numbers))
        return pl.DataFrame(
            {"n": numbers, "square": [n * n for n in numbers]}, {"n": pl.Int64, "square": pl.Int64}
        )

    def close(self) -> None:
        pass


def finish(work: Squares, kept: Kept, out: Path) -> bytes:
    frames = [pl.DataFrame(schema={"n": pl.Int64, "square": pl.Int64}), *kept.read(range(len(work.sizes)))]
    kept.finish(lambda path: write_table(path, frames))
    return out.read_bytes()


def at_once(work: Squares, out: Path) -> bytes:
    with Parts(out, work.request) as parts:
        make_parts(work, parts)
        return finish(work, parts, out)


def one_shard(work: Squares, out: Path, number: int, of: int) -> int:
    shard = Shard(number, of)
    with Parts(out, work.request, shard) as parts:
        parts.divide(len(work.sizes), COMMAND)
        return make_parts(work, parts, shard=shard)


def merged(work: Squares, out: Path) -> bytes:
    check_shards(out)
    with Parts(out, work.request) as parts:
        assert parts.missing(range(len(work.sizes))) == []
        return finish(work, parts, out)


@given(n_parts=st.integers(0, 200), of=st.integers(1, 60))
def test_shards_share_all_parts_evenly(n_parts: int, of: int) -> None:
    shares = [Shard(number, of).parts(n_parts) for number in range(1, of + 1)]
    assert [index for share in shares for index in share] == list(range(n_parts))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_any_number_of_shards_in_any_order_make_the_same_bytes(data: st.DataObject) -> None:
    n, of = data.draw(st.integers(0, 30)), data.draw(st.integers(1, 7))
    order = data.draw(st.permutations(range(1, of + 1)))
    work = Squares(n)
    with tempfile.TemporaryDirectory() as name:
        out = Path(name) / "a.csv"
        for number in order:
            one_shard(work, out, number, of)
            one_shard(work, out, number, of)  # one that is done is not done again
        assert sorted(work.made) == list(range(len(work.sizes)))
        assert merged(work, out) == at_once(Squares(n), Path(name) / "b.csv")
        assert sorted(path.name for path in Path(name).iterdir()) == ["a.csv", "b.csv"]


def test_a_run_without_shards_does_what_shards_left(tmp_path: Path) -> None:
    work = Squares(30)
    one_shard(work, tmp_path / "a.csv", 2, 3)
    at_once(work, tmp_path / "a.csv")
    assert sorted(work.made) == list(range(10))


def test_the_folders_of_several_machines_are_copied_into_one(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / str(number)).mkdir()
        one_shard(Squares(30), tmp_path / str(number) / "a.csv", number, 2)
    for file in (tmp_path / "2" / "a.csv.parts").iterdir():
        file.rename(tmp_path / "1" / "a.csv.parts" / file.name)
    assert merged(Squares(30), tmp_path / "1" / "a.csv") == at_once(Squares(30), tmp_path / "b.csv")


def test_progress_counts_the_shards_own_questions(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    work, shard = Squares(30), Shard(2, 3)
    with Parts(tmp_path / "a.csv", work.request, shard) as parts:
        make_parts(work, parts, lambda done, total: told.append((done, total)), shard=shard)
    assert told == [(3, 9), (6, 9), (9, 9)]
    with Parts(tmp_path / "a.csv", work.request, shard) as parts:
        assert make_parts(work, parts, shard=shard) == 9


def test_parts_in_memory_are_those_on_the_disk(tmp_path: Path) -> None:
    work, kept = Squares(10), InMemory()
    make_parts(work, kept)
    with Parts(tmp_path / "a.csv", work.request) as parts:
        make_parts(work, parts)
        assert pl.concat(parts.read(range(4))).equals(pl.concat(kept.read(range(4))))


def test_what_is_missing_is_said_with_the_command_that_makes_it(tmp_path: Path) -> None:
    out = tmp_path / "a.csv"
    with pytest.raises(RunError, match="no shard was run yet"):
        check_shards(out)
    one_shard(Squares(30), out, 1, 4)
    one_shard(Squares(30), out, 4, 4)
    with pytest.raises(RunError) as refused:
        check_shards(out)
    assert str(refused.value) == (
        f"{out}.parts: 2 shards of 4 are not done: 2/4 (0 of 3 parts done) and 3/4 (0 of 2 parts done); run "
        "dpmpn predict 'my run' --out a.csv --shard 2/4, and the others in the same way"
    )
    one_shard(Squares(30), out, 2, 4)
    with pytest.raises(RunError, match=r"1 shard of 4 is not done: 3/4 .*; run dpmpn .* --shard 3/4$"):
        check_shards(out)
    one_shard(Squares(30), out, 3, 4)
    assert check_shards(out) == division_of(out)
    merged(Squares(30), out)
    with pytest.raises(RunError, match="is finished already"):
        check_shards(out)


def test_a_killed_shard_is_not_done(tmp_path: Path) -> None:
    out, work, shard = tmp_path / "a.csv", Squares(30), Shard(1, 2)
    with Parts(out, work.request, shard) as parts:
        parts.divide(10, COMMAND)
        parts.write(3, work.part(3, lambda _: None))
    with pytest.raises(RunError, match=r"1/2 \(1 of 5 parts done\)"):
        check_shards(out)
    assert one_shard(work, out, 1, 2) == 3
    assert sorted(work.made) == [0, 1, 2, 3, 4]


def test_another_number_of_shards_is_refused(tmp_path: Path) -> None:
    one_shard(Squares(30), tmp_path / "a.csv", 1, 4)
    with pytest.raises(RunError, match=r"divided into 4 shards, not 8; run each of them, .* --shard 1/4"):
        one_shard(Squares(30), tmp_path / "a.csv", 2, 8)


def test_another_request_is_refused(tmp_path: Path) -> None:
    one_shard(Squares(30), tmp_path / "a.csv", 1, 4)
    with pytest.raises(RunError, match=r"other options \(n was 30, is 31\)"):
        one_shard(Squares(31), tmp_path / "a.csv", 2, 4)


def test_parts_of_another_request_that_were_copied_in_are_refused(tmp_path: Path) -> None:
    for name, n in (("mine.csv", 30), ("other.csv", 31)):
        one_shard(Squares(n), tmp_path / name, 1 if n == 30 else 2, 2)
    for file in (tmp_path / "other.csv.parts").glob("0*.parquet"):
        file.rename(tmp_path / "mine.csv.parts" / file.name)
    with pytest.raises(
        RunError, match="is a part of another request: other options, another run or another file"
    ):
        one_shard(Squares(30), tmp_path / "mine.csv", 2, 2)


def test_a_part_that_is_there_twice_is_refused_unless_both_are_equal(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
        one_shard(Squares(30), tmp_path / name / "out.csv", 2, 2)
    there = tmp_path / "a" / "out.csv.parts"
    for file in (tmp_path / "b" / "out.csv.parts").glob("0*.parquet"):
        file.replace(there / file.name)  # the same bytes have the same name
    one_shard(Squares(30), tmp_path / "a" / "out.csv", 1, 2)
    key = next(there.glob("0*.parquet")).name.split("-")[1]
    (there / f"00000007-{key}-{'f' * 64}.parquet").write_bytes(b"rounded differently")
    with pytest.raises(RunError, match=r"part 7 is there twice.*remove both and run dpmpn .* --shard 2/2"):
        merged(Squares(30), tmp_path / "a" / "out.csv")


def test_shards_work_beside_each_other_but_no_one_beside_a_shard_twice_or_all(tmp_path: Path) -> None:
    out, request = tmp_path / "a.csv", {"n": 30}
    with Parts(out, request, Shard(1, 2)), Parts(out, request, Shard(2, 2)):
        with pytest.raises(RunError, match="in use by another process"):
            Parts(out, request, Shard(2, 2))
        with pytest.raises(RunError, match="in use by another process"):
            Parts(out, request)
    with Parts(out, request), pytest.raises(RunError, match="in use by another process"):
        Parts(out, request, Shard(1, 2))


def test_what_says_how_work_was_divided_is_not_guessed(tmp_path: Path) -> None:
    out = tmp_path / "a.csv"
    at_once_begun = Parts(out, {"n": 30})
    at_once_begun.close()
    with pytest.raises(RunError, match="was not begun in shards"):
        check_shards(out)
    (tmp_path / "a.csv.parts" / "shards.json").write_text(json.dumps({"shards": "many"}))
    with pytest.raises(RunError, match=r"shards\.json does not say how"):
        check_shards(out)


@pytest.mark.parametrize("text", ["3", "0/3", "4/3", "a/b", "1/0", "-1/3", "1/3/3", "", "1/99999999", "½/1"])
def test_odd_shards_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="--shard"):
        Shard.read(text)


def test_a_shard_is_read_as_it_is_written() -> None:
    assert Shard.read(" 3/8 ") == Shard(3, 8)
    assert str(Shard(3, 8)) == "3/8"
