"""Mutants: small wrong changes of the program, each of which some test must notice."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path("dpmpn")
"""The package's folder within a tree of sources."""

PAPER = (
    "tests/models/paper/test_section3.py",
    "tests/models/paper/test_paper_constants.py",
    "tests/models/paper/test_fast_equals_reference.py",
    "tests/models/paper/test_properties.py",
    "tests/ops",
)
STRONG = (
    "tests/models/strong/test_strong_transcription.py",
    "tests/models/strong",
    "tests/train/test_hidden_facts.py",
)
MODELS = (*PAPER, *STRONG)
BATCHES = ("tests/train/test_hidden_facts.py", "tests/train/test_batches.py", "tests/engine")
TRAINING = (
    "tests/train/test_optimiser.py",
    "tests/train/test_averaged_weights.py",
    "tests/train/test_schedule.py",
    "tests/train/test_trainer.py",
    "tests/train/test_checkpoint.py",
    "tests/train/test_run_folder.py",
    "tests/models/strong/test_strong_training.py",
)
EVALUATION = ("tests/evaluate",)
GRAPHS = ("tests/data/test_graph.py", "tests/data/test_dataset.py", "tests/data/test_changed_graph.py")


@dataclass(frozen=True)
class Change:
    """One text of a file, found exactly once, becomes another."""

    file: str  # within the package
    old: str
    new: str

    def problem(self, sources: Path) -> str:
        """Why the change cannot be made in a tree of sources; empty if it can."""
        path = sources / PACKAGE / self.file
        if not path.exists():
            return f"there is no {self.file}"
        if self.old == self.new:
            return f"nothing changes in {self.file}"
        times = path.read_text().count(self.old)
        return "" if times == 1 else f"{self.file} has this text {times} times, not once: {self.old!r}"

    def make(self, sources: Path) -> None:
        """Make it."""
        if problem := self.problem(sources):
            raise ValueError(problem)
        path = sources / PACKAGE / self.file
        path.write_text(path.read_text().replace(self.old, self.new))


@dataclass(frozen=True)
class Mutant:
    """A mistake somebody might make."""

    name: str
    sentence: str  # what would be wrong
    changes: tuple[Change, ...]  # two where both the fast path and the reference have the same mistake
    tests: tuple[str, ...]  # that should notice, the likeliest first
    survives: str = ""  # why no test notices, if it is right that none does

    def make(self, sources: Path) -> None:
        """Make all its changes in a tree of sources."""
        for change in self.changes:
            change.make(sources)
        forget_compiled(sources, [change.file for change in self.changes])


def mutant(
    name: str, sentence: str, *changes: tuple[str, str, str], tests: tuple[str, ...], survives: str = ""
) -> Mutant:
    """A mutant from (file, old text, new text)."""
    return Mutant(name, sentence, tuple(Change(*change) for change in changes), tests, survives)


def forget_compiled(sources: Path, files: Iterable[str]) -> None:
    """Remove what is cached of changed files and of all that compiles with them.

    A compiled function has those it calls, and constants it names, within it: the cache looks at its own file alone.
    """
    texts = {path: path.read_text() for path in (sources / PACKAGE).rglob("*.py")}
    stale = {sources / PACKAGE / file for file in files}
    found = set(stale)
    while found:
        modules = "|".join(re.escape(_module(path, sources)) for path in found)
        users = {path for path, text in texts.items() if re.search(rf"from (?:{modules}) import", text)}
        found = {path for path in users if re.search(r"@(?:\w+_)?kernel\b", texts[path])} - stale
        stale |= found
    for path in stale:
        for cached in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
            cached.unlink()


def _module(path: Path, sources: Path) -> str:
    return ".".join(path.relative_to(sources).with_suffix("").parts)
