"""How long to the first explained answer, without training: from a file of facts, and of the run in the package.

    python benchmarks/cold_start.py --out benchmarks/results/cold-start.json
    python benchmarks/cold_start.py --demo --out benchmarks/results/cold-start-demo.json

Writes a TSV of made-up facts, as many as FB15K-237 has entities and relations, and runs `dpmpn ask FILE HEAD RELATION
--why` in processes of its own: with kernels that an earlier run compiled, and once with none, as right after
installing. With --demo it runs `dpmpn predict demo Serbia in_subregion --why` instead. CPU seconds say how much work it
is, whatever else the machine does meanwhile.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

N_ENTITIES, N_RELATIONS = 14_541, 237


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--facts", type=int, default=300_000)
    parser.add_argument("--demo", action="store_true")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file, kernels = Path(folder) / "facts.tsv", Path(folder) / "kernels"
        if arguments.demo:
            asked, given = ["predict", "demo", "Serbia", "in_subregion"], "--demo"
        else:
            asked, given = ["ask", str(file), "/e/0", "/r/0"], f"--facts {arguments.facts}"
            _write(file, arguments.facts)
        first = _ask(asked, kernels)  # which leaves its kernels to the others
        runs = [_ask(asked, kernels) for _ in range(arguments.runs)]
    results = {
        "command": f"python benchmarks/cold_start.py {given} --runs {arguments.runs}",
        **({} if arguments.demo else {"facts": arguments.facts}),
        "median": {key: round(statistics.median(run[key] for run in runs), 2) for key in first},
        "runs": runs,
        "first_start_ever": first,
        "cores": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 1),  # of other work, too
    }
    arguments.out.write_text(json.dumps(results, indent=2) + "\n")
    print(json.dumps(results, indent=2))


def _write(path: Path, n_facts: int) -> None:
    """Facts between entities of which some are named far more often than others; few are repeated."""
    rng = np.random.default_rng(0)
    ends = (N_ENTITIES * rng.random((2, n_facts)) ** 2).astype(np.int64)
    relations = (N_RELATIONS * rng.random(n_facts) ** 2).astype(np.int64)
    frame = pl.DataFrame({"head": ends[0], "relation": relations, "tail": ends[1]})
    named = frame.select(
        pl.format(f"/{letter}/{{}}", pl.col(column)).alias(column)
        for letter, column in zip("ere", frame.columns, strict=True)
    )
    named.write_csv(path, separator="\t", include_header=False)


def _ask(asked: list[str], kernels: Path) -> dict[str, float]:
    """Wall seconds, CPU seconds and peak memory of a question with its reasons."""
    command = [sys.executable, "-m", "dpmpn", *asked, "--why"]
    started = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, env={**os.environ, "NUMBA_CACHE_DIR": str(kernels)}
    )
    assert process.stdout is not None
    said = process.stdout.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode or "Why " not in said:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}: {said}")
    return {
        "seconds": round(time.perf_counter() - started, 2),
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 2),
        "peak_bytes": usage.ru_maxrss * 1024,
    }


if __name__ == "__main__":
    main()
