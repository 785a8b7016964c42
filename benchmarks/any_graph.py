"""The model for any graph, without training: how good it is on graphs, and how fast.

python benchmarks/any_graph.py graphs DATA/any-graph-judge/* --out benchmarks/results/any-graph-judge.json
python benchmarks/any_graph.py speed DATA/FB15K-237 DATA/WN18RR --out benchmarks/results/any-graph-speed.json

`--weights FOLDER` takes others than those of the package. A folder's `train` is the graph, its `test` is asked for in
both directions, filtered with all facts of the folder; ranks are realistic.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import dpmpn
from dpmpn.data.importer import load_dataset

# MRR and hits at 10 without training of ULTRA (3g), Galkin et al., ICLR 2024, as its table of graphs has them.
ULTRA = {
    "fb237_v2_ind": (0.512, 0.700),
    "WN18RR_v2_ind": (0.663, 0.765),
    "nell_v3_ind": (0.515, 0.702),
    "NL-50": (0.407, 0.570),
    "WK-25": (0.316, 0.532),
    "FB-50": (0.338, 0.543),
    "wdsinger": (0.382, 0.498),
}
ASKED = 4_000  # facts that are asked for to measure speed; relations are counted on the way


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["graphs", "speed"])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--weights", type=Path, help="a folder of `dpmpn pretrain` instead of the package's")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    measure = {"graphs": graphs, "speed": speed}[arguments.what]
    result = {
        "command": f"python benchmarks/any_graph.py {arguments.what} {' '.join(f.name for f in arguments.folders)}",
        "weights": arguments.weights.name if arguments.weights else "any-graph",
        **measure(arguments.folders, arguments.weights),
    }
    arguments.out.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


def graphs(folders: list[Path], weights: Path | None) -> dict[str, Any]:
    """Quality on each graph, and the mean."""
    rows = []
    for folder in folders:
        found = _reasoner(weights).on(folder).evaluate("test")["both"]
        row = {"graph": folder.name, "queries": found["queries"], **_short(found["realistic"])}
        row |= {"coverage": round(found["coverage"], 4)}
        if folder.name in ULTRA:
            row["ultra_mrr"], row["ultra_hits_at_10"] = ULTRA[folder.name]
        print(json.dumps(row), file=sys.stderr)
        rows.append(row)
    numbers = [key for key in rows[0] if key not in ("graph", "queries") and all(key in row for row in rows)]
    mean = {key: round(float(np.mean([row[key] for row in rows])), 4) for key in numbers}
    return {"graphs": rows, "mean": mean}


def speed(folders: list[Path], weights: Path | None) -> dict[str, Any]:
    """Questions a second of one core, in batches; the same core counts and asks, and kernels are compiled before."""
    rows = []
    for folder in folders:
        dataset = load_dataset(str(folder))
        reasoner = _reasoner(weights, threads=1).on(dataset)
        queries = dataset.queries("test")
        some = np.random.default_rng(0).permutation(len(queries))[: 2 * ASKED]
        queries = queries[some[np.argsort(queries[some, 1], kind="stable")]]
        engine, size = reasoner.engine, reasoner.config.asking_batch_size
        engine.answer(engine.asking_batch(queries[:size, 0], queries[:size, 1]))
        began = time.process_time()
        for start in range(0, len(queries), size):
            part = queries[start : start + size]
            engine.answer(engine.asking_batch(part[:, 0], part[:, 1]))
        seconds = time.process_time() - began
        rows.append(
            {
                "graph": folder.name,
                "questions": len(queries),
                "questions_per_cpu_second": round(len(queries) / seconds, 1),
            }
        )
    return {"graphs": rows}


def _reasoner(weights: Path | None, **settings: Any) -> dpmpn.Reasoner:
    return dpmpn.Reasoner.pretrained(weights, **settings)


def _short(values: dict[str, float]) -> dict[str, float]:
    return {key: round(value, 4) for key, value in values.items()}


if __name__ == "__main__":
    main()
