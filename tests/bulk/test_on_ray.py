"""On a cluster of three Ray nodes the result is that of one process, also if a node is killed in the middle.

Ray is not among what the tests need: install the extra `ray` to run this.
"""

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from slow_squares import SlowSquares, deadly

from dpmpn.ask.tables import write_table
from dpmpn.bulk.on_ray import carried
from dpmpn.bulk.parts import Parts
from dpmpn.bulk.shards import Shard
from dpmpn.bulk.work import Carry, here, make_parts
from dpmpn.errors import ConfigError, RunError

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'dpmpn[ray]'")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # What workers import must be where they look; here that is this folder, else where dpmpn is installed.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    small = {"num_cpus": 1, "object_store_memory": 80_000_000, "include_dashboard": False}
    made = Cluster(initialize_head=True, head_node_args=small)
    for _ in range(2):
        made.add_node(num_cpus=1, object_store_memory=80_000_000)
    made.wait_for_nodes()
    yield made
    made.shutdown()


def made(work: SlowSquares, out: Path, carry: Carry = here) -> bytes:
    with Parts(out, work.request) as parts:
        make_parts(work, parts, carry=carry)
        frames = list(parts.read(range(len(work.sizes))))
        parts.finish(lambda path: write_table(path, frames))
    return out.read_bytes()


def notes_of(path: Path) -> list[tuple[int, str]]:
    return [(int(pid), what) for pid, what in map(str.split, path.read_text().splitlines())]


def test_a_node_is_killed_in_the_middle(cluster: Any, tmp_path: Path) -> None:
    n, notes, said = 72, tmp_path / "notes", []
    expected = made(SlowSquares(n, str(tmp_path / "alone"), 0), tmp_path / "alone.csv")
    carry = carried(partial(SlowSquares, n, str(notes)), cluster.address, 1, said.append)

    def killing(work: Any, wanted: Any, tick: Any) -> Iterator[Any]:
        came = []
        for found in carry(work, wanted, tick):
            came.append(found)
            yield found
            workers = {pid for pid, what in notes_of(notes) if pid != os.getpid() and what != "opened"}
            if len(cluster.list_all_nodes()) == 3 and len(workers) == 3:
                cluster.remove_node(cluster.list_all_nodes()[-1], allow_graceful=False)

    work = SlowSquares(n, str(notes), 0.3)
    assert made(work, tmp_path / "shared.csv", killing) == expected
    assert len(cluster.list_all_nodes()) == 2  # it was killed
    assert any("a worker was lost" in line for line in said)
    workers = {pid for pid, what in notes_of(notes) if what != "opened"}
    assert len(workers) == 3 and os.getpid() not in workers
    opened = [pid for pid, what in notes_of(notes) if what == "opened"]
    assert len(opened) == len(set(opened))  # each opened its work once


def test_what_shards_and_killed_runs_left_is_not_done_again(cluster: Any, tmp_path: Path) -> None:
    out, notes = tmp_path / "a.csv", tmp_path / "notes"
    work = SlowSquares(30, str(notes), 0)
    with Parts(out, work.request, Shard(1, 2)) as parts:
        parts.divide(10, ("predict",))
        make_parts(work, parts, shard=Shard(1, 2))
    carry = carried(partial(SlowSquares, 30, str(notes), 0), cluster.address, 1, print)
    content = made(work, out, carry)
    parts_made = [what for _, what in notes_of(notes) if what != "opened"]
    assert sorted(map(int, parts_made)) == list(range(10))
    assert content == made(work, tmp_path / "b.csv")


def test_a_mistake_on_a_worker_is_one_sentence(cluster: Any, tmp_path: Path) -> None:
    work = SlowSquares(9, str(tmp_path / "notes"), 0)
    missing = partial(SlowSquares, 9, str(tmp_path / "notes"), 0, str(os.getpid()))
    with pytest.raises(ConfigError, match=r"^on .*: questions.csv is missing; copy it here$"):
        made(work, tmp_path / "a.csv", carried(missing, cluster.address, 1, print))
    other = partial(SlowSquares, 9, str(tmp_path / "notes"), 0, "", "salted")
    with pytest.raises(ConfigError, match="the model, the graph or the questions are others"):
        made(work, tmp_path / "a.csv", carried(other, cluster.address, 1, print))


def test_a_part_that_ends_every_worker_is_given_up_and_the_rest_is_kept(cluster: Any, tmp_path: Path) -> None:
    notes = str(tmp_path / "notes")
    work = SlowSquares(12, notes, 0)
    carry = carried(partial(deadly, 12, notes, os.getpid()), cluster.address, 1, lambda _: None)
    with pytest.raises(RunError, match=r"part 2 ended its worker 4 times .*what was done is kept"):
        made(work, tmp_path / "a.csv", carry)
    with Parts(tmp_path / "a.csv", work.request) as parts:
        assert 2 in parts.missing(range(4))


def test_an_address_where_no_cluster_is(tmp_path: Path) -> None:
    work = SlowSquares(9, str(tmp_path / "notes"), 0)
    with pytest.raises(ConfigError, match="--on-ray localhost:1: no Ray cluster could be reached"):
        made(
            work,
            tmp_path / "a.csv",
            carried(partial(SlowSquares, 9, str(tmp_path / "notes")), "localhost:1", 1, print),
        )
