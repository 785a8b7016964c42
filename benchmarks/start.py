"""How long `dpmpn start` takes to the first explained answer, and until the tuned model answers.

    python benchmarks/start.py --json benchmarks/results/start.json

The facts are those of the bundled graph, all in one CSV. Kernels are compiled already, as after any first command.
"""

import argparse
import csv
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import urllib.request
from importlib.resources import files
from pathlib import Path
from typing import Any

QUESTION = {"head": "Serbia", "relation": "in_subregion"}


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--most-seconds", type=float, default=900.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        facts = Path(folder) / "facts.csv"
        n_facts = write_facts(facts)
        first = measured(facts, options.most_seconds)
        again = measured(facts, 0)
    result = {
        "command": "python benchmarks/start.py --json benchmarks/results/start.json",
        "facts": n_facts,
        "cores": os.cpu_count(),
        "load_average": os.getloadavg()[0],
        "python": platform.python_version(),
        "first_time": first,
        "again": again,
    }
    options.json.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


def write_facts(path: Path) -> int:
    """All facts of the bundled graph as CSV; how many there are."""
    source = files("dpmpn.data").joinpath("countries")
    lines = [
        line.split("\t")
        for split in ("train", "valid", "test")
        for line in source.joinpath(f"{split}.txt").read_text("utf-8").splitlines()
    ]
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("head", "relation", "tail"), *lines])
    return len(lines)


def measured(facts: Path, most_seconds: float) -> dict[str, Any]:
    """Seconds from the command to the first explained answer and, if it comes in time, to the changeover."""
    log = facts.with_name("log")
    began = time.perf_counter()
    with log.open("w") as file:
        words = [sys.executable, "-m", "dpmpn", "start", str(facts), "--no-browser", "--port", "0"]
        process = subprocess.Popen(words, stdout=file, stderr=subprocess.STDOUT)
    try:
        while "in a browser" not in log.read_text():
            if process.poll() is not None:
                raise SystemExit(log.read_text())
            time.sleep(0.02)
        address = log.read_text().split("open ")[1].split("/ ")[0]
        opened = time.perf_counter() - began
        explained = asked(address, "explain", QUESTION)["explanation"]
        found: dict[str, Any] = {
            "seconds_until_open": round(opened, 2),
            "seconds_until_explained": round(time.perf_counter() - began, 2),
            "explained": bool(explained),
            "model": asked(address, "tuning")["model"],
        }
        while (now := asked(address, "tuning"))["model"] == "any-graph" and now["state"] == "tuning":
            if time.perf_counter() - began > most_seconds:
                break
            time.sleep(0.2)
        found["seconds_until_tuned_answers"] = (
            round(time.perf_counter() - began, 2) if now["model"] == "tuned" else None
        )
        return found | {"tuning": now}
    finally:
        process.terminate()
        process.wait()


def asked(address: str, route: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """What the server replies."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        f"{address}/api/v1/{route}", data, {"Content-Type": "application/json"} if data else {}
    )
    with urllib.request.urlopen(request, timeout=60) as reply:
        return dict(json.load(reply))


if __name__ == "__main__":
    main()
