"""What a command prints: tables for people, JSON for programs, how far it has come, and one line for a mistake."""

import io
import json
import math
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console, JustifyMethod
from rich.measure import Measurement
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from dpmpn.errors import DataError
from dpmpn.files import encoded, write_named
from dpmpn.wording import duration, in_json, on_terminal, one_line

if TYPE_CHECKING:
    from dpmpn.train.trainer import Progress as TrainingProgress


JsonTarget = Annotated[
    str | None, typer.Option("--json", metavar="FILE", help="write the result as JSON; - for standard output")
]
STDOUT = "-"  # the name of standard output where a file could be named
_PLAIN_WIDTH = 160  # where there is no terminal, nothing is cut to fit one
_UNBOUNDED = 10_000  # columns
_SECONDS_BETWEEN_LINES = 5.0


class Output:
    """What a command says; with `--json -` standard output holds the JSON alone, the rest goes to stderr."""

    def __init__(self, json_target: str | None) -> None:
        _check_stdout()  # before any work is done
        self.json_target = json_target
        to_stderr = json_target == STDOUT
        stream = sys.stderr if to_stderr else sys.stdout
        # A closed standard error is None, and what is said there is heard by nobody.
        width = None if stream is not None and stream.isatty() else _PLAIN_WIDTH
        self.console = Console(stderr=to_stderr, highlight=False, emoji=False, width=width)

    @property
    def is_terminal(self) -> bool:
        """Whether a person watches."""
        return self.console.is_terminal

    def say(self, text: str = "", style: str | None = None) -> None:
        """Print a line as it is: no markup, no wrapping."""
        with _printing():
            self.console.print(on_terminal(text), style=style, markup=False, soft_wrap=True)
            self.console.file.flush()  # a log that is followed shows each line when it is written

    def wrap(self, text: str, indent: int = 0) -> None:
        """Print a paragraph with its words whole, and its later lines indented."""
        self.say(textwrap.fill(text, self.console.width, subsequent_indent=" " * indent))

    def fits(self, table: Table) -> bool:
        """Whether a table is shown without a cell broken into lines."""
        return self._width(table) <= self.console.width

    def show(self, table: Table) -> None:
        """Print a table; one with whole cells is wider than a narrow terminal rather than cut."""
        if is_whole := all(column.no_wrap for column in table.columns):
            table.width = self._width(table)
        with _printing():
            self.console.print(table, crop=not is_whole)
            self.console.file.flush()

    def _width(self, table: Table) -> int:
        unbounded = self.console.options.update(width=_UNBOUNDED)
        return Measurement.get(self.console, unbounded, table).maximum

    def result(self, value: Any, shown: Callable[[], None]) -> None:
        """Hand over a command's result: as JSON where it was asked for, and for people elsewhere."""
        if self.json_target != STDOUT:
            shown()
        if self.json_target is not None:
            self._write_json(value)

    def _write_json(self, value: Any) -> None:
        text = in_json(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)) + "\n"
        if self.json_target == STDOUT:
            print_data(text)
            return
        write_output(Path(str(self.json_target)), text)


def print_data(text: str) -> None:
    """Print data for a program on standard output, as it is; a person is shown what a terminal would act on."""
    _check_stdout()
    with _printing():
        sys.stdout.write(on_terminal(text) if sys.stdout.isatty() else text)
        sys.stdout.flush()


def write_output(path: Path, text: str) -> None:
    """Write a file a user asked for, whole or not at all; what is no file, such as a pipe, is written into."""
    write_named(path, lambda file: file.write(encoded(text)))


def _check_stdout() -> None:
    if sys.stdout is None:  # what Python makes of a closed one
        raise DataError("cannot print: standard output is closed; send it to a file or to /dev/null")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # it may not know all letters of all names


@contextmanager
def _printing() -> Iterator[None]:
    """Turn what goes wrong with standard output, such as a full disk behind it, into a sentence."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise DataError(f"cannot print: {error.strerror or error}") from error


def table(*columns: str, right: tuple[str, ...] = (), whole: bool = False) -> Table:
    """An open table; the columns named in `right` hold numbers, and `whole` cells are never broken into lines."""
    made = _Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        justify: JustifyMethod = "right" if column in right else "left"
        made.add_column(column, justify=justify, overflow="fold", no_wrap=whole)
    return made


class _Table(Table):
    def add_row(self, *cells: Any, **options: Any) -> None:
        # Names may look like rich's markup, or like anything else.
        super().add_row(*(Text(one_line(c)) if isinstance(c, str) else c for c in cells), **options)


def complain(message: str) -> None:
    """Say in one line on standard error what went wrong, if it is open."""
    if sys.stderr is None:
        return  # `print` would take standard output instead
    try:
        print("dpmpn: " + one_line(" ".join(message.split())), file=sys.stderr)
    except (
        OSError
    ):  # a full disk behind it; the exit code says it still, unless Python fails to flush it at its end
        sys.stderr = None


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

    def begin(self, what: str, position: int = 0) -> None:
        """Go over to another stage of the work."""
        self._what = self._stage = what
        self._began, self._first, self._printed = time.monotonic(), position, False
        if self._bar is not None:
            self._bar.update(self._task, description=what)

    def show_speed(self, position: int, total: int, stage: str | None = None) -> None:
        """Show where a stage of the work stands and how long it will take; where it began does not count as speed."""
        stage = stage or self._what
        if stage != self._stage:
            self.begin(stage, position)
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
