"""Cost per query on synthetic graphs of growing size, same horizons: it must not grow.

    python benchmarks/scale.py --json benchmarks/results/scale.json

Every size is measured in the same run, round robin, so that a busy machine slows all of them alike.
"""

import argparse
import json
from pathlib import Path

from dpmpn.bench import bench
from dpmpn.config import Config, with_overrides
from dpmpn.data.synthetic import power_law_dataset

SIZES = (100_000, 1_000_000, 10_000_000)


def measure(sizes: tuple[int, ...], seconds: float, rounds: int) -> dict:
    config = with_overrides(Config(), {"adam": "rows"})
    reports: dict[int, list[dict]] = {size: [] for size in sizes}
    for _ in range(rounds):
        for size in sizes:
            reports[size].append(bench(power_law_dataset(size), config, seconds))
            print(size, {k: v for k, v in reports[size][-1].items() if k.endswith("per_s")}, flush=True)
    return {"sizes": [_best(reports[size], config) for size in sizes]}


def _best(reports: list[dict], config: Config) -> dict:
    """Best of the rounds for rates, and what is left of the memory without graph and embedding table."""
    best = reports[0] | {
        key: max(report[key] for report in reports)
        for key in ("train_queries_per_s", "evaluate_queries_per_s")
    }
    graph = best["edges"] * (4 + 2) + best["entities"] * 8
    table = best["entities"] * config.model.n_dims * 4
    # The table, two moments and, in memory shared by the processes and counted in each, table and graph.
    best["graph_and_table_bytes"] = graph + 3 * table
    return best


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="edges, inverses included")
    parser.add_argument("--seconds", type=float, default=10, help="for each rate")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", type=Path, required=True)
    arguments = parser.parse_args()
    report = measure(tuple(arguments.sizes), arguments.seconds, arguments.rounds)
    smallest, largest = report["sizes"][0], report["sizes"][-1]
    for name in ("train", "evaluate"):
        report[f"{name}_cost_ratio"] = smallest[f"{name}_queries_per_s"] / largest[f"{name}_queries_per_s"]
    arguments.json.write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps({k: v for k, v in report.items() if k.endswith("ratio")}))


if __name__ == "__main__":
    main()
