"""One model's race: trained until its time is spent, validated on the way with the clock stopped, then tested."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from torch import Tensor

from dpmpn.config import Config
from dpmpn.data.dataset import Dataset
from dpmpn.errors import DataError, RunError, Stopped
from dpmpn.evaluate.evaluator import count_unseen, known_answers
from dpmpn.evaluate.known import KnownAnswers
from dpmpn.evaluate.ranking import Ranks, Summary, summarise
from dpmpn.lab.compare.contestants import Contestant
from dpmpn.train.validation import sampled_queries

_HALVINGS = 8
MARKS = (5, 15, 60)
"""Minutes at which all models are validated, however long the budget beyond them is."""


def validation_seconds(budget_seconds: float) -> list[float]:
    """When a model is validated: at 1/128, 1/64, ... 1/2 and all of the budget, and at the marks within it."""
    halves = [budget_seconds * 2.0**-halvings for halvings in range(_HALVINGS)]
    marks = [60.0 * minutes for minutes in MARKS if 60 * minutes < budget_seconds]
    return sorted({*halves, *marks})


@dataclass(frozen=True)
class Standing:
    """Where a race stands, told after every batch and while queries are asked."""

    seconds: float  # of training
    budget_seconds: float
    epochs: float
    best_mrr: float | None
    asking: str = ""  # such as "test 512 of 6,268"


class Course:
    """What is the same for all: the budget, the queries and the answers a filtered rank leaves out."""

    def __init__(self, dataset: Dataset, budget_minutes: float, validation_queries: int, seed: int) -> None:
        for split in ("valid", "test"):
            if not len(dataset.split(split)):
                raise DataError(
                    f"dataset '{dataset.name}' has no {split} triples; a comparison chooses on valid and tests on test"
                )
        self.dataset, self.budget_seconds = dataset, 60 * budget_minutes
        drawn = Config().replace(validation_queries=validation_queries, seed=seed)
        self.validation = sampled_queries(dataset, drawn)

    @cached_property
    def known(self) -> KnownAnswers:
        """Every fact of every split."""
        return known_answers(self.dataset)


def race(
    contestant: Contestant,
    course: Course,
    tell: Callable[[Standing], None] = lambda _: None,
    stop: Callable[[], bool] = lambda: False,
) -> dict[str, Any]:
    """Train, validate and test a model; its result as plain values, ready for JSON."""
    return _Race(contestant, course, tell, stop).run()


class _Race:
    def __init__(
        self,
        contestant: Contestant,
        course: Course,
        tell: Callable[[Standing], None],
        stop: Callable[[], bool],
    ) -> None:
        self.contestant, self.course, self.tell, self.stop = contestant, course, tell, stop
        self.seconds, self.cpu_seconds, self.queries = 0.0, 0.0, 0  # of training alone
        self.curve: list[dict[str, float]] = []
        self.best: dict[str, float] | None = None
        self.best_weights: dict[str, Tensor] = {}
        self.evaluation_seconds = 0.0

    def run(self) -> dict[str, Any]:
        """Train until the last validation is due, then test the best model."""
        due = validation_seconds(self.course.budget_seconds)
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
            self.tell(self._standing())
        self.cpu_seconds += self.contestant.cpu_seconds() - cpu

    def _validate(self) -> None:
        mrr = summarise(self._ranks("validation", self.course.validation))["realistic"]["mrr"]
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
        dataset = self.course.dataset
        ranks, n_triples = self._ranks("test", dataset.queries("test")), len(dataset.test)
        head: Summary | None = summarise(ranks[n_triples:]) if dataset.both_directions else None
        return {
            "triples": n_triples,
            "unseen": count_unseen(dataset, dataset.test),
            "both": summarise(ranks),
            "tail": summarise(ranks[:n_triples]),
            "head": head,
        }

    def _ranks(self, what: str, queries: np.ndarray) -> Ranks:
        def asked(done: int, total: int) -> None:
            self._check_stop()
            self.tell(self._standing(f"{what} {done:,} of {total:,}"))

        started = time.perf_counter()
        try:
            ranks = self.contestant.rank(queries, self.course.known, asked)
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
        return self.queries / self.contestant.epoch_queries

    def _standing(self, asking: str = "") -> Standing:
        best = None if self.best is None else self.best["mrr"]
        return Standing(self.seconds, self.course.budget_seconds, self._epochs(), best, asking)

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
