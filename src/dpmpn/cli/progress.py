"""How a long command shows that it is getting on: a bar on a terminal, now and then a line elsewhere."""

import math
import time
from types import TracebackType
from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from dpmpn.cli.output import Output
from dpmpn.wording import duration

if TYPE_CHECKING:
    from dpmpn.train.trainer import Progress as TrainingProgress

_SECONDS_BETWEEN_LINES = 5.0


class Meter:
    """Shows a position, a total and a note that says more; use it as a context."""

    def __init__(self, output: Output, what: str) -> None:
        self._output, self._what = output, what
        self._last_line, self._printed = time.monotonic(), False
        self._stage, self._began, self._first = "", 0.0, 0
        self._bar: Progress | None = None
        if output.is_terminal:
            columns = (
                TextColumn("{task.description}"),
                BarColumn(bar_width=16),
                MofNCompleteColumn(),
                TextColumn("{task.fields[note]}"),
            )
            self._bar = Progress(*columns, console=output.console, transient=True)
            self._task = self._bar.add_task(what, total=None, note="")

    def __enter__(self) -> "Meter":
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, position: int, total: int | None, note: str = "") -> None:
        """Show where the work stands; `total` is None where nobody knows it."""
        if self._bar is not None:
            self._bar.update(self._task, completed=position, total=total, note=note)
        elif time.monotonic() - self._last_line >= _SECONDS_BETWEEN_LINES or (
            self._printed and total is not None and position >= total
        ):
            self._last_line, self._printed = time.monotonic(), True
            line = f"{self._what} {position:,}" + ("" if total is None else f" of {total:,}")
            self._output.say(f"{line}: {note}" if note else line)

    def show_speed(self, position: int, total: int, stage: str | None = None) -> None:
        """Show where a stage of the work stands and how long it will take; where it began does not count as speed."""
        stage = stage or self._what
        if stage != self._stage:
            self._what = self._stage = stage
            self._began, self._first, self._printed = time.monotonic(), position, False
            if self._bar is not None:
                self._bar.update(self._task, description=stage)
        note, done = "", position - self._first
        if done > 0:
            speed = done / max(time.monotonic() - self._began, 1e-9)
            note = f"{speed:.{0 if speed > 10 else 1}f}/s, ETA {duration((total - position) / speed)}"
        self.show(position, total, note)

    def show_training(self, progress: "TrainingProgress") -> None:
        """Show where training stands, and what it has to say."""
        loss = "-" if math.isnan(progress.loss) else f"{progress.loss:.3f}"
        speed = f"{progress.queries_per_s:.0f} queries/s"
        if progress.message:
            self._output.say(f"epoch {progress.epoch:.2f}: loss {loss}, {speed}, {progress.message}")
            return
        note = f"epoch {progress.epoch:.2f}, loss {loss}, {speed}, ETA {duration(progress.eta_seconds)}"
        best = "" if progress.best_mrr is None else f", best MRR {progress.best_mrr:.4f}"
        self.show(progress.position, progress.total, note + best)
