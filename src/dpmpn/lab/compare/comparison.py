"""A whole comparison: each model raced once, its result kept as a file, so that a broken-off comparison goes on."""

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpmpn.data.dataset import SPLITS, Dataset
from dpmpn.errors import DataError, RunError
from dpmpn.files import check_version, read_json, write_json
from dpmpn.lab.compare.contestants import Entrant, entrants
from dpmpn.lab.compare.embedding import EMBEDDING_MODELS
from dpmpn.lab.compare.race import Course, Standing, race
from dpmpn.lab.compare.report import write_report
from dpmpn.provenance import machine, versions
from dpmpn.train.lock import holding

MODELS = "models"
_FORMAT, _VERSION = "dpmpn-compare-model", 1
_REMOVE = "remove that file to train the model anew, or choose another --out"


@dataclass(frozen=True)
class Conditions:
    """What is equal for all models of a comparison."""

    dataset: Dataset
    budget_minutes: float
    seed: int
    threads: int  # 0: all cores
    validation_queries: int  # 0: all

    def __post_init__(self) -> None:
        if not self.dataset.both_directions:
            raise DataError(
                f"dataset '{self.dataset.name}' asks one relation one way; compare on one with whole splits"
            )
        object.__setattr__(self, "threads", self.threads or os.cpu_count() or 1)

    def values(self) -> dict[str, Any]:
        """The conditions as plain values, the dataset by its sizes and a fingerprint."""
        dataset, graph = self.dataset, self.dataset.graph
        return {
            "dataset": dataset.name,
            "triples_sha256": _fingerprint(dataset),
            "entities": graph.n_entities,
            "relations": graph.n_forward,
            **{split: len(dataset.split(split)) for split in SPLITS},
            "budget_minutes": self.budget_minutes,
            "seed": self.seed,
            "threads": self.threads,
            "validation_queries": self.validation_queries,
        }


class Comparison:
    """Models under the same conditions, with their results in a folder; those it holds already take part."""

    def __init__(self, conditions: Conditions, models: Sequence[str], out: Path) -> None:
        self.conditions, self.out = conditions, out
        self.values = conditions.values()
        self.course = Course(
            conditions.dataset, conditions.budget_minutes, conditions.validation_queries, conditions.seed
        )
        before = [name for name in EMBEDDING_MODELS if self._file(name).exists()]
        self.entrants = entrants(
            conditions.dataset,
            [*models, *before],
            conditions.seed,
            conditions.threads,
            conditions.budget_minutes,
        )
        self.finished: dict[str, dict[str, Any]] = {}
        for entrant in self.entrants:
            if (found := self._kept(entrant)) is not None:
                self.finished[entrant.name] = found

    def left(self) -> list[Entrant]:
        """Models without a result."""
        return [entrant for entrant in self.entrants if entrant.name not in self.finished]

    def run(
        self,
        begin: Callable[[Entrant], None] = lambda _: None,
        tell: Callable[[Standing], None] = lambda _: None,
        end: Callable[[Entrant, dict[str, Any]], None] = lambda *_: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> dict[str, Any]:
        """Race the models that are left, and write what there is after each; the report."""
        try:
            (self.out / MODELS).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(
                f"cannot write {self.out}: {error.strerror or error}; choose another --out"
            ) from error
        with holding(self.out):
            for entrant in self.left():
                begin(entrant)
                result = self._raced(entrant, tell, stop)
                self.finished[entrant.name] = result
                self._write_report()
                end(entrant, result)
            return self._write_report()

    def _raced(
        self, entrant: Entrant, tell: Callable[[Standing], None], stop: Callable[[], bool]
    ) -> dict[str, Any]:
        contestant = entrant.make()
        try:
            result = race(contestant, self.course, tell, stop)
        except RunError as error:
            raise RunError(f"{entrant.name}: {error}") from error
        finally:
            contestant.close()
        kept = {
            "format": _FORMAT,
            "version": _VERSION,
            "name": entrant.name,
            "label": entrant.label,
            "is_own": entrant.is_own,
            "conditions": self.values,
            "settings": entrant.settings,
            "versions": versions() if entrant.is_own else versions("pykeen"),
            "machine": machine(),
            "result": result,
        }
        write_json(self._file(entrant.name), kept)
        return kept

    def _kept(self, entrant: Entrant) -> dict[str, Any] | None:
        """The result of an earlier call, if it was made under the same conditions."""
        path = self._file(entrant.name)
        if not path.exists():
            return None
        kept = read_json(path, _REMOVE)
        check_version(path, kept, _FORMAT, _VERSION, _REMOVE, RunError)
        for section, now in (("conditions", self.values), ("settings", entrant.settings)):
            before = kept.get(section)
            if before != now:
                raise RunError(f"{path} was made with {_difference(before, now)}; {_REMOVE}")
        if not isinstance(kept.get("result"), dict):
            raise RunError(f"{path} holds no result; {_REMOVE}")
        return kept

    def _file(self, name: str) -> Path:
        return self.out / MODELS / f"{name}.json"

    def _write_report(self) -> dict[str, Any]:
        finished = [self.finished[e.name] for e in self.entrants if e.name in self.finished]
        return write_report(self.out, self.values, finished)


def _fingerprint(dataset: Dataset) -> str:
    digest = hashlib.sha256()
    for split in SPLITS:
        digest.update(np.ascontiguousarray(dataset.split(split), np.int32).tobytes())
    return digest.hexdigest()


def _difference(before: Any, now: dict[str, Any]) -> str:
    """The first setting that differs, in words."""
    if not isinstance(before, dict):
        return "settings that cannot be read"
    for key in {**before, **now}:
        old, new = before.get(key), now.get(key)
        if old != new:
            if isinstance(old, dict) and isinstance(new, dict):
                return _difference(old, new)
            return f"{key} = {old}, now it is {new}"
    return "other settings"
