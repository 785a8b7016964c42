import json
import os

import networkx as nx
import numpy as np
import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from dpmpn.cli.datasets import stats
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.data.importer import dataset_from_tuples, load_dataset
from dpmpn.data.leakage import joined_pairs
from dpmpn.data.registry import DATASETS, ROOT_VARIABLE
from dpmpn.data.statistics import components, shortest_paths, statistics

needs_data = pytest.mark.skipif(
    not os.environ.get(ROOT_VARIABLE), reason=f"${ROOT_VARIABLE} names no data folder"
)
N = 14
entity = st.integers(0, N - 1)
edges = st.lists(st.tuples(entity, st.integers(0, 2), entity), max_size=40)
name = st.sampled_from("abcdef")
facts = st.lists(st.tuples(name, st.sampled_from("rst"), name), max_size=25)
# What the paper's Table 1 says: share of multi-edge train and valid facts, average shortest path of valid pairs.
PAPER = {
    "FB15K": (0.812, 0.806, 1.22),
    "FB15K-237": (0.380, 0.0, 2.25),
    "WN18": (0.931, 0.940, 1.19),  # the paper says 1.18
    "WN18RR": (0.345, 0.355, 2.84),
    "NELL-995": (0.252, 0.311, 2.00),  # the paper says 100 % of train, where its file holds the inverses
}


def all_pairs():
    heads, tails = np.divmod(np.arange(N * N), N)
    return heads, tails


def expected_lengths(triples):
    graph = nx.Graph([(h, t) for h, _, t in triples])
    graph.add_nodes_from(range(N))
    found = dict(nx.all_pairs_shortest_path_length(graph))
    return [found[h].get(t, -1) for h in range(N) for t in range(N)]


@settings(deadline=None)
@given(edges, st.booleans(), st.integers(1, 3))
def test_shortest_paths_agree_with_networkx(triples, add_inverses, threads):
    rows = np.array(triples, np.int32).reshape(-1, 3)
    graph = KnowledgeGraph.from_ids(rows, N, 3, add_inverses=add_inverses)
    assert shortest_paths(graph, *all_pairs(), threads=threads).tolist() == expected_lengths(triples)


def test_long_ways_and_progress():
    n = 3_000
    ring = np.array([(i, 0, (i + 1) % n) for i in range(n)], np.int32)
    heads, tails = np.random.default_rng(0).integers(0, n, (2, 1_000))
    told = []
    lengths = shortest_paths(
        KnowledgeGraph.from_ids(ring, n, 1), heads, tails, progress=lambda *at: told.append(at)
    )
    apart = np.abs(heads - tails)
    assert np.array_equal(lengths, np.minimum(apart, n - apart))
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[-1] == (1_000, 1_000) and len(told) > 3


def test_components():
    graph = KnowledgeGraph.from_ids(np.array([(5, 0, 1), (1, 0, 3), (4, 0, 2), (0, 0, 0)]), 7, 1)
    assert components(graph.offsets, graph.tails).tolist() == [0, 1, 2, 1, 2, 1, 6]


@settings(deadline=None)
@given(facts.filter(bool), facts, facts)
def test_statistics_agree_with_sets(train, valid, test):
    dataset = dataset_from_tuples(train, valid, test)
    found = statistics(dataset)
    every = [*train, *valid, *test]
    train, valid = set(train), set(valid)
    ends = [frozenset((h, t)) for h, _, t in train]
    assert found["entities"] == len({e for h, _, t in every for e in (h, t)})
    assert found["relations"] == len({r for _, r, _ in every})
    assert (found["train"], found["valid"], found["test"]) == (len(train), len(valid), len(set(test)))
    twice = sum(h == t or ends.count(frozenset((h, t))) > 1 for h, _, t in train)
    assert found["pme_train"] == twice / len(train)
    assert found["pme_valid"] == joined_pairs(dataset)
    graph = nx.Graph([(h, t) for h, _, t in train])
    graph.add_nodes_from(e for h, _, t in every for e in (h, t))
    lengths = [nx.shortest_path_length(graph, h, t) for h, _, t in valid if nx.has_path(graph, h, t)]
    assert found["shortest_path"]["unreachable"] == len(valid) - len(lengths)
    assert found["average_shortest_path_valid"] == (pytest.approx(np.mean(lengths)) if lengths else None)
    assert sum(found["shortest_path"]["lengths"]) == len(lengths)
    assert found["degree"]["mean"] == pytest.approx(2 * len(train) / found["entities"])
    json.dumps(found, allow_nan=False)


def test_of_many_pairs_a_sample_is_measured():
    rng = np.random.default_rng(0)
    triples = [(str(h), "r", str(t)) for h, t in rng.integers(0, 60, (600, 2))]
    dataset = dataset_from_tuples(triples[:200], triples[200:])
    whole, sample = statistics(dataset), statistics(dataset, max_pairs=150)
    assert sample["shortest_path"]["pairs"] == 150 and sample["shortest_path"]["is_sample"]
    error = sample["shortest_path"]["standard_error"]
    assert 0 < error < 0.2 and whole["shortest_path"]["standard_error"] is None
    average = "average_shortest_path_valid"
    assert abs(sample[average] - whole[average]) < 3 * error
    assert statistics(dataset, max_pairs=150) == sample


@needs_data
@pytest.mark.parametrize("dataset", PAPER)
def test_the_paper_table(dataset):
    if not DATASETS[dataset].folder().is_dir():
        pytest.skip(f"{DATASETS[dataset].folder()} is not there")
    found = statistics(load_dataset(dataset))
    pme_train, pme_valid, average = PAPER[dataset]
    assert round(found["pme_train"], 3) == pme_train
    assert round(found["pme_valid"], 3) == pme_valid
    assert round(found["average_shortest_path_valid"], 2) == average


@pytest.fixture
def run():
    app = typer.Typer()
    app.command()(stats)
    return lambda *arguments: CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_the_command(run, tmp_path):
    parents = [(f"p{i}", "parent[of]", f"c{i}") for i in range(20)]
    children = [(t, "child", h) for h, _, t in parents]
    for stem, rows in {"train": [*parents, *children[2:]], "valid": children[:2]}.items():
        (tmp_path / f"{stem}.txt").write_text("".join("\t".join(row) + "\n" for row in rows))
    shown = run(tmp_path, "--json", tmp_path / "stats.json")
    assert shown.exit_code == 0, shown.output
    report = json.loads((tmp_path / "stats.json").read_text())
    keys = ("entities", "relations", "train", "valid", "test", "pme_valid", "average_shortest_path_valid")
    assert [report[key] for key in keys] == [40, 2, 38, 2, 0, 1.0, 1.0]
    assert report["pme_train"] == 36 / 38
    assert report["leakage"]["valid"]["inverse"] == 2
    lines = [" ".join(line.split()) for line in shown.output.splitlines()]
    assert "multi-edge facts of train (PME), % 94.7" in lines
    assert "are in train under an inverse relation 2 100.0" in lines
    assert "child parent[of] inverse 20 100.0" in lines
    assert json.loads(run(tmp_path, "--json", "-").stdout) == report


def test_the_command_without_held_out_facts(run, tmp_path):
    (tmp_path / "train.txt").write_text("a\tr\ta\n")
    shown = run(tmp_path)
    assert shown.exit_code == 0, shown.output
    assert "average shortest path of valid pairs      -" in shown.output
    assert "held-out" not in shown.output
