"""A tiny graph, settings that train on it in a moment, and what must be the same in two runs."""

import hashlib
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

FACTS = [
    *((f"child{i}", "mother", f"mother{i}") for i in range(8)),
    *((f"mother{i}", "husband", f"father{i}") for i in range(8)),
    *((f"child{i}", "father", f"father{i}") for i in range(6)),
]
SETTINGS = [
    *(
        "--model",
        "paper",
        "--n-dims",
        "6",
        "--n-dims-att",
        "4",
        "--n-steps-in-agnn",
        "2",
        "--n-steps-in-ignn",
        "1",
    ),
    *("--batch-size", "10", "--threads", "1", "--epochs", "1", "--patience", "none"),
    *("--checkpoint-every-seconds", "0", "--leak-removal", "triples"),
]
_TIMES = {"seconds", "cpu_seconds", "queries_per_s"}


def write_facts(folder: Path, **splits: list[tuple[str, str, str]]) -> Path:
    """A folder of triples."""
    folder.mkdir()
    for split, facts in splits.items():
        (folder / f"{split}.txt").write_text("".join("\t".join(fact) + "\n" for fact in facts), "utf-8")
    return folder


def write_family(folder: Path) -> Path:
    """The folder of the tiny graph."""
    valid, test = [("child6", "father", "father6")], [("child7", "father", "father7")]
    return write_facts(folder, train=FACTS, valid=valid, test=test)


def weights(run: Path, kind: str) -> str:
    """The digest of a whole checkpoint, "checkpoint" or "best"; it must be the one its manifest states."""
    manifest = json.loads((run / f"{kind}.json").read_text())
    digest = hashlib.sha256((run / manifest["file"]).read_bytes()).hexdigest()
    assert digest == manifest["sha256"]
    return digest


def outcome(run: Path) -> tuple[str, str, list[dict[str, Any]]]:
    """What must not depend on what happened on the way: weights, and all lines of metrics but their times."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    kept = [{key: value for key, value in line.items() if key not in _TIMES} for line in lines]
    return weights(run, "checkpoint"), weights(run, "best"), kept


def can_mount() -> bool:
    """Whether a test may mount a small file system of its own."""
    if shutil.which("unshare") is None:
        return False
    command = ["unshare", "-rm", "sh", "-ec", "mount -t tmpfs -o size=1m none /tmp"]
    return subprocess.run(command, capture_output=True).returncode == 0
