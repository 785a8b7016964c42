"""A comparison: each model is trained until its time is spent, validated with the clock stopped, tested, and kept."""

import hashlib
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from dpmpn.config import Config
from dpmpn.data.dataset import SPLITS, Dataset
from dpmpn.errors import DataError, RunError, Stopped
from dpmpn.evaluate.evaluator import count_unseen, known_answers
from dpmpn.evaluate.known import KnownAnswers
from dpmpn.evaluate.ranking import Ranks, summarise
from dpmpn.files import check_version, own_folder, read_json, write_json
from dpmpn.files.held import holding
from dpmpn.lab.compare.contestants import Contestant, Entrant, entrants
from dpmpn.lab.compare.embedding import EMBEDDING_MODELS
from dpmpn.lab.compare.report import validation_seconds, write_report
from dpmpn.provenance import machine, versions
from dpmpn.train.validation import sampled_queries

MODELS = "models"
_FORMAT, _VERSION = "dpmpn-compare-model", 1
_REMOVE = "remove that file to train the model again, or choose another --out"


@dataclass(frozen=True)
class Standing:
    """Where a race stands, told after every batch and while queries are asked."""

    seconds: float  # of training
    budget_seconds: float
    epochs: float
    best_mrr: float | None
    asking: str = ""  # such as "test 512 of 6,268"


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
        for split in ("valid", "test"):
            if not len(self.dataset.split(split)):
                raise DataError(
                    f"dataset '{self.dataset.name}' has no {split} triples; a comparison chooses on valid and "
                    "tests on test"
                )
        object.__setattr__(self, "threads", self.threads or os.cpu_count() or 1)

    @property
    def budget_seconds(self) -> float:
        """Of training."""
        return 60 * self.budget_minutes

    @cached_property
    def validation(self) -> np.ndarray:
        """The queries of each validation."""
        drawn = Config().replace(validation_queries=self.validation_queries, seed=self.seed)
        return sampled_queries(self.dataset, drawn)

    @cached_property
    def known(self) -> KnownAnswers:
        """Every fact of every split: answers that a filtered rank leaves out."""
        return known_answers(self.dataset)

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


class Race:
    """One model's race: trained, validated on the way, and tested."""

    def __init__(
        self,
        contestant: Contestant,
        conditions: Conditions,
        progress: Callable[[Standing], None] = lambda _: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self.contestant, self.conditions = contestant, conditions
        self.progress, self.stop = progress, stop
        self.seconds, self.cpu_seconds, self.queries = 0.0, 0.0, 0  # of training alone
        self.curve: list[dict[str, float]] = []
        self.best: dict[str, float] | None = None
        self.best_weights: dict[str, Tensor] = {}
        self.evaluation_seconds = 0.0

    def run(self) -> dict[str, Any]:
        """Train until the last validation is due, then test the best model; its result as plain values."""
        due = validation_seconds(self.conditions.budget_seconds)
        while due:
            self._train_until(due[0])
            due = [seconds for seconds in due if seconds > self.seconds]
            self._validate()
        return self._result(self._test())

    def _train_until(self, seconds: float) -> None:
        """Train until the clock shows so many seconds; it runs inside batches alone."""
        cpu = self.contestant.cpu_seconds()  # asks the system about every process: not for each batch
        while self.seconds < seconds:
            self._check_stop()
            started = time.perf_counter()
            self.queries += self.contestant.train_batch()
            self.seconds += time.perf_counter() - started
            self.progress(self._standing())
        self.cpu_seconds += self.contestant.cpu_seconds() - cpu

    def _validate(self) -> None:
        mrr = summarise(self._ranks("validation", self.conditions.validation))["realistic"]["mrr"]
        point = {
            "seconds": self.seconds,
            "cpu_seconds": self.cpu_seconds,
            "epochs": self._epochs(),
            "mrr": mrr,
        }
        self.curve.append(point)
        if self.best is None or mrr > self.best["mrr"]:
            self.best, self.best_weights = point, self.contestant.weights()

    def _test(self) -> dict[str, Any]:
        """Scores of the best model on the whole test set, in both directions and in each."""
        self.contestant.restore(self.best_weights)
        dataset = self.conditions.dataset
        ranks, n_triples = self._ranks("test", dataset.queries("test")), len(dataset.test)
        return {
            "triples": n_triples,
            "unseen": count_unseen(dataset, dataset.test),
            "both": summarise(ranks),
            "tail": summarise(ranks[:n_triples]),
            "head": summarise(ranks[n_triples:]),
        }

    def _ranks(self, what: str, queries: np.ndarray) -> Ranks:
        def asked(done: int, total: int) -> None:
            self._check_stop()
            self.progress(self._standing(f"{what} {done:,} of {total:,}"))

        started = time.perf_counter()
        try:
            ranks = self.contestant.rank(queries, self.conditions.known, asked)
        except ValueError as error:
            raise RunError(
                f"the model cannot be ranked after {self._epochs():.2f} epochs ({error}): its weights have "
                "run away; try another --seed, or leave an embedding model out of --models"
            ) from error
        self.evaluation_seconds += time.perf_counter() - started
        return ranks

    def _check_stop(self) -> None:
        if self.stop():
            raise Stopped

    def _epochs(self) -> float:
        return self.queries / len(self.contestant.queries)

    def _standing(self, asking: str = "") -> Standing:
        best = None if self.best is None else self.best["mrr"]
        return Standing(self.seconds, self.conditions.budget_seconds, self._epochs(), best, asking)

    def _result(self, test: dict[str, Any]) -> dict[str, Any]:
        return {
            "parameters": self.contestant.n_parameters,
            "seconds": self.seconds,
            "cpu_seconds": self.cpu_seconds,
            "queries": self.queries,
            "queries_per_s": self.queries / self.seconds,
            "epochs": self._epochs(),
            "evaluation_seconds": self.evaluation_seconds,
            "curve": self.curve,
            "best": self.best,
            "test": test,
        }


class Comparison:
    """Models under the same conditions, with their results in a folder; those it holds already take part."""

    def __init__(self, conditions: Conditions, models: Sequence[str], out: Path) -> None:
        self.conditions, self.out = conditions, out
        self.values = conditions.values()
        before = [name for name in EMBEDDING_MODELS if self._file(name).exists()]
        names, equal = [*models, *before], (conditions.seed, conditions.threads, conditions.budget_minutes)
        self.entrants = entrants(conditions.dataset, names, *equal)
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
        progress: Callable[[Standing], None] = lambda _: None,
        end: Callable[[Entrant, dict[str, Any]], None] = lambda *_: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> dict[str, Any]:
        """Race the models that are left, and write what there is after each; the report."""
        try:
            own_folder(self.out / MODELS)
        except OSError as error:
            raise RunError(
                f"cannot write {self.out}: {error.strerror or error}; choose another --out"
            ) from error
        with holding(self.out):
            for entrant in self.left():
                begin(entrant)
                result = self._raced(entrant, progress, stop)
                self.finished[entrant.name] = result
                self._write_report()
                end(entrant, result)
            return self._write_report()

    def _raced(
        self, entrant: Entrant, progress: Callable[[Standing], None], stop: Callable[[], bool]
    ) -> dict[str, Any]:
        contestant = entrant.make()
        try:
            result = Race(contestant, self.conditions, progress, stop).run()
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
