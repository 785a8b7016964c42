"""`dpmpn serve`: a trained model in the browser and for other programs."""

import os
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from dpmpn.cli.calibrate import calibrated
from dpmpn.cli.changed_facts import (
    Added,
    OtherGraph,
    Removed,
    RunName,
    changed,
    loaded,
    opened,
    say_expectations,
)
from dpmpn.cli.numbers import number
from dpmpn.cli.output import Output, complain
from dpmpn.cli.settings import with_settings
from dpmpn.cli.signals import stoppable
from dpmpn.data.importer import files_of
from dpmpn.errors import ConfigError, DpmpnError, RunError, Stopped
from dpmpn.files import sha256_of
from dpmpn.files.held import remove_abandoned

_NEEDED = ("fastapi", "uvicorn", "prometheus_client")
_SHORT = 16  # letters of a token that can be guessed


@with_settings("asking", "run")
def command(
    run_dir: RunName,
    host: Annotated[
        str,
        typer.Option(
            "--host", metavar="ADDRESS", help="address to serve on; other machines can reach 0.0.0.0"
        ),
    ] = "127.0.0.1",
    port: Annotated[int, number(int, "--port", "0 takes a free one", at_least=0, at_most=65535)] = 8000,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            metavar="FILE",
            help="the API then answers only requests that carry the token in FILE",
        ),
    ] = None,
    workers: Annotated[int, number(int, "--workers", "processes that answer", at_least=1, at_most=64)] = 1,
    labels: Annotated[
        Path | None,
        typer.Option("--labels", metavar="FILE", help="names for identifiers, as in `dpmpn import`"),
    ] = None,
    on: OtherGraph = None,
    add: Added = None,
    remove: Removed = None,
    *,
    settings: dict[str, str],
) -> None:
    """Serve a trained model: a page to explore it at the printed address, and an HTTP API.

    Ctrl-C, or SIGTERM, finishes the accepted requests and ends.

    To explore a file of facts at once, without training: dpmpn serve any-graph --on facts.csv
    """
    check_installed()
    from dpmpn.serve.run import address, bind
    from dpmpn.train.pretrained import ABOUT
    from dpmpn.train.run_folder import run_path

    output = Output(None)
    token = _token(token_file) if token_file is not None else None
    _warn(host, token)
    loaded(run_dir, on, settings)  # a mistake is said before anything is started
    folder = run_path(run_dir)
    inputs = [folder / ABOUT, *(files_of(on) if on is not None else ())]
    inputs += [file for file in (labels, *(add or ()), *(remove or ())) if file is not None]
    identity = _identity(folder, inputs)
    shown = run_dir if on is None else f"{run_dir} with {on}"
    if workers > 1 and "threads" not in settings:
        settings = {**settings, "threads": str(max(1, (os.cpu_count() or 1) // workers))}
    remove_abandoned()
    with bind(host, port) as taken, stoppable() as stop:

        def serve(first: bool, started: Callable[[], None], stop: Callable[[], bool]) -> None:
            """Serve in this process."""
            # What counts for Prometheus looks at the environment when it is imported, so a worker imports it.
            from dpmpn.serve.app import Explorer, make_app
            from dpmpn.serve.guard import allowed_hosts
            from dpmpn.serve.run import run

            output.console.quiet = not first  # what was changed is said once
            reasoner = opened(output, run_dir, on, settings).in_memory()
            reasoner = reasoner if labels is None else reasoner.with_labels(labels)
            reasoner = changed(output, reasoner, add, remove)
            say_expectations(output, reasoner)
            if reasoner.calibration is None and reasoner.is_pretrained:
                calibrated(output, reasoner)
            explorer = Explorer(reasoner, None if reasoner.is_pretrained else folder)
            if _identity(folder, inputs) != identity:  # processes must not answer differently
                raise RunError(
                    f"{shown} has changed since this server was started; restart the server to serve it as it is now"
                )
            run(make_app(explorer, token, allowed_hosts(host, token is not None)), taken, stop, started)

        def started() -> None:
            output.say(f"serving {shown} on {address(taken)} (Ctrl-C stops it)")

        if workers == 1:
            serve(True, started, stop)
        else:
            _serve_together(serve, workers, stop, started, taken.close)
        output.say("stopped")


def check_installed() -> None:
    """Refuse to serve without the packages it needs."""
    if any(find_spec(name) is None for name in _NEEDED):
        raise ConfigError("serving needs more packages: pip install 'dpmpn[serve]'")


def _serve_together(
    serve: Callable[[bool, Callable[[], None], Callable[[], bool]], None],
    workers: int,
    stop: Callable[[], bool],
    started: Callable[[], None],
    stopping: Callable[[], None],
) -> None:
    from dpmpn.serve.workers import Workers

    def work(first: bool, ready: Callable[[], None], is_alone: Callable[[], bool]) -> int:
        """Serve in a process of its own, which answers with an exit code."""
        try:
            with stoppable() as stop:
                serve(first, ready, lambda: stop() or is_alone())
        except Stopped as stopped:
            return stopped.exit_code
        except DpmpnError as error:
            complain(str(error))
            return 2
        return 0

    if code := Workers(work, workers, complain).run(stop, started, stopping):
        raise typer.Exit(code)


def _identity(folder: Path, inputs: Sequence[Path]) -> list[str]:
    """What is served: the run, and what changes it."""
    from dpmpn.train.run_folder import RunFolder

    run = RunFolder(folder)
    try:
        return [
            *([run.identity()] if run.exists() else []),
            *(sha256_of(file) for file in inputs if file.is_file()),
        ]
    except OSError as error:
        raise ConfigError(f"cannot read {error.filename}: {error.strerror or error}") from error


def _token(path: Path) -> str:
    try:
        token = path.read_text("utf-8").strip()
        mode = path.stat().st_mode
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the token in {path}: {error}") from error
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError(
            f"{path} holds no token: write one line of letters and digits into it, as `openssl rand -hex 32` does"
        )
    if len(token) < _SHORT:
        complain(f"warning: the token in {path} is short enough to be guessed; use 32 letters or more")
    if mode & 0o077:
        complain(f"warning: others on this machine may read {path}; `chmod 600 {path}` keeps the token yours")
    return token


def _warn(host: str, token: str | None) -> None:
    from dpmpn.serve.guard import is_loopback

    if not is_loopback(host) and token is None:
        complain(
            f"warning: anyone who can reach {host} can ask this model; protect it with --token-file, and with a proxy "
            "that speaks HTTPS"
        )
