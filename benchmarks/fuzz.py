"""Feeds readers and loaders broken input for a long time: the property tests of tests/**/test_fuzz_*.py, over and over.

    python benchmarks/fuzz.py --minutes 10 --out benchmarks/results/fuzz.json

Each round runs all property tests with another seed and more examples than the test run does, until the time is over.
The result counts the cases tried and lists the failures of each target; the exit code is 1 if there are any.
"""

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import hypothesis
import pytest

ROOT = Path(__file__).resolve().parents[1]


class Fuzzer:
    """A pytest plugin: more examples for every property test, each case counted, every failure kept."""

    def __init__(self, examples: int) -> None:
        self.examples = examples
        self.cases: Counter[str] = Counter()
        self.failures: dict[str, list[dict[str, Any]]] = {}
        self.seed = 0
        self.until = 0.0

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep the property tests alone, with another one first in each round: the last round may not end."""
        kept = [item for item in items if hasattr(getattr(item, "obj", None), "hypothesis")]
        first = self.seed % max(len(kept), 1)
        items[:] = kept[first:] + kept[:first]
        for item in items:
            self._prepare(item)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that cannot be imported is a failure, too."""
        if report.failed:
            self._keep(report)

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Nothing new is begun once the time is over."""
        if time.monotonic() > self.until:
            pytest.skip("the time is over")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what failed, with the end of the story, where hypothesis shows the smallest case."""
        if report.failed:
            self._keep(report)

    def _keep(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        found = {"test": report.nodeid, "seed": self.seed, "text": report.longreprtext[-3000:]}
        self.failures.setdefault(_target(report.nodeid), []).append(found)

    def _prepare(self, item: Any) -> None:
        test = item.obj
        function = getattr(test, "__func__", test)  # of a method of a test class
        own = getattr(function, "_hypothesis_internal_use_settings", None) or hypothesis.settings()
        function._hypothesis_internal_use_settings = hypothesis.settings(
            own,
            max_examples=max(self.examples, own.max_examples),
            database=None,
            deadline=None,
            derandomize=False,
        )
        handle = function.hypothesis
        inner = getattr(handle.inner_test, "uncounted", handle.inner_test)  # modules live on between rounds

        def counted(*arguments: Any, **values: Any) -> Any:
            self.cases[_target(item.nodeid)] += 1
            return inner(*arguments, **values)

        counted.uncounted = inner  # type: ignore[attr-defined]
        handle.inner_test = counted


def _target(nodeid: str) -> str:
    return Path(nodeid.partition("::")[0]).stem.removeprefix("test_fuzz_")


def fuzz(minutes: float, examples: int) -> dict[str, Any]:
    """Run rounds until the time is over; what was tried and what failed."""
    files = sorted((ROOT / "tests").rglob("test_fuzz_*.py"))
    plugin, started, rounds = Fuzzer(examples), time.monotonic(), 0
    plugin.until = started + 60 * minutes
    while time.monotonic() < plugin.until:
        plugin.seed = rounds
        options = ["-q", "--no-header", "--tb=short", "-p", "no:cacheprovider", f"--hypothesis-seed={rounds}"]
        pytest.main([*options, f"--rootdir={ROOT}", *map(str, files)], plugins=[plugin])
        rounds += 1
        print(
            f"{time.monotonic() - started:.0f} s, {rounds} rounds, {plugin.cases.total():,} cases", flush=True
        )
        if not plugin.cases:
            raise SystemExit("no property tests were found")
    failed = {target: len(found) for target, found in plugin.failures.items()}
    return {
        "minutes": round((time.monotonic() - started) / 60, 2),
        "rounds": rounds,
        "cases": plugin.cases.total(),
        "failures": sum(failed.values()),
        "targets": {
            target: {
                "cases": plugin.cases[target],
                "failures": failed.get(target, 0),
                "failed": plugin.failures.get(target, []),
            }
            for target in sorted(plugin.cases | Counter(failed))
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0, help="how long")
    parser.add_argument("--examples", type=int, default=500, help="cases of each property in a round")
    parser.add_argument("--out", type=Path, required=True, help="JSON file for the result")
    given = parser.parse_args()
    result = fuzz(given.minutes, given.examples)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(result, indent=2) + "\n")
    print(f"{result['cases']:,} cases, {result['failures']} failures; see {given.out}")
    sys.exit(bool(result["failures"]))


if __name__ == "__main__":
    main()
