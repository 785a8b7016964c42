"""The loop of a pre-training: updates in a fixed order, with validations, weights and checkpoints on the way.

Everything follows from the seed and from how far the lanes have come, never from the clock or the number of processes,
so that one resumed from any checkpoint repeats an unbroken one exactly.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dpmpn.config import Config
from dpmpn.engine.learning import Gradients
from dpmpn.errors import Diverged
from dpmpn.files.held import holding
from dpmpn.models import build_model
from dpmpn.pretrain.folder import LOG, PretrainingState, start_of, state_of
from dpmpn.pretrain.graphs import NamedGraph
from dpmpn.pretrain.lanes import LaneResult
from dpmpn.pretrain.result import write_result
from dpmpn.pretrain.settings import PretrainingSettings
from dpmpn.pretrain.team import Team
from dpmpn.pretrain.validation import mean_summary
from dpmpn.train.checkpoint import LossWindow, has_checkpoint, load_checkpoint, save_checkpoint
from dpmpn.train.optimiser import Adam, learning_rate_factor
from dpmpn.train.run_folder import append_line, rewind_lines, sync_lines
from dpmpn.train.tensors import not_finite
from dpmpn.train.trainer import advising

_UPDATES_PER_LINE = 50
_SMOOTHED_UPDATES = 100  # over which progress averages loss and speed


@dataclass(frozen=True)
class Progress:
    """Where pre-training stands, told after every update and validation."""

    position: int
    total: int
    loss: float  # mean over recent updates
    queries_per_s: float
    eta_seconds: float
    message: str | None = None  # such as "validation MRR 0.4312"


@dataclass(frozen=True)
class PretrainingResult:
    """How a pre-training ended."""

    position: int
    total: int
    validation: dict[str, Any] | None  # the last one: of the weights that are kept
    best: dict[str, Any] | None  # position and mean MRR of the best one
    seconds: float  # over all sessions
    cpu_seconds: float
    stopped_because: str  # "complete", "max_minutes" or "interrupted"


def pretrain(
    folder: Path,
    graphs: Sequence[NamedGraph],
    validation: Sequence[NamedGraph],
    config: Config,
    settings: PretrainingSettings,
    *,
    max_minutes: float | None = None,
    progress: Callable[[Progress], None] = lambda _: None,
    stop: Callable[[], bool] = lambda: False,
) -> PretrainingResult:
    """Pre-train in a folder that was made for it, from its last checkpoint on; limits count all sessions."""
    with advising(folder), holding(folder):
        loop = _Loop(folder, graphs, validation, config, settings)
        loop.progress, loop.stop = progress, stop
        loop.max_seconds = math.inf if max_minutes is None else 60 * max_minutes
        try:
            return loop.run_to_end()
        finally:
            loop.team.close()


class _Loop:
    """One session of pre-training."""

    progress: Callable[[Progress], None]
    stop: Callable[[], bool]
    max_seconds: float

    def __init__(
        self,
        folder: Path,
        graphs: Sequence[NamedGraph],
        validation: Sequence[NamedGraph],
        config: Config,
        settings: PretrainingSettings,
    ) -> None:
        self.folder, self.graphs, self.validation = folder, graphs, validation
        self.config, self.settings, self.log = config, settings, folder / LOG
        self.model, self.start = build_model(0, 0, config.model, config.run.seed), start_of(folder)
        if self.start is not None:
            self.model.load_state_dict(self.start.model.state_dict())
        self.optimiser = Adam(self.model, config.training)
        n_lanes = settings.batches_per_update
        self.state = PretrainingState(places=[[[0, 0] for _ in graphs] for _ in range(n_lanes)])
        if has_checkpoint(folder):
            read = partial(state_of, n_lanes=n_lanes, n_graphs=len(graphs))
            self.state = load_checkpoint(folder, self.model, self.optimiser, read)
        rewind_lines(self.log, self.state.lines)
        self.team = Team(
            self.model,
            [graph.facts for graph in graphs],
            [graph.facts for graph in validation],
            config,
            settings,
            self.state.places,
        )
        self.recent: deque[tuple[int, int, float, float]] = deque(maxlen=_SMOOTHED_UPDATES)
        self.began = time.perf_counter() - self.state.elapsed_seconds
        self.cpu_before = self.team.usage().cpu_seconds - self.state.cpu_seconds
        self.saved_at = time.perf_counter()

    def run_to_end(self) -> PretrainingResult:
        """Train until something ends it, then leave a checkpoint and, but where it was interrupted, weights."""
        state, reason = self.state, ""
        while not reason:
            if state.position >= self.settings.questions:
                reason = "complete"
            elif time.perf_counter() - self.began >= self.max_seconds:
                reason = "max_minutes"
            elif self.stop():
                reason = "interrupted"
            else:
                self._update()
        if reason != "interrupted":
            self._log_window()
            if state.validated_position != state.position:
                self._validate()
        self._checkpoint()
        return PretrainingResult(
            state.position,
            self.settings.questions,
            state.validation,
            state.best,
            state.elapsed_seconds,
            state.cpu_seconds,
            reason,
        )

    def _update(self) -> None:
        started, before = time.perf_counter(), self.state.position
        try:
            results = self.team.update(self.optimiser.step_count)
        except Diverged as error:
            raise self._diverged(str(error)) from error
        gradients = self._mean(results)
        training = self.config.training
        per_update = training.batch_size * len(results)
        factor = learning_rate_factor(training.schedule, before, self.settings.questions, per_update)
        self.optimiser.step(gradients, factor)
        self.state.places = [result.places for result in results]
        self._count(results, time.perf_counter() - started)
        if self.optimiser.step_count % _UPDATES_PER_LINE == 0:
            self._log_window()
        every = self.settings.validate_every
        if before // every != self.state.position // every:
            self._validate()
        if time.perf_counter() - self.saved_at >= training.checkpoint_every_seconds:
            self._checkpoint()
        self._tell()

    def _mean(self, results: list[LaneResult]) -> Gradients:
        """The mean gradient of the lanes, clipped as a whole."""
        found = [result.gradients for result in results]
        shared = torch.stack([gradients.shared for gradients in found]).mean(0)
        norm = float(shared.norm())
        if not all(math.isfinite(value) for value in (norm, *(gradients.loss for gradients in found))):
            names = " and ".join(f"'{self.graphs[result.graph].name}'" for result in results)
            raise self._diverged(f"the loss or its gradient is not finite in a batch of {names}")
        limit = self.config.training.grad_clipnorm
        if limit is not None and norm > limit:
            shared *= limit / norm
        loss = float(np.mean([gradients.loss for gradients in found]))
        reached = sum(gradients.reached for gradients in found)
        return Gradients(loss, reached, shared, found[0].entities, found[0].rows)

    def _diverged(self, what: str) -> Diverged:
        kept = "the last checkpoint is intact" if has_checkpoint(self.folder) else "no checkpoint was written"
        return Diverged(
            f"{self.folder}: pre-training diverged after {self.state.position:,} questions: {what}; {kept}: continue "
            "with --resume and a lower --learning-rate, or start over with another --out"
        )

    def _count(self, results: list[LaneResult], seconds: float) -> None:
        window, state = self.state.window, self.state
        queries, targets = (sum(getattr(r, name) for r in results) for name in ("queries", "targets"))
        loss = sum(result.gradients.loss * result.targets for result in results)
        window.queries += queries
        window.targets += targets
        window.loss += loss
        window.reached += sum(result.gradients.reached for result in results)
        window.seconds += seconds
        state.position += queries
        self.recent.append((queries, targets, loss, seconds))

    def _log_window(self) -> None:
        """Write the line of the updates since the last one."""
        window = self.state.window
        if window.queries:
            values = {
                "loss": window.loss / window.targets,
                "reached": window.reached / window.targets,
                "queries_per_s": window.queries / max(window.seconds, 1e-9),
            }
            self._append("train", values)
            self.state.window = LossWindow()

    def _append(self, kind: str, values: dict[str, Any]) -> None:
        self._note_times()
        times = {"seconds": self.state.elapsed_seconds, "cpu_seconds": self.state.cpu_seconds}
        append_line(self.log, {"kind": kind, "position": self.state.position, **values, **times})
        self.state.lines += 1

    def _note_times(self) -> None:
        self.state.elapsed_seconds = time.perf_counter() - self.began
        self.state.cpu_seconds = self.team.usage().cpu_seconds - self.cpu_before

    def _validate(self) -> None:
        """Measure the average of the weights on the validation graphs, and keep it where it can be used."""
        state = self.state
        self._check_weights()
        with self.optimiser.averaged():
            try:
                summaries = self.team.validate()
            except Diverged as error:
                raise self._diverged(f"validation failed: {error}") from error
            names = [graph.name for graph in self.validation]
            rows = [{"name": name, **summary} for name, summary in zip(names, summaries, strict=True)]
            state.validation = {"position": state.position, "mean": mean_summary(summaries), "graphs": rows}
            message = "weights written"
            if rows:
                mrr = state.validation["mean"]["mrr"]
                message = f"validation MRR {mrr:.4f}"
                if state.best is None or mrr > state.best["mrr"]:
                    state.best = {"position": state.position, "mrr": mrr}
            self._note_times()
            write_result(self.folder, self.model, self.graphs, self.config, self.settings, state, self.start)
        state.validated_position = state.position
        if rows:
            self._append("validation", {"mean": state.validation["mean"], "graphs": rows})
        self._tell(message)

    def _check_weights(self) -> None:
        """Refuse to save or measure weights that a step threw out of all bounds, or averages and moments of them."""
        tensors = dict(self.model.named_parameters()) | self.optimiser.state()
        if (name := not_finite(tensors)) is not None:
            raise self._diverged(f"the weights are not finite ({name})")

    def _checkpoint(self) -> None:
        self._check_weights()
        self._note_times()
        sync_lines(self.log)
        save_checkpoint(self.folder, self.model, self.optimiser, self.state)
        self.saved_at = time.perf_counter()

    def _tell(self, message: str | None = None) -> None:
        queries, targets, loss, seconds = (sum(update[i] for update in self.recent) for i in range(4))
        rate, total = queries / seconds if seconds else 0.0, self.settings.questions
        left = (total - self.state.position) / rate if rate else math.inf
        spent = time.perf_counter() - self.began
        self.progress(
            Progress(
                position=self.state.position,
                total=total,
                loss=loss / targets if targets else math.nan,
                queries_per_s=rate,
                eta_seconds=max(0.0, min(left, self.max_seconds - spent)),
                message=message,
            )
        )
