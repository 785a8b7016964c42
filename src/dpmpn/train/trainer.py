"""The training loop: batches in a fixed order, with validations and checkpoints on the way.

A run's position is the number of queries it has seen. Batches, validations and lines of metrics depend on the
position alone, never on the clock, so that a run resumed from any checkpoint repeats an unbroken one exactly.
"""

import errno
import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpmpn.config import Config
from dpmpn.data.dataset import Dataset
from dpmpn.engine.batch import QueryBatch
from dpmpn.engine.engine import Engine
from dpmpn.engine.learning import Gradients, Targets
from dpmpn.errors import DataError, Diverged, RunError, Stopped
from dpmpn.files.held import holding
from dpmpn.models import initial_model
from dpmpn.train.batches import TrainingQueries
from dpmpn.train.checkpoint import (
    LoopState,
    LossWindow,
    Validation,
    best_kept,
    check_best,
    check_size,
    has_checkpoint,
    load_checkpoint,
    loop_state,
    save_best,
    save_checkpoint,
)
from dpmpn.train.failed_batch import diverged, is_finite, no_gradients, save_failed_batch
from dpmpn.train.optimiser import OPTIMISERS, learning_rate_factor
from dpmpn.train.resuming import adopt, check_beginning, check_data
from dpmpn.train.run_folder import RunFolder, append_line, rewind_lines, sync_lines
from dpmpn.train.tensors import not_finite
from dpmpn.train.trackers import Track, tracked
from dpmpn.train.tuning import first_model
from dpmpn.train.validation import Validator, training_queries

BATCHES_PER_LINE = 10
_SMOOTHED_BATCHES = 100  # over which progress averages loss and speed
_TRIED = 4  # queries: too few to start worker processes for
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True)
class Progress:
    """Where training stands, told after every batch and validation."""

    position: int
    total: int
    epoch: float  # epochs seen, with fraction
    loss: float  # mean over recent batches
    queries_per_s: float  # over recent batches
    eta_seconds: float
    best_mrr: float | None
    message: str | None = None  # such as "validation MRR 0.4312 (best)"


@dataclass(frozen=True)
class TrainingResult:
    """How a run ended."""

    position: int  # queries seen, before a resume included
    total: int
    best: Validation | None
    seconds: float  # as `position`, over all sessions
    cpu_seconds: float
    stopped_because: str  # "complete", "max_minutes", "patience" or "interrupted"


def train(
    run: RunFolder,
    dataset: Dataset,
    config: Config,
    *,
    resume: bool = False,
    max_queries: int | None = None,
    max_minutes: float | None = None,
    progress: Callable[[Progress], None] | None = None,
    stop: Callable[[], bool] | None = None,
    log_to: str | None = None,
    engine: type[Engine] = Engine,
) -> TrainingResult:
    """Train a run to its end or a limit; limits count the whole run, also what was done before a resume.

    `log_to` names a tool that gets the metrics, too. `engine` computes gradients and the answers of validations.
    """
    with advising(run.path), holding(run.path):
        check_beginning(run, resume)
        if resume:
            check_data(run, dataset)
            adopt(run, config)
        if has_checkpoint(run.path):
            check_size(run.path, "last", config.model.least_values(dataset.graph))
        loop = _Loop(run, dataset, config, engine, max_queries, max_minutes, progress, stop)
        try:
            loop.begin()
            with tracked(log_to, run, loop.state.position) as loop.track:
                return loop.run_to_end()
        finally:
            loop.engine.close()


@contextmanager
def advising(folder: Path) -> Iterator[None]:
    """Say how to go on after a file of a training's folder could not be written."""
    try:
        yield
    except RunError as error:
        cause = error.__cause__
        if not isinstance(cause, OSError) or "--out" in str(error):
            raise
        what = "free some space" if cause.errno in _FULL else "make that possible"
        then = (
            "go on with --resume"
            if has_checkpoint(folder)
            else "begin again with --resume: nothing is saved yet"
        )
        raise RunError(f"{error}; {what} and {then}") from cause


