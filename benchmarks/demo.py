"""Whether the demo answers rightly whatever the random draws and the number of threads are.

    python benchmarks/demo.py --runs runs/seeds --json benchmarks/results/demo-seeds.json

Trains on the bundled graph as `dpmpn train countries` does, with five seeds and with 1 and 2 threads, and records the
answers to the demo's questions and the MRR on the test facts. A training that is there already is not made again.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

RIGHT = {"Serbia": "Southern Europe", "Peru": "South America", "Kyrgyzstan": "Central Asia"}


def main() -> None:
    """Train, ask, measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--runs", type=Path, required=True, help="folder for the trainings")
    parser.add_argument("--json", type=Path, required=True)
    options = parser.parse_args()
    found = []
    for threads in options.threads:
        for seed in options.seeds:
            found.append(measured(options.runs / f"seed{seed}-threads{threads}", seed, threads))
            print(json.dumps(found[-1]), flush=True)
    mrr = [run["test_mrr"] for run in found]
    result = {
        "command": "python benchmarks/demo.py --runs DIR --json FILE",
        "cores": os.cpu_count(),
        "all_showcase_answers_right": all(a["right"] for run in found for a in run["answers"].values()),
        "test_mrr": {"least": min(mrr), "mean": round(sum(mrr) / len(mrr), 4), "most": max(mrr)},
        "runs": found,
    }
    options.json.write_text(json.dumps(result, indent=2) + "\n")


def measured(run: Path, seed: int, threads: int) -> dict[str, Any]:
    """One training: what it answers, and how good it is."""
    if not (run / "best.json").exists():
        dpmpn("train", "countries", "--seed", str(seed), "--threads", str(threads), "--out", str(run))
    best = json.loads((run / "best.json").read_text())
    answers = {}
    for country, right in RIGHT.items():
        first = asked("predict", str(run), country, "in_subregion", "--top", "1")[0]
        answers[country] = {"answer": first["answer"], "right": first["answer"] == right}
    test = asked("evaluate", str(run))["both"]["realistic"]
    return {
        "seed": seed,
        "threads": threads,
        "answers": answers,
        "test_mrr": round(test["mrr"], 4),
        "validation_mrr": round(best["validation"]["mrr"], 4),
        "queries_until_best": best["position"],
    }


def asked(*words: str) -> Any:
    """What a command writes as JSON."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "answer.json"
        dpmpn(*words, "--json", str(file))
        return json.loads(file.read_text())


def dpmpn(*words: str) -> None:
    """Run a command; what it says is shown only if it fails."""
    ended = subprocess.run(
        [sys.executable, "-m", "dpmpn", *words], capture_output=True, text=True, check=False
    )
    if ended.returncode:
        raise SystemExit(ended.stderr)


if __name__ == "__main__":
    main()
