"""Where a model fails: first places by the head's number of edges, and by how many answers were held out together.

Test facts are asked as in `dpmpn evaluate`; training facts are asked without themselves, one batch at a time.
"""

import argparse
from pathlib import Path

import numpy as np

from dpmpn.evaluate.evaluator import known_answers, rank_queries
from dpmpn.evaluate.known import KnownAnswers
from dpmpn.files import write_json
from dpmpn.reasoner.reasoner import Reasoner

DEGREES = (1, 5, 10, 20, 50, 200)
HELD_OUT = (1, 2, 3, 6, 11)  # answers of the same question in validation and test, with the one asked for


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--queries", type=int, default=3000, help="drawn from each split")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    reasoner = Reasoner.load(arguments.run)
    report = {split: measured(reasoner, split, arguments.queries) for split in ("test", "train")}
    reasoner.engine.close()
    for split, found in report.items():
        for what, rows in found.items():
            print(split, what, rows)
    if arguments.json:
        write_json(arguments.json, {"run": str(arguments.run), **report})


def measured(reasoner: Reasoner, split: str, count: int) -> dict:
    dataset = reasoner.dataset
    queries = dataset.queries(split)
    queries = queries[np.random.default_rng(0).permutation(len(queries))[:count]]
    first = rank_queries(reasoner.engine, known_answers(dataset), queries).realistic == 1
    degrees = np.diff(dataset.graph.offsets)[queries[:, 0]]
    held_out = KnownAnswers.from_triples(dataset.queries("valid"), dataset.queries("test"))
    offsets, _ = held_out.lookup(queries[:, 0], queries[:, 1])
    return {
        "queries": len(queries),
        "hits_at_1": float(first.mean()),
        "by_degree_of_head": by_bucket(first, degrees, DEGREES),
        "by_answers_held_out": by_bucket(first, np.diff(offsets), HELD_OUT),
    }


def by_bucket(first: np.ndarray, values: np.ndarray, starts: tuple[int, ...]) -> list[dict]:
    """Share of first places among the queries whose value is from one start up to the next."""
    rows = []
    for low, high in zip(starts, (*starts[1:], np.inf), strict=True):
        within = (values >= low) & (values < high)
        if within.any():
            rows.append({"from": low, "queries": int(within.sum()), "hits_at_1": float(first[within].mean())})
    return rows


if __name__ == "__main__":
    main()