class _Loop:
    """One session of training."""

    track: Track

    def __init__(
        self,
        run: RunFolder,
        dataset: Dataset,
        config: Config,
        engine: type[Engine],
        max_queries: int | None,
        max_minutes: float | None,
        progress: Callable[[Progress], None] | None,
        stop: Callable[[], bool] | None,
    ) -> None:
        self.run, self.config = run, config
        self.max_seconds = math.inf if max_minutes is None else 60 * max_minutes
        self.progress = progress or (lambda _: None)
        self.stop = stop or (lambda: False)
        self.queries = TrainingQueries(dataset.graph, training_queries(dataset, config), config)
        self.total = _total(len(self.queries), config.training.n_epochs, max_queries)
        start = None if has_checkpoint(run.path) else run.start()
        self.model = (
            first_model(start, dataset.graph, config) if start else initial_model(dataset.graph, config)
        )
        self.optimiser = OPTIMISERS[config.training.optimizer](self.model, config.training)
        self.engine = engine(self.model, dataset.graph, config)
        self.validator = Validator(self.engine, dataset, config, self.stop) if len(dataset.valid) else None
        # A model that was trained before may be better than all that comes: it is the first to be validated.
        self.state = LoopState(validation_due=start is not None and self.validator is not None)
        self.recent: deque[tuple[int, int, float, float]] = deque(maxlen=_SMOOTHED_BATCHES)
        self.clock = _Clock(self.state, self.engine)
        self.saved_at, self.saved_position = time.perf_counter(), -1

    def begin(self) -> None:
        """Go back to the last checkpoint, or to the start where there is none."""
        if has_checkpoint(self.run.path):
            self.state = load_checkpoint(self.run.path, self.model, self.optimiser, loop_state)
            self.clock = _Clock(self.state, self.engine)
            check_best(self.run.path, self.state)
            if not self._can_learn():
                raise Diverged(
                    f"{self.run.path}: the weights of the last checkpoint are too large to compute with; train again "
                    "with another --out and a lower --learning-rate"
                )
        rewind_lines(self.run.metrics, self.state.lines)

    def run_to_end(self) -> TrainingResult:
        """Train until something ends the run, then leave a checkpoint."""
        reason = self._until_ended()
        self._checkpoint()
        if self.validator is None and reason != "interrupted":
            with self.optimiser.averaged():
                self._check_weights()
                save_best(self.run.path, self.model, self.state.position, None)
        state = self.state
        return TrainingResult(
            state.position, self.total, state.best, state.elapsed_seconds, state.cpu_seconds, reason
        )

    def _until_ended(self) -> str:
        try:
            while True:
                if reason := self._limit_reached():
                    self._finish_position()
                elif self.state.validation_due:
                    self._validate()
                if reason or (reason := self._out_of_patience()):
                    return reason
                if self.stop():
                    return "interrupted"
                self._train_batch()
        except Stopped as stopped:
            if stopped.signal_number is not None:  # at once, in the middle of anything
                raise
            return "interrupted"

    def _finish_position(self) -> None:
        """Write and validate what the end of a run adds, unless it was done here already."""
        self._log_window()
        if self.state.validated_position != self.state.position:
            self._validate()

    def _limit_reached(self) -> str:
        if self.state.position >= self.total:
            return "complete"
        return "max_minutes" if self.clock.seconds() >= self.max_seconds else ""

    def _out_of_patience(self) -> str:
        patience = self.config.training.patience
        spent = patience is not None and self.state.validations_without_improvement >= patience
        return "patience" if spent else ""

    def _train_batch(self) -> None:
        started, before = time.perf_counter(), self.state.position
        size = min(self.config.training.batch_size, self.total - before)
        batch, targets = self.queries.at(before, size)
        gradients = self._gradients(batch, targets)
        if not is_finite(gradients):
            raise self._failure(batch, targets, gradients)
        training = self.config.training
        factor = learning_rate_factor(training.schedule, before, self.total, training.batch_size)
        self.optimiser.step(gradients, factor)
        self._count(gradients, len(batch), len(targets.entities), time.perf_counter() - started)
        if self.optimiser.step_count % BATCHES_PER_LINE == 0:
            self._log_window()
        self.state.validation_due = self.validator is not None and self._validates_between(
            before, self.state.position
        )
        self._checkpoint_if_due()
        self._tell()

    def _gradients(self, batch: QueryBatch, targets: Targets) -> Gradients:
        try:
            return self.engine.gradients(batch, targets)
        except Diverged:
            return no_gradients(self.model)

    def _failure(self, batch: QueryBatch, targets: Targets, gradients: Gradients) -> RunError:
        """What to say of a batch that would spoil the weights; it is saved for inspection."""
        first = self.state.position
        try:
            path = save_failed_batch(
                self.run.path, first, batch, targets, gradients, self.model, self.engine.graph, self.config
            )
            saved = f"see {path}"
        except RunError as error:  # such as a full disk: what the batch did is the greater news
            saved = str(error)
        which = f"the batch of queries {first} to {first + len(batch) - 1} ({saved})"
        return diverged(
            self.run.path, f"the loss ({gradients.loss}) or its gradient is not finite in {which}"
        )

    def _check_weights(self) -> None:
        """Refuse to save or measure weights that a step threw out of all bounds, or averages and moments of them.

        Weights can be finite and too large to compute with: the last queries are tried again.
        """
        position, folder = self.state.position, self.run.path
        tensors = dict(self.model.named_parameters()) | self.optimiser.state()
        if (name := not_finite(tensors)) is not None:
            raise diverged(folder, f"the weights are not finite after {position} queries ({name})")
        if not self._can_learn():
            raise diverged(folder, f"the weights are too large to compute with after {position} queries")

    def _can_learn(self) -> bool:
        """Whether the last queries, tried again, have finite gradients."""
        position = max(0, self.state.position - _TRIED)
        return is_finite(self._gradients(*self.queries.at(position, _TRIED)))

    def _count(self, gradients: Gradients, n_queries: int, n_targets: int, seconds: float) -> None:
        window, loss = self.state.window, float(gradients.loss) * n_targets
        window.queries += n_queries
        window.targets += n_targets
        window.loss += loss
        window.reached += gradients.reached
        window.seconds += seconds
        self.state.position += n_queries
        self.recent.append((n_queries, n_targets, loss, seconds))

    def _log_window(self) -> None:
        """Write the line of the batches since the last one."""
        window = self.state.window
        if not window.queries:
            return
        values = {
            "loss": window.loss / window.targets,
            "reached": window.reached / window.targets,
            "queries_per_s": window.queries / max(window.seconds, 1e-9),
        }
        self._append("train", values)
        self.state.window = LossWindow()

    def _append(self, kind: str, values: dict[str, Any]) -> None:
        self.clock.note(self.state)
        times = {"seconds": self.state.elapsed_seconds, "cpu_seconds": self.state.cpu_seconds}
        append_line(self.run.metrics, {"kind": kind, "position": self.state.position, **values, **times})
        self.state.lines += 1
        self.track(kind, self.state.position, values)

    def _validates_between(self, before: int, after: int) -> bool:
        every = self.config.training.validate_every_queries or len(self.queries)
        return before // every != after // every

    def _validate(self) -> None:
        state = self.state
        if self.validator is None:
            return
        self._check_weights()
        state.validation_due = True  # so that a checkpoint of an interrupted one says so
        with self.optimiser.averaged():
            found = self._measured(self.validator)
        kept = best_kept(self.run.path)  # better than the state's where the checkpoint is an older one
        if kept is not None and kept.mrr > found.mrr:
            state.best = kept
        better = state.best is None or found.mrr > state.best.mrr
        if better:
            if self.saved_position != state.position:
                self._checkpoint()  # first: from a best model alone, training cannot go on
            state.best, state.validations_without_improvement = found, 0
            with self.optimiser.averaged():
                save_best(self.run.path, self.model, state.position, found)
        else:
            state.validations_without_improvement += 1
        state.validation_due, state.validated_position = False, state.position
        self._append("validation", {"mrr": found.mrr, "best": better, **found.summary})
        self._checkpoint_if_due()
        self._tell(f"validation MRR {found.mrr:.4f}" + (" (best)" if better else ""))

    def _measured(self, validator: Validator) -> Validation:
        position = self.state.position
        try:
            return validator.validate(position)
        except Diverged as error:
            raise diverged(self.run.path, f"validation after {position} queries failed") from error

    def _checkpoint_if_due(self) -> None:
        if time.perf_counter() - self.saved_at >= self.config.training.checkpoint_every_seconds:
            self._checkpoint()

    def _checkpoint(self) -> None:
        self._check_weights()
        self.clock.note(self.state)
        sync_lines(self.run.metrics)
        save_checkpoint(self.run.path, self.model, self.optimiser, self.state)
        self.saved_at, self.saved_position = time.perf_counter(), self.state.position

    def _tell(self, message: str | None = None) -> None:
        queries, targets, loss, seconds = (sum(batch[i] for batch in self.recent) for i in range(4))
        rate = queries / seconds if seconds else 0.0
        left = (self.total - self.state.position) / rate if rate else math.inf
        self.progress(
            Progress(
                position=self.state.position,
                total=self.total,
                epoch=self.state.position / len(self.queries),
                loss=loss / targets if targets else math.nan,
                queries_per_s=rate,
                eta_seconds=max(0.0, min(left, self.max_seconds - self.clock.seconds())),
                best_mrr=self.state.best.mrr if self.state.best else None,
                message=message,
            )
        )


class _Clock:
    """Wall and CPU seconds of the whole run, sessions before this one included."""

    def __init__(self, state: LoopState, engine: Engine) -> None:
        self._engine = engine  # whose workers count, too
        self._wall = time.perf_counter() - state.elapsed_seconds
        self._cpu = engine.usage().cpu_seconds - state.cpu_seconds

    def seconds(self) -> float:
        """Wall seconds so far."""
        return time.perf_counter() - self._wall

    def note(self, state: LoopState) -> None:
        """Put the times into the state."""
        state.elapsed_seconds = self.seconds()
        state.cpu_seconds = self._engine.usage().cpu_seconds - self._cpu


def _total(n_queries: int, n_epochs: float, max_queries: int | None) -> int:
    if not n_queries:
        raise DataError("there are no training triples; nothing can be learnt")
    total = max(1, round(n_epochs * n_queries))
    return total if max_queries is None else min(total, max_queries)
