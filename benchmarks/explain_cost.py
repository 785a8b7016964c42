"""What an explanation costs over plain asking: the same questions, one after the other, in one process.

    python benchmarks/explain_cost.py runs/wn18rr-0 --json benchmarks/results/explain-cost-wn18rr.json

Asking without a trace, asking with one (as `predict` does), and what explaining the first answer adds: paths, key
facts, and both subgraphs with the attention of every node and the flow of every edge.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

from dpmpn.files import write_whole
from dpmpn.reasoner.reasoner import Reasoner

WARM_UP = 5


def timed(reasoner: Reasoner, head: int, relation: int) -> tuple[float, float, float, float]:
    """Milliseconds: engine without trace, engine with trace, predict, explain."""
    engine, names = reasoner.engine, reasoner.graph
    batch = engine.asking_batch(np.array([head]), np.array([relation]))
    marks = [time.perf_counter()]
    engine.answer(batch)
    marks.append(time.perf_counter())
    engine.trace(batch)
    marks.append(time.perf_counter())
    answers = reasoner.predict(names.entities.name(head), names.relation_names.name(relation))
    marks.append(time.perf_counter())
    explanation = answers.explain()
    _ = explanation.paths, explanation.key_facts, explanation.pruned, explanation.full
    marks.append(time.perf_counter())
    return tuple(1e3 * np.diff(marks))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    reasoner = Reasoner.load(options.run)
    test = reasoner.dataset.test
    asked = test[np.random.default_rng(0).permutation(len(test))[: options.questions + WARM_UP]]
    asked = asked[reasoner.graph.degree(asked[:, 0]) > 0]
    rows = np.array([timed(reasoner, int(head), int(relation)) for head, relation, _ in asked])[WARM_UP:]
    columns = ("answer_ms", "trace_ms", "predict_ms", "explain_ms")
    report = {
        "run": str(options.run),
        "questions": len(rows),
        "median": dict(zip(columns, np.median(rows, axis=0).round(2).tolist(), strict=True)),
        "mean": dict(zip(columns, rows.mean(0).round(2).tolist(), strict=True)),
        "added": {
            "of_median": round(float(np.median(rows[:, 3]) / np.median(rows[:, 2])), 3),
            "of_mean": round(float(rows[:, 3].mean() / rows[:, 2].mean()), 3),
        },
    }
    print(json.dumps(report, indent=2))
    if options.json:
        write_whole(options.json, lambda path: path.write_text(json.dumps(report, indent=2) + "\n", "utf-8"))


if __name__ == "__main__":
    main()
