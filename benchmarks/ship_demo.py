"""Make the run `demo` that comes with the package: train it and copy what asking needs.

    python benchmarks/ship_demo.py --runs runs/ship --out src/dpmpn/demo

It is smaller than the model that `dpmpn train countries` makes (16 dimensions, relation vectors turned instead of one
for each step), to be light to download. Of several seeds the one with the best validation MRR is shipped.
"""

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path

SETTINGS = ["--n-dims", "16", "--relation-vectors", "turned", "--threads", "1"]
KEPT = ["config.json", "dataset.json", "versions.json", "metrics.jsonl", "best.json", "best-*.safetensors"]
KEPT += ["calibration.json"]
KEPT += ["graph/*", "triples/*"]


def main() -> None:
    """Train each seed that was not trained yet, and copy the best."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--runs", type=Path, required=True, help="folder for the trainings")
    parser.add_argument(
        "--out", type=Path, required=True, help="folder of the shipped run, which is replaced"
    )
    options = parser.parse_args()
    runs = [trained(options.runs / f"seed{seed}", seed) for seed in options.seeds]
    best = max(runs, key=lambda run: json.loads((run / "best.json").read_text())["validation"]["mrr"])
    shutil.rmtree(options.out, ignore_errors=True)
    for pattern in KEPT:
        for file in best.glob(pattern):
            target = options.out / file.relative_to(best)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
    size = sum(file.stat().st_size for file in options.out.rglob("*") if file.is_file())
    print(f"{best} is shipped: {size:,} bytes")


def trained(run: Path, seed: int) -> Path:
    """The folder of a run with this seed, which is trained if it is not there."""
    if not (run / "best.json").exists():
        words = ["train", "countries", *SETTINGS, "--seed", str(seed), "--out", str(run)]
        subprocess.run([sys.executable, "-m", "dpmpn", *words], check=True)
    return run


if __name__ == "__main__":
    main()
