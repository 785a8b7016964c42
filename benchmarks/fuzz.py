"""Feeds everything that reads broken input, for a long time: runs the property tests of tests/**/test_fuzz_*.py.

    python benchmarks/fuzz.py --minutes 30 --guided --out benchmarks/results/fuzz.json

Each round runs all property tests with another seed and more examples than the test run does, until the time is over.
With `--guided` the second half of the time is atheris', which keeps inputs that reach new code and changes those; each
property has a process of its own and an equal share. The result counts the cases tried and lists the failures of each
target; the exit code is 1 if there are any.
"""

import argparse
import ast
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

import hypothesis
import pytest

ROOT = Path(__file__).resolve().parents[1]
MEMORY = 6000  # MB a process may take


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
        if self.cases and time.monotonic() > self.until:
            pytest.skip("the time is over")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what failed, with the end of the story, where hypothesis shows the smallest case."""
        if report.failed:
            self._keep(report)

    def _keep(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        found = {"test": report.nodeid, "seed": self.seed, "text": report.longreprtext[-3000:]}
        self.failures.setdefault(_target(report.nodeid), []).append(found)

    def _prepare(self, item: Any) -> None:
        function = _prepared(item.obj, self.examples)
        handle = function.hypothesis
        inner = getattr(handle.inner_test, "uncounted", handle.inner_test)  # modules live on between rounds

        def counted(*arguments: Any, **values: Any) -> Any:
            self.cases[_target(item.nodeid)] += 1
            return inner(*arguments, **values)

        counted.uncounted = inner  # type: ignore[attr-defined]
        handle.inner_test = counted


def _prepared(test: Any, examples: int) -> Any:
    """The function of a property test, with at least so many examples, and others each time."""
    function = getattr(test, "__func__", test)  # of a method of a test class
    own = getattr(function, "_hypothesis_internal_use_settings", None) or hypothesis.settings()
    function._hypothesis_internal_use_settings = hypothesis.settings(
        own, max_examples=max(examples, own.max_examples), database=None, deadline=None, derandomize=False
    )
    return function


def _target(nodeid: str) -> str:
    return Path(nodeid.partition("::")[0]).stem.removeprefix("test_fuzz_")


def files_of(only: str) -> list[Path]:
    """The files of property tests, or those whose name has a part."""
    return [file for file in sorted((ROOT / "tests").rglob("test_fuzz_*.py")) if only in _target(file.name)]


def fuzz(minutes: float, examples: int, only: str = "") -> dict[str, Any]:
    """Run rounds until the time is over; what was tried and what failed."""
    files = files_of(only)
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


def fuzz_guided(minutes: float, only: str = "") -> dict[str, Any]:
    """Give each property its share of the time in a process of its own; what was tried and what failed."""
    started, targets = time.monotonic(), {}
    properties = [(file, name) for file in files_of(only) for name in _properties(file)]
    for number, (file, name) in enumerate(properties):
        left = 60 * minutes - (time.monotonic() - started)
        seconds = left / (len(properties) - number)
        found = _guided_in_a_process(file, name, seconds)
        print(
            f"{time.monotonic() - started:.0f} s, {_target(file.name)}, {name}: {found['cases']:,} cases",
            flush=True,
        )
        fresh = {"cases": 0, "failures": 0, "slowest_seconds": 0.0, "failed": []}
        target = targets.setdefault(_target(file.name), fresh)
        target["slowest_seconds"] = round(max(target["slowest_seconds"], found["slowest"]), 2)
        target["cases"] += found["cases"]
        target["failures"] += len(found["failed"])
        target["failed"] += found["failed"]
    return {
        "minutes": round((time.monotonic() - started) / 60, 2),
        "properties": len(properties),
        "cases": sum(target["cases"] for target in targets.values()),
        "failures": sum(target["failures"] for target in targets.values()),
        "targets": dict(sorted(targets.items())),
    }


def _properties(file: Path) -> list[str]:
    """Names of a file's property tests, by its text: importing it would trace nothing afterwards."""
    tree = ast.parse(file.read_text("utf-8"))
    tests = (
        node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    )
    return [test.name for test in tests if any("given(" in ast.unparse(each) for each in test.decorator_list)]


def _guided_in_a_process(file: Path, name: str, seconds: float) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "found.json"
        command = [
            sys.executable,
            __file__,
            "--property",
            f"{file}::{name}",
            "--seconds",
            str(seconds),
            "--out",
            str(out),
        ]
        ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace")
        if out.exists():
            return dict(json.loads(out.read_text("utf-8")))
        text = f"ended with {ended.returncode}: {ended.stderr[-3000:]}"
        return {"cases": 0, "slowest": 0.0, "failed": [{"test": name, "text": text}]}


def _with_kernels() -> list[str]:
    """The modules that are not traced, as numba cannot compile what is traced."""
    source = ROOT / "src"
    paths = [path for path in (source / "dpmpn").rglob("*.py") if "kernel" in path.read_text("utf-8")]
    return [
        ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__") for path in paths
    ]


def guide(property: str, seconds: float, out: Path) -> None:
    """Fuzz one property in this process, which ends when the time is over."""
    import atheris

    file, _, name = property.partition("::")
    sys.path[:0] = [str(Path(file).parent), str(ROOT / "tests")]
    with atheris.instrument_imports(include=["dpmpn"], exclude=_with_kernels()):
        test = getattr(importlib.import_module(Path(file).stem), name)
    _prepared(test, 1)
    cases, slowest, failed, until = 0, 0.0, dict[str, dict[str, str]](), time.monotonic() + seconds

    def one(content: bytes) -> None:
        nonlocal cases, slowest
        began = time.monotonic()
        if began > until:
            found = {"cases": cases, "slowest": slowest, "failed": list(failed.values())}
            out.write_text(json.dumps(found), "utf-8")
            os._exit(0)
        try:
            cases += test.hypothesis.fuzz_one_input(content) is not None  # None: too short to be a case
        except Exception:
            cases += 1
            text = traceback.format_exc()
            last = text.rpartition('  File "')[2].partition("\n")[0]  # one of each place is enough
            failed.setdefault(last, {"test": name, "text": text[-3000:], "input": content.hex()[:2000]})
        slowest = max(slowest, time.monotonic() - began)

    atheris.Setup(["fuzz", "-max_len=4096", "-len_control=0", "-timeout=120", f"-rss_limit_mb={MEMORY}"], one)
    atheris.Fuzz()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0, help="how long")
    parser.add_argument("--examples", type=int, default=500, help="cases of each property in a round")
    parser.add_argument("--only", default="", help="targets whose name has this part")
    parser.add_argument(
        "--guided", action="store_true", help="half of the time with atheris, which must be there"
    )
    parser.add_argument("--property", help=argparse.SUPPRESS)  # FILE::TEST, for a process of its own
    parser.add_argument("--seconds", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, required=True, help="JSON file for the result")
    given = parser.parse_args()
    if given.property:
        guide(given.property, given.seconds, given.out)
    minutes = given.minutes / 2 if given.guided else given.minutes
    result = fuzz(minutes, given.examples, given.only)
    if given.guided:
        result["guided"] = fuzz_guided(minutes, given.only)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(result, indent=2) + "\n")
    failures = result["failures"] + result.get("guided", {}).get("failures", 0)
    print(
        f"{result['cases'] + result.get('guided', {}).get('cases', 0):,} cases, {failures} failures; see {given.out}"
    )
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
