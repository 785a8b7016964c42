"""What a command prints: tables for people, JSON for programs, how far it has come, and one line for a mistake."""

import io
import json
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console, JustifyMethod
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from dpmpn.errors import DataError
from dpmpn.files import encoded, write_named
from dpmpn.progress import Bar, Lines, Meter
from dpmpn.wording import in_json, on_terminal, one_line

JsonTarget = Annotated[
    str | None, typer.Option("--json", metavar="FILE", help="write the result as JSON; - for standard output")
]
STDOUT = "-"  # the name of standard output where a file could be named
_PLAIN_WIDTH = 160  # where there is no terminal, nothing is cut to fit one
_UNBOUNDED = 10_000  # columns


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

    def meter(self, what: str) -> Meter:
        """What shows how far a command has come: a bar in a terminal, and a line now and then elsewhere."""
        return Meter(what, Bar(self.console) if self.is_terminal else Lines(self.say), self.say)

    def busy(self, what: str) -> AbstractContextManager[object]:
        """Show in a terminal that something is done whose length nobody knows."""
        return self.console.status(what) if self.is_terminal else nullcontext()

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
        text = as_json(value)
        if self.json_target == STDOUT:
            print_data(text)
            return
        write_output(Path(str(self.json_target)), text)


def as_json(value: Any) -> str:
    """A result as JSON for a file or a program."""
    return in_json(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)) + "\n"


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
