"""The model for any graph, tuned to a graph, beside the stronger one from scratch: validation over time, and test.

    python benchmarks/tuning.py DATA/UMLS --runs RUNS --minutes 10 --scratch-minutes 30 --out FILE

Both are trained by `dpmpn train` with the settings that suit the dataset, on `--threads` cores, until they end by
themselves or their minutes are over; what is asked on test is the best model of validation. Runs that are in the folder
already are measured as they are.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import dpmpn

SHOWN = (0.25, 0.5, 1, 2, 3, 5, 7, 10, 15, 20, 30)  # minutes of CPU time, which other work does not change


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--scratch-minutes", type=float, default=30)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    name = given.folder.name
    tuned = _trained(given, given.runs / f"{name}-tuned", given.minutes, "--from", "any-graph")
    scratch = _trained(given, given.runs / f"{name}-scratch", given.scratch_minutes, "--model", "strong")
    untuned = (
        dpmpn.Reasoner.pretrained(threads=given.threads)
        .on(given.folder)
        .evaluate("test")["both"]["realistic"]
    )
    result = {
        "command": f"python benchmarks/tuning.py {name} --minutes {given.minutes:g} "
        f"--scratch-minutes {given.scratch_minutes:g} --threads {given.threads}",
        "dataset": name,
        "untrained_test": _short(untuned),
        "tuned": tuned,
        "from_scratch": scratch,
    }
    given.out.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


def _trained(given: argparse.Namespace, run: Path, minutes: float, *how: str) -> dict[str, Any]:
    """The best validation after each of some minutes, and the test scores of the best model."""
    if not (run / "best.json").exists():
        command = [sys.executable, "-m", "dpmpn", "train", str(given.folder), *how, "--out", str(run)]
        limits = ["--max-minutes", f"{minutes:g}", "--threads", str(given.threads)]
        subprocess.run([*command, *limits], check=True)
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    validations = [line for line in lines if line["kind"] == "validation"]
    best_after = {}
    for limit in SHOWN:
        if limit <= lines[-1]["cpu_seconds"] / 60:
            before = [line["mrr"] for line in validations if line["cpu_seconds"] <= 60 * limit]
            best_after[f"{limit:g}"] = round(max(before), 4) if before else None
    test = dpmpn.Reasoner.load(run, threads=given.threads).evaluate("test")["both"]["realistic"]
    return {
        "minutes": round(lines[-1]["seconds"] / 60, 1),
        "cpu_minutes": round(lines[-1]["cpu_seconds"] / 60, 1),
        "best_validation_mrr_after_cpu_minutes": best_after,
        "test": _short(test),
    }


def _short(values: dict[str, float]) -> dict[str, float]:
    return {key: round(value, 4) for key, value in values.items()}


if __name__ == "__main__":
    main()
