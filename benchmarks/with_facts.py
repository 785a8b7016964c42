"""What it costs to ask a model on a graph with other facts: a synthetic graph, weights that were never trained.

python benchmarks/with_facts.py --edges 10000000 --out benchmarks/results/with-facts.json
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
from synthetic import power_law_dataset

from dpmpn.config import Config
from dpmpn.models import build_model
from dpmpn.reasoner.reasoner import Reasoner
from dpmpn.train.checkpoint import save_best
from dpmpn.train.run_folder import RunFolder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--edges", type=int, default=10_000_000)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        reasoner = _untrained(Path(folder) / "run", arguments.edges)
        results = {
            "command": f"python benchmarks/with_facts.py --edges {arguments.edges}",
            "edges": reasoner.graph.n_edges,
            "entities": reasoner.graph.n_entities,
            "changes": [_measure(reasoner, count) for count in (1_000, 100_000)],
        }
    arguments.out.write_text(json.dumps(results, indent=2) + "\n")
    print(json.dumps(results, indent=2))


def _untrained(folder: Path, n_edges: int) -> Reasoner:
    dataset, config = power_law_dataset(n_edges), Config()
    graph = dataset.graph
    run = RunFolder.create(folder, dataset, config)
    save_best(run.path, build_model(graph.n_entities, graph.n_relations, config.model, 0), 0, None)
    reasoner = Reasoner.load(folder)
    reasoner.predict(graph.entities.name(0), graph.relation_names.name(0))  # compiles kernels
    return reasoner


def _measure(reasoner: Reasoner, count: int) -> dict[str, float]:
    """Seconds for so many facts added and as many removed, and for the first and the next answers."""
    rng, train = np.random.default_rng(0), reasoner.dataset.train
    removed = [tuple(map(str, row)) for row in train[rng.choice(len(train), count, replace=False)].tolist()]
    n_entities = reasoner.graph.n_entities
    heads, tails = rng.integers(0, n_entities, (2, count)).astype(str)
    heads[: count // 10] = [f"new{i}" for i in range(count // 10)]
    added = [(str(head), "0", str(tail)) for head, tail in zip(heads, tails, strict=True)]
    started = time.perf_counter()
    changed = reasoner.with_facts(add=added, remove=removed)
    seconds = time.perf_counter() - started
    answers = []
    for name in ("new0", *tails[:20].tolist()):
        began = time.perf_counter()
        changed.predict(str(name), "0")
        answers.append(time.perf_counter() - began)
    return {
        "added": changed.changes.added,
        "removed": changed.changes.removed,
        "new_entities": len(changed.changes.new_entities),
        "with_facts_seconds": round(seconds, 2),
        "first_answer_seconds": round(answers[0], 2),
        "next_answers_seconds": round(float(np.median(answers[1:])), 3),
    }


if __name__ == "__main__":
    main()
