"""Makes every mutant in a copy of the sources and runs the tests that should notice it.

    python tests/mutants/run.py                        # all: one to two hours on one core
    python tests/mutants/run.py slope adam-epsilon     # these, which replaces their results

Prints who is killed and who survives, and keeps it in benchmarks/results/mutants.json. The exit code is 1 if a mutant
survives without an explanation in its list, or is killed in spite of one. Tests must pass without mutants: that is
tried first.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from all_mutants import MUTANTS
from mutation import Mutant

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "mutants.json"


def run_tests(sources: Path, tests: tuple[str, ...], timeout: float) -> tuple[str, str]:
    """How the tests end with a tree of sources ("passed", "failed" or "timeout"), and what failed first."""
    environment = {**os.environ, "PYTHONPATH": str(sources), "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("NUMBA_CACHE_DIR", None)
    options = ["-x", "-q", "-p", "no:cacheprovider", "--tb=no", "-rfE", "--hypothesis-profile=first-failure"]
    command = [sys.executable, "-m", "pytest", *options, *tests]
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, timeout=timeout, capture_output=True, text=True, check=False
        )
    except subprocess.TimeoutExpired:
        return "timeout", f"no end after {timeout:.0f} s"
    if done.returncode == 0:
        return "passed", ""
    first = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    if done.returncode not in (1, 2) or first is None:
        raise RuntimeError(
            f"pytest ended with {done.returncode}:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        )
    return "failed", first.group(1)


def check_imports(sources: Path) -> None:
    """Refuse to go on where tests would import another copy of the program."""
    found = subprocess.run(
        [sys.executable, "-c", "import dpmpn; print(dpmpn.__file__)"],
        env={**os.environ, "PYTHONPATH": str(sources)}, cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    if not found.startswith(str(sources)):
        raise SystemExit(f"Python imports {found.strip()}, not the copy in {sources}")


def try_mutant(mutant: Mutant, base: Path, timeout: float) -> dict[str, Any]:
    """Make a mutant in a copy of the base, compiled functions included, and run its tests."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        sources = Path(folder) / "src"
        shutil.copytree(base, sources)  # keeps the times of files, by which caches know them
        mutant.make(sources)
        started = time.perf_counter()
        outcome, by = run_tests(sources, mutant.tests, timeout)
    return {
        "sentence": mutant.sentence,
        "outcome": "survived" if outcome == "passed" else "killed",
        "by": by,
        "seconds": round(time.perf_counter() - started, 1),
    }


def summary(outcomes: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """What the file of results holds: counts, survivors with their explanations, and each mutant's outcome."""
    kept = {mutant.name: outcomes[mutant.name] for mutant in MUTANTS if mutant.name in outcomes}
    explained = {mutant.name: mutant.survives for mutant in MUTANTS}
    survivors = [name for name, outcome in kept.items() if outcome["outcome"] == "survived"]
    return {
        "mutants": len(MUTANTS),
        "tried": len(kept),
        "killed": len(kept) - len(survivors),
        "survivors": {name: explained[name] for name in survivors},
        "outcomes": kept,
    }


def main() -> int:
    """Try the mutants named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="mutants to try; all without any")
    parser.add_argument("--timeout", type=float, default=900, help="seconds for the tests of a mutant")
    parser.add_argument("--out", type=Path, default=RESULTS, help="file of results")
    arguments = parser.parse_args()
    by_name = {mutant.name: mutant for mutant in MUTANTS}
    if unknown := set(arguments.names) - set(by_name):
        parser.error(f"no such mutants: {', '.join(sorted(unknown))}")
    chosen = [by_name[name] for name in arguments.names] or MUTANTS
    for mutant in chosen:  # before any test runs
        for change in mutant.changes:
            if problem := change.problem(ROOT / "src"):
                parser.error(f"{mutant.name}: {problem}")
    outcomes = {}
    if arguments.names and arguments.out.exists():
        outcomes = json.loads(arguments.out.read_text())["outcomes"]
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        base = Path(folder) / "src"
        shutil.copytree(ROOT / "src", base)
        check_imports(base)
        tests = tuple(dict.fromkeys(path for mutant in chosen for path in mutant.tests))
        outcome, by = run_tests(base, tests, 10 * arguments.timeout)
        if outcome != "passed":
            raise SystemExit(f"without any mutant: {outcome} ({by})")
        for number, mutant in enumerate(chosen, start=1):
            found = outcomes[mutant.name] = try_mutant(mutant, base, arguments.timeout)
            is_right = (found["outcome"] == "survived") == bool(mutant.survives)
            wrong += not is_right
            told = f"{found['outcome']} {found['by']}" + ("" if is_right else "  <-- not as the list says")
            print(f"{number}/{len(chosen)} {mutant.name}: {told} ({found['seconds']} s)", flush=True)
            arguments.out.write_text(json.dumps(summary(outcomes), indent=1) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
