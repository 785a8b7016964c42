"""Whether a tuned model is better than the one it began from, on the validation facts."""

from dataclasses import asdict, dataclass
from functools import cached_property

import numpy as np

from dpmpn.errors import RunError
from dpmpn.evaluate.evaluator import known_answers, rank_queries
from dpmpn.files import read_json, write_json
from dpmpn.reasoner.reasoner import Reasoner
from dpmpn.train.run_folder import START, RunFolder
from dpmpn.train.validation import sampled_queries

VERDICT = "tuning.json"
_CLEAR = 1.64  # standard errors: one time in twenty, a model that is only as good would seem better


@dataclass(frozen=True)
class Verdict:
    """How both models do on the same validation questions."""

    mrr: float  # of the model for any graph
    tuned_mrr: float
    standard_error: float  # of the mean difference of both, question by question
    questions: int
    position: int  # after how many training questions the tuned model was saved
    is_finished: bool = False  # no more tuning is to come

    @property
    def is_better(self) -> bool:
        """Whether the tuned model is better by more than chance would explain."""
        return self.tuned_mrr - self.mrr > _CLEAR * self.standard_error

    def write(self, run: RunFolder) -> None:
        """Keep it in the run's folder."""
        write_json(run.path / VERDICT, asdict(self))


def verdict_of(run: RunFolder) -> Verdict | None:
    """The last verdict on a run; None before the first."""
    path = run.path / VERDICT
    if not path.exists():
        return None
    values = read_json(path, "remove it: tuning judges the model again")
    try:
        return Verdict(**values)
    except TypeError as error:
        raise RunError(f"{path} is not what it should be ({error}); remove it") from error


class Judge:
    """Compares the best model of a run with the one that it began from."""

    def __init__(self, run: RunFolder) -> None:
        self.run, self.dataset = run, run.dataset()
        self.queries = sampled_queries(self.dataset, run.config)
        self.known = known_answers(self.dataset)

    def compare(self, position: int) -> Verdict:
        """The verdict on the best model that is saved now."""
        before, tuned = self._before, self._scores(Reasoner.load(self.run.path))
        n = len(tuned)
        error = float(np.std(tuned - before, ddof=1)) / n**0.5 if n > 1 else 1.0  # one question says nothing
        return Verdict(float(before.mean()), float(tuned.mean()), error, n, position)

    @cached_property
    def _before(self) -> np.ndarray:
        return self._scores(Reasoner.pretrained(self.run.path / START).on(self.dataset))

    def _scores(self, reasoner: Reasoner) -> np.ndarray:
        """The reciprocal rank of each validation question's answer."""
        try:
            return 1 / rank_queries(reasoner.engine, self.known, self.queries).realistic
        finally:
            reasoner.engine.close()
