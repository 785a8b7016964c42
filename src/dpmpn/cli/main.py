"""The entry point: runs a command and turns every mistake into one line and an exit code."""

import io
import sys
from importlib import metadata
from typing import Annotated, NoReturn

import typer

from dpmpn.cli import (
    ask,
    calibrate,
    complete,
    datasets,
    evaluate,
    explain,
    explain_eval,
    import_facts,
    lab,
    merge,
    patterns,
    predict,
    pretrain,
    serve,
    start,
    train,
)
from dpmpn.cli.in_parts import BulkCommand
from dpmpn.cli.output import complain, print_data
from dpmpn.cli.settings import DASHES
from dpmpn.cli.signals import terminable
from dpmpn.errors import DpmpnError, Stopped

MISTAKE, BROKEN_PIPE = 2, 1

app = typer.Typer(
    name="dpmpn",
    help="Answers questions on a knowledge graph and shows its reasoning.",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], **DASHES},
)
app.command("import")(import_facts.command)
app.add_typer(datasets.app)
app.command("inductive")(datasets.inductive)
for module in (
    *(start, ask, train, pretrain, evaluate, predict, explain, patterns, complete, merge, calibrate, serve),
):
    kind = BulkCommand if module in (evaluate, predict, complete) else None
    app.command(module.__name__.rpartition(".")[2], cls=kind)(module.command)
for command in (lab.reproduce, lab.compare, lab.bench):
    app.command()(command)
app.command("explain-eval", cls=BulkCommand)(explain_eval.command)


def _show_version(asked: bool) -> None:
    if asked:
        print_data(f"dpmpn {metadata.version('dpmpn')}\n")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", help="show the version and exit", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Answers questions on a knowledge graph and shows its reasoning."""
    if context.invoked_subcommand is None:
        context.get_help()  # typer prints it


def run(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and exit."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a name that cannot be shown is no reason to end
    sys.exit(_exit_code(arguments))


def _exit_code(arguments: list[str] | None) -> int:
    try:
        with terminable():
            return int(app(arguments, prog_name="dpmpn", standalone_mode=False) or 0)
    except Stopped as stopped:
        complain(str(stopped))
        return stopped.exit_code
    except DpmpnError as error:
        complain(str(error))
    except BrokenPipeError:
        sys.stdout = None  # so that nothing is flushed into it at exit
        return BROKEN_PIPE
    except OSError as error:
        if error.filename is not None:
            complain(f"cannot use {error.filename}: {error.strerror}")
        elif _cannot_print():  # help, which is not printed through `Output`
            complain(f"cannot print: {error.strerror}")
            sys.stdout = None
        else:
            raise
    except Exception as error:
        # The parser's errors have no public base class that all versions of typer share.
        if not hasattr(error, "format_message"):
            raise
        complain(_usage(error))
    return MISTAKE


def _cannot_print() -> bool:
    """Whether standard output takes no more."""
    try:
        print(flush=True)
    except OSError:
        return True
    return False


def _usage(error: Exception) -> str:
    """What is wrong with the command line, and where to read about it."""
    context = getattr(error, "ctx", None)
    where = context.command_path if context else "dpmpn"
    option, possibilities = getattr(error, "option_name", None), getattr(error, "possibilities", None)
    if option and possibilities:
        return f"no such option '{option}'; did you mean {', '.join(sorted(possibilities))}?"
    return f"{error.format_message().rstrip('.')}; see `{where} --help`"  # type: ignore[attr-defined]
