"""Runs the tests with several Pythons, each with what is installed for it, and adds what came out to a file.

python benchmarks/python_versions.py 3.13=PYTHON lowest=PYTHON --json FILE
"""

import argparse
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
ABOUT = """
import importlib.metadata as metadata, json, platform, re
names = sorted({re.match(r"[\\w-]+", text)[0] for text in metadata.requires("dpmpn") if "extra ==" not in text})
versions = {name: metadata.version(name) for name in names}
print(json.dumps({"python": platform.python_version(), "versions": versions}))
"""


def tested(python: str, processes: int) -> dict[str, Any]:
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    about = subprocess.run([python, "-c", ABOUT], capture_output=True, text=True, check=True, env=environment)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [
            python,
            "-m",
            "pytest",
            "-n",
            str(processes),
            "--dist",
            "worksteal",
            f"--junitxml={report}",
        ]
        subprocess.run(command, cwd=ROOT, env=environment)
        cases = list(ElementTree.parse(report).getroot().iter("testcase"))
    skipped = [case for case in cases if case.find("skipped") is not None]
    wrong = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    return json.loads(about.stdout) | {
        "passed": len(cases) - len(skipped) - len(wrong),
        "skipped": len(skipped),
        "failed": [f"{case.get('classname')}::{case.get('name')}" for case in wrong],
        "minutes": round((time.monotonic() - began) / 60, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pythons", nargs="+", metavar="NAME=PYTHON")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--json", type=Path, required=True)
    arguments = parser.parse_args()
    results = json.loads(arguments.json.read_text("utf-8")) if arguments.json.exists() else {}
    for name, _, python in (text.partition("=") for text in arguments.pythons):
        results[name] = tested(python, arguments.processes)
        arguments.json.write_text(json.dumps(results, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
