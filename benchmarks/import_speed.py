"""How fast a large gzipped file becomes a dataset, and how fast that opens.

    python benchmarks/import_speed.py --facts 10000000 --out benchmarks/results/import.json

Writes the file first (not counted), runs `dpmpn import` and `dpmpn datasets stats` as processes of their own, and
opens the dataset in another.
"""

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

_OPEN = """
import time
from dpmpn.data.importer import load_dataset
started = time.perf_counter()
dataset = load_dataset({folder!r})
name = dataset.graph.entities.name(dataset.graph.n_entities // 2)
assert dataset.graph.entities.id(name) == dataset.graph.n_entities // 2
print(time.perf_counter() - started)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--facts", type=int, default=10_000_000)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        facts, graph = Path(folder) / "facts.tsv.gz", Path(folder) / "graph"
        _write(facts, arguments.facts)
        imported = _run("import", str(facts), "--out", str(graph))
        described = _run("datasets", "stats", str(graph))
        opened = subprocess.run(
            [sys.executable, "-c", _OPEN.format(folder=str(graph))],
            capture_output=True,
            text=True,
            check=True,
        )
        report = json.loads((graph / "import.json").read_text())
        results = {
            "command": f"python benchmarks/import_speed.py --facts {arguments.facts}",
            "facts": arguments.facts,
            "packed_bytes": facts.stat().st_size,
            **{key: report[key] for key in ("entities", "relations", "train", "valid", "test", "duplicates")},
            "import": imported,
            "stats": described,
            "open_seconds": float(opened.stdout),
            "graph_bytes": sum(file.stat().st_size for file in graph.rglob("*") if file.is_file()),
            "cores": os.cpu_count(),
        }
    arguments.out.write_text(json.dumps(results, indent=2) + "\n")
    print(json.dumps(results, indent=2))


def _write(path: Path, n_facts: int) -> None:
    """Facts between entities of which some are named far more often than others."""
    rng = np.random.default_rng(0)
    n_entities, n_relations = max(n_facts // 5, 2), 500
    with gzip.open(path, "wb", compresslevel=3) as file:
        for start in range(0, n_facts, 1_000_000):
            count = min(1_000_000, n_facts - start)
            ends = (n_entities * rng.random((2, count)) ** 2).astype(np.int64)
            relations = (n_relations * rng.random(count) ** 3).astype(np.int64)
            frame = pl.DataFrame({"head": ends[0], "relation": relations, "tail": ends[1]})
            named = frame.select(
                pl.format(letter + "{}", pl.col(column)).alias(column)
                for letter, column in zip("QPQ", frame.columns, strict=True)
            )
            file.write(named.write_csv(separator="\t", include_header=False).encode())


def _run(*arguments: str) -> dict[str, float]:
    """Wall seconds, CPU seconds and peak memory of a command."""
    started = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "dpmpn", *arguments], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"dpmpn {' '.join(arguments)} ended with {process.returncode}")
    cpu = usage.ru_utime + usage.ru_stime
    return {
        "seconds": round(time.perf_counter() - started, 2),
        "cpu_seconds": round(cpu, 2),
        "peak_bytes": usage.ru_maxrss * 1024,
    }


if __name__ == "__main__":
    main()
