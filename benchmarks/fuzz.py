"""Feeds everything that reads broken input, for a long time: runs the property tests of tests/**/test_fuzz_*.py.

    python benchmarks/fuzz.py --minutes 15 --out benchmarks/results/fuzz.json
    python benchmarks/fuzz.py --minutes 15 --guided --out benchmarks/results/fuzz.json

Rounds run all property tests with another seed each and more examples than the test run has, until the time is over.
With `--guided` it is atheris that makes the inputs: it keeps those that reach new code, and changes them; each property
has an equal share of the time. Every round and every guided property has a process of its own, so that one ended
by what it read is a failure like others. The result counts the cases tried and lists the failures of each target; one
file holds the results of both ways. The exit code is 1 if there are failures.
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
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

ROOT = Path(__file__).resolve().parents[1]
MEMORY = 6000  # MB a process may take
SECONDS_BETWEEN_SAVES = 3.0


class Found:
    """Cases and failures by target, kept in a file so that they outlive this process."""

    def __init__(self, out: Path) -> None:
        self._out, self._saved = out, 0.0
        self.cases: Counter[str] = Counter()
        self.slowest: dict[str, float] = {}
        self.failed: dict[str, list[dict[str, Any]]] = {}

    def add(self, target: str, seconds: float) -> None:
        """Count a case."""
        self.cases[target] += 1
        self.slowest[target] = max(self.slowest.get(target, 0.0), seconds)
        if time.monotonic() > self._saved + SECONDS_BETWEEN_SAVES:
            self.save()

    def fail(self, target: str, **what: Any) -> None:
        """Keep a failure."""
        self.failed.setdefault(target, []).append(what)
        self.save()

    def save(self) -> None:
        """Write what there is."""
        self._out.write_text(json.dumps([self.cases, self.slowest, self.failed]), "utf-8")
        self._saved = time.monotonic()

    def merge(self, other: Path) -> None:
        """Take what another process found."""
        cases, slowest, failed = json.loads(other.read_text("utf-8")) if other.exists() else ({}, {}, {})
        self.cases.update(cases)
        for target, seconds in slowest.items():
            self.slowest[target] = max(self.slowest.get(target, 0.0), seconds)
        for target, found in failed.items():
            self.failed.setdefault(target, []).extend(found)

    def result(self) -> dict[str, Any]:
        """What was tried and what failed."""
        return {
            "cases": self.cases.total(),
            "failures": sum(map(len, self.failed.values())),
            "targets": {
                target: {
                    "cases": self.cases[target],
                    "slowest_seconds": round(self.slowest.get(target, 0.0), 2),
                    "failed": self.failed.get(target, []),
                }
                for target in sorted({*self.cases, *self.failed})
            },
        }


class Round:
    """A pytest plugin: more examples for every property test, each case counted, every failure kept."""

    def __init__(self, seed: int, examples: int, seconds: float, found: Found) -> None:
        self.seed, self.examples, self.found = seed, examples, found
        self.until = time.monotonic() + seconds

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
        if self.found.cases and time.monotonic() > self.until:
            pytest.skip("the time is over")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what failed, with the end of the story, where hypothesis shows the smallest case."""
        if report.failed:
            self._keep(report)

    def pytest_sessionfinish(self) -> None:
        """Nothing is lost."""
        self.found.save()

    def _keep(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        text = report.longreprtext[-3000:]
        self.found.fail(_target(report.nodeid), test=report.nodeid, seed=self.seed, text=text)

    def _prepare(self, item: Any) -> None:
        handle = _prepared(item.obj, self.examples).hypothesis
        inner = handle.inner_test

        def counted(*arguments: Any, **values: Any) -> Any:
            began = time.monotonic()
            try:
                return inner(*arguments, **values)
            finally:
                self.found.add(_target(item.nodeid), time.monotonic() - began)

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


def run_round(seed: int, examples: int, seconds: float, only: str, out: Path) -> None:
    """Run all property tests once in this process."""
    options = ["-q", "--no-header", "--tb=short", "-p", "no:cacheprovider", f"--hypothesis-seed={seed}"]
    plugin = Round(seed, examples, seconds, Found(out))
    pytest.main([*options, f"--rootdir={ROOT}", *map(str, files_of(only))], plugins=[plugin])


def guide(property: str, seconds: float, out: Path) -> None:
    """Let atheris fuzz one property in this process, which ends when the time is over."""
    import atheris

    file, _, name = property.partition("::")
    target = _target(file)
    sys.path[:0] = [str(Path(file).parent), str(ROOT / "tests")]
    with atheris.instrument_imports(include=["dpmpn"], exclude=_with_kernels()):
        test = getattr(importlib.import_module(Path(file).stem), name)
    _prepared(test, 1)
    found, places, until = Found(out), set[str](), time.monotonic() + seconds

    def one(content: bytes) -> None:
        began = time.monotonic()
        if began > until:
            found.save()
            os._exit(0)
        try:
            is_case = test.hypothesis.fuzz_one_input(content) is not None  # None: too short to be one
        except Exception:
            is_case, text = True, traceback.format_exc()
            place = text.rpartition('  File "')[2].partition("\n")[0]
            if place not in places:  # one of each is enough
                found.fail(target, test=name, text=text[-3000:], input=content.hex()[:2000])
            places.add(place)
        if is_case:
            found.add(target, time.monotonic() - began)

    atheris.Setup(["fuzz", "-max_len=4096", "-len_control=0", "-timeout=120", f"-rss_limit_mb={MEMORY}"], one)
    atheris.Fuzz()


def _with_kernels() -> list[str]:
    """The modules that are not traced, as numba cannot compile what is traced."""
    source = ROOT / "src"
    paths = [path for path in (source / "dpmpn").rglob("*.py") if "kernel" in path.read_text("utf-8")]
    return [
        ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__") for path in paths
    ]


def _properties(file: Path) -> list[str]:
    """Names of a file's property tests, by its text: what is imported here is not traced there."""
    tree = ast.parse(file.read_text("utf-8"))
    tests = (
        node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    )
    return [test.name for test in tests if any("given(" in ast.unparse(each) for each in test.decorator_list)]


def _rounds(minutes: float, examples: int, only: str) -> Iterator[tuple[str, list[str]]]:
    """Options of processes, one after the other, with what to call them."""
    started, seed = time.monotonic(), 0
    while (left := 60 * minutes - (time.monotonic() - started)) > 0:
        options = ["--round", str(seed), "--examples", str(examples), "--seconds", str(left), "--only", only]
        yield f"round {seed}", options
        seed += 1


def _guided(minutes: float, only: str) -> Iterator[tuple[str, list[str]]]:
    started = time.monotonic()
    properties = [f"{file}::{name}" for file in files_of(only) for name in _properties(file)]
    for number, property in enumerate(properties):
        left = 60 * minutes - (time.monotonic() - started)
        yield property, ["--property", property, "--seconds", str(left / (len(properties) - number))]


def fuzz(processes: Iterator[tuple[str, list[str]]]) -> dict[str, Any]:
    """Run processes until there are no more; what was tried and what failed."""
    started, number = time.monotonic(), 0
    with tempfile.TemporaryDirectory() as folder:
        found = Found(Path(folder) / "all.json")
        for number, (name, options) in enumerate(processes, 1):
            out = Path(folder) / f"{number}.json"
            ended = subprocess.run(
                [sys.executable, __file__, *options, "--out", str(out)],
                cwd=folder, capture_output=True, text=True, errors="replace",
            )  # fmt: skip
            found.merge(out)
            if ended.returncode:
                text = f"ended with {ended.returncode}: {(ended.stdout + ended.stderr)[-6000:]}"
                found.fail(_target(name), test=name, text=text)
            print(f"{time.monotonic() - started:.0f} s, {name}: {found.cases.total():,} cases", flush=True)
    minutes = round((time.monotonic() - started) / 60, 2)
    return {"minutes": minutes, "processes": number, **found.result()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0, help="how long")
    parser.add_argument("--examples", type=int, default=500, help="cases of each property in a round")
    parser.add_argument("--only", default="", help="targets whose name has this part")
    parser.add_argument("--guided", action="store_true", help="with atheris, which must be installed")
    parser.add_argument("--out", type=Path, required=True, help="JSON file for the result")
    for option in ("--round", "--property", "--seconds"):  # for processes of its own
        parser.add_argument(option, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.property:
        guide(given.property, float(given.seconds), given.out)
    if given.round:
        run_round(int(given.round), given.examples, float(given.seconds), given.only, given.out)
        return
    way = "guided" if given.guided else "random"
    processes = (
        _guided(given.minutes, given.only)
        if given.guided
        else _rounds(given.minutes, given.examples, given.only)
    )
    result = fuzz(processes)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    before = json.loads(given.out.read_text("utf-8")) if given.out.exists() else {}
    given.out.write_text(json.dumps({**before, way: result}, indent=2) + "\n", "utf-8")
    print(f"{result['cases']:,} cases, {result['failures']} failures; see {given.out}")
    sys.exit(bool(result["failures"]))


if __name__ == "__main__":
    main()
