"""How far long work is, for whoever watches: a bar in a terminal or a notebook, lines in a log, or nothing."""

import math
import sys
import time
from collections.abc import Callable
from html import escape
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from dpmpn.wording import duration

if TYPE_CHECKING:
    from dpmpn.train.trainer import Progress as TrainingProgress

_SECONDS_BETWEEN_LINES = 5.0
_SECONDS_BETWEEN_UPDATES = 0.2  # of a notebook: each is a message to the browser
_SECONDS_UNTIL_SHOWN = 0.5  # what Python does more quickly needs no bar


class View(Protocol):
    """Where progress is shown."""

    def show(self, what: str, position: int, total: int | None, note: str) -> None:
        """Show where the work stands; `total` is None where nobody knows it."""

    def close(self) -> None:
        """Take away what is shown of work that has ended."""


class Meter:
    """Shows a position, a total and a note that says more; use it as a context."""

    def __init__(self, what: str, view: View | None, say: Callable[[str], None] | None = None) -> None:
        """Take where to show it, if anywhere, and where to say what stays, if it is to stay."""
        self._what, self._view, self._say = what, view, say
        self._stage, self._began, self._first = "", 0.0, 0

    def __enter__(self) -> "Meter":
        self.show(0, None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._view is not None:
            self._view.close()

    def show(self, position: int, total: int | None, note: str = "") -> None:
        """Show where the work stands; `total` is None where nobody knows it."""
        if self._view is not None:
            self._view.show(self._what, position, total, note)

    def begin(self, what: str) -> None:
        """Go over to another stage of the work."""
        self._what = what

    def show_speed(self, position: int, total: int, stage: str | None = None) -> None:
        """Show where a stage of the work stands and how long it will take; where it began does not count as speed."""
        stage = stage or self._what
        if stage != self._stage:
            self._what = self._stage = stage
            self._began, self._first = time.monotonic(), position
        note, done = "", position - self._first
        if done > 0:
            speed = done / max(time.monotonic() - self._began, 1e-9)
            note = f"{speed:.{0 if speed > 10 else 1}f}/s, ETA {duration((total - position) / speed)}"
        self.show(position, total, note)

    def show_training(self, progress: "TrainingProgress") -> None:
        """Show where training stands, and what it has to say."""
        loss = "-" if math.isnan(progress.loss) else f"{progress.loss:.3f}"
        speed = f"{progress.queries_per_s:.0f} queries/s"
        if progress.message and self._say is not None:
            self._say(f"epoch {progress.epoch:.2f}: loss {loss}, {speed}, {progress.message}")
            return
        note = f"epoch {progress.epoch:.2f}, loss {loss}, {speed}, ETA {duration(progress.eta_seconds)}"
        best = "" if progress.best_mrr is None else f", best MRR {progress.best_mrr:.4f}"
        self.show(progress.position, progress.total, note + best)


class Bar:
    """A bar in a terminal, which goes when the work has ended."""

    def __init__(self, console: Any = None) -> None:
        """Take a console of rich; without one, standard error is used."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=16),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}", markup=False),
        )
        console = console or Console(stderr=True, highlight=False, emoji=False)
        self._bar = Progress(*columns, console=console, transient=True)
        self._task = self._bar.add_task("", total=None, note="")
        self._is_started = False

    def show(self, what: str, position: int, total: int | None, note: str) -> None:
        """Move the bar."""
        if not self._is_started:
            self._bar.start()
            self._is_started = True
        self._bar.update(self._task, description=what, completed=position, total=total, note=note)

    def close(self) -> None:
        """Take the bar away."""
        if self._is_started:
            self._bar.stop()


class Lines:
    """A line now and then, for a log."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say, self._what = say, ""
        self._last_line, self._printed = time.monotonic(), False

    def show(self, what: str, position: int, total: int | None, note: str) -> None:
        """Say where the work stands, unless that was said just now; of work that had a line, the end has one, too."""
        if what != self._what:
            self._what, self._printed = what, False
        is_due = time.monotonic() - self._last_line >= _SECONDS_BETWEEN_LINES
        if is_due or (self._printed and total is not None and position >= total):
            self._last_line, self._printed = time.monotonic(), True
            self._say(_line(what, position, total, note))

    def close(self) -> None:
        """Leave the lines where they are."""


class Notebook:
    """A bar in the output of a notebook's cell, which goes when the work has ended."""

    def __init__(self, display: Any) -> None:
        """Take the module `IPython.display`."""
        self._display, self._handle = display, None
        self._last = -math.inf

    def show(self, what: str, position: int, total: int | None, note: str) -> None:
        """Move the bar, unless it moved just now."""
        if time.monotonic() - self._last < _SECONDS_BETWEEN_UPDATES and position != total:
            return
        self._last = time.monotonic()
        value = "" if total is None else f' value="{position}" max="{max(total, 1)}"'
        self._put(
            f"<progress{value} style='width: 16em; vertical-align: middle'></progress> "
            f"<span style='font-variant-numeric: tabular-nums'>{escape(_line(what, position, total, note))}</span>"
        )

    def close(self) -> None:
        """Take the bar away."""
        if self._handle is not None:
            self._put("")

    def _put(self, html: str) -> None:
        shown = self._display.HTML(html)
        if self._handle is None:
            self._handle = self._display.display(shown, display_id=True)
        else:
            self._handle.update(shown)


class Later:
    """Another view, once the work has taken long enough to be worth one."""

    def __init__(self, view: View) -> None:
        self._view, self._from = view, time.monotonic() + _SECONDS_UNTIL_SHOWN

    def show(self, what: str, position: int, total: int | None, note: str) -> None:
        """Show it there from some time on."""
        if time.monotonic() >= self._from:
            self._view.show(what, position, total, note)

    def close(self) -> None:
        """Close the other view."""
        self._view.close()


def meter_for_python(what: str, shown: bool = True) -> Meter:
    """A meter that shows a bar in a notebook or, where standard error is a terminal, there; and nothing elsewhere."""
    if not shown:
        return Meter(what, None)
    if (display := _notebook_display()) is not None:
        return Meter(what, Later(Notebook(display)))
    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    return Meter(what, Later(Bar()) if is_terminal else None)


def _notebook_display() -> Any:
    """The module that shows things in the notebook that runs this; None where there is none."""
    ipython = sys.modules.get("IPython")  # a notebook has imported it; others need not wait for it
    shell = None if ipython is None else ipython.get_ipython()
    if getattr(shell, "kernel", None) is None:  # such as IPython in a terminal
        return None
    from importlib import import_module

    return import_module("IPython.display")


def _line(what: str, position: int, total: int | None, note: str) -> str:
    line = f"{what} {position:,}" + ("" if total is None else f" of {total:,}")
    return f"{line}: {note}" if note else line
