"""Cost per query on synthetic graphs of growing size, same horizons: it must not grow.

    python benchmarks/scale.py --json benchmarks/results/scale.json

Sizes are measured in turn within one run, each in a process of its own that only opens its graph, so that making the
graph leaves no trace in the memory.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from synthetic import power_law_dataset

from dpmpn.config import Config, with_overrides
from dpmpn.data.dataset import Dataset
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.lab.bench import bench

SIZES = (100_000, 1_000_000, 10_000_000)


def configuration() -> Config:
    return with_overrides(Config(), {"adam": "rows"})


def prepare(size: int, folder: Path) -> None:
    """Save a graph and some of its queries."""
    dataset = power_law_dataset(size)
    dataset.graph.save(folder / "graph")
    np.save(folder / "train.npy", dataset.train[:50_000])
    np.save(folder / "test.npy", dataset.test)


def measure_one(folder: Path, seconds: float) -> dict:
    graph = KnowledgeGraph.open(folder / "graph")
    train, test = np.load(folder / "train.npy"), np.load(folder / "test.npy")
    empty = np.empty((0, 3), np.int32)
    dataset = Dataset("synthetic", graph, train, empty, test, both_directions=True)
    report = bench(replace(dataset, name=folder.name), configuration(), seconds)
    dims = configuration().model.n_dims
    # In this process: the graph, the table and two moments; mapped a second time by the worker: graph and table.
    graph_bytes = graph.n_edges * (graph.tails.itemsize + graph.relations.itemsize) + graph.offsets.nbytes
    table_bytes = graph.n_entities * dims * 4
    report["graph_and_table_bytes"] = 3 * graph_bytes + 4 * table_bytes + graph.n_entities * 8
    report["other_bytes"] = report["peak_rss_bytes"] - report["graph_and_table_bytes"]
    return report


def measure(sizes: list[int], seconds: float, rounds: int) -> list[dict]:
    """Best round of each size by training rate."""
    reports: dict[int, list[dict]] = {size: [] for size in sizes}
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            (Path(folder) / str(size)).mkdir()
            prepare(size, Path(folder) / str(size))
        for _ in range(rounds):
            for size in sizes:
                command = [sys.executable, __file__, "--one", f"{folder}/{size}", "--seconds", str(seconds)]
                reports[size].append(json.loads(subprocess.check_output(command)))
                print(size, reports[size][-1]["train_queries_per_s"], file=sys.stderr, flush=True)
    return [max(found, key=lambda report: report["train_queries_per_s"]) for found in reports.values()]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="edges, inverses included")
    parser.add_argument("--seconds", type=float, default=10, help="for each rate")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--one", type=Path, help="measure the graph in this folder and print the report")
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure_one(arguments.one, arguments.seconds)))
        return
    sizes = measure(sorted(arguments.sizes), arguments.seconds, arguments.rounds)
    report: dict = {"sizes": sizes}
    for name in ("train", "evaluate"):
        key = f"{name}_queries_per_s"
        report[f"{name}_cost_ratio"] = sizes[0][key] / sizes[-1][key]
    text = json.dumps(report, indent=2)
    if arguments.json:
        arguments.json.write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
