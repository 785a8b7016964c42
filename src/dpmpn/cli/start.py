"""`dpmpn start`: from a file of facts to the explorer in the browser, with a model that gets better meanwhile."""

import os
import shlex
import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpmpn.cli.changed_facts import say_expectations
from dpmpn.cli.numbers import number
from dpmpn.cli.output import Output, complain
from dpmpn.cli.serve import check_installed
from dpmpn.cli.signals import stoppable
from dpmpn.errors import ConfigError, DpmpnError
from dpmpn.files.held import remove_abandoned
from dpmpn.progress import Meter
from dpmpn.wording import counted

if TYPE_CHECKING:
    import socket

    from dpmpn.serve.app import Explorer
    from dpmpn.train.run_folder import RunFolder

_PORT = 8000


def command(
    facts: Annotated[
        list[str],
        typer.Argument(
            metavar="FACTS...",
            help="tables of facts, as `dpmpn import` reads them: CSV, Excel, Parquet, JSON lines, RDF ..., with a fact "
            "or an item in each row; or one folder with a file train.*; or a name listed by `dpmpn datasets`",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="RUN_DIR", help="folder for the results; default: FACTS.dpmpn, beside the facts"
        ),
    ] = None,
    port: Annotated[
        int | None,
        number(
            int, "--port", f"0 takes a free one; default: {_PORT}, or a free one", at_least=0, at_most=65535
        ),
    ] = None,
    tuning: Annotated[
        bool, typer.Option(help="whether to tune the model to the facts while it is asked")
    ] = True,
    max_minutes: Annotated[
        float | None, number(float, "--max-minutes", "end tuning after this many minutes", above=0)
    ] = None,
    browser: Annotated[
        bool, typer.Option(help="whether to open the page in a browser, if there is one")
    ] = True,
) -> None:
    """Explore your facts in the browser: one command from a file to answers and the reasons for them.

    dpmpn start facts.csv

    The facts are read, and the page opens within seconds. Questions are answered at once by the model that comes with
    the package. Meanwhile that model is tuned to your facts; when it has become clearly better on facts that were held
    out, it takes over, and the page says so.

    Ctrl-C ends it at any time. What was read and learned so far is kept in a folder beside the facts, facts.dpmpn, and
    the same command continues from there. Other commands take that folder, too:

    dpmpn predict facts.dpmpn HEAD RELATION --why

    dpmpn complete facts.dpmpn

    dpmpn serve facts.dpmpn --host 0.0.0.0 --token-file FILE
    """
    check_installed()
    output = Output(None)

    from dpmpn.start.folder import folder_for, run_of
    from dpmpn.start.tuner import Tuner

    remove_abandoned()
    elsewhere = [] if out is None else ["--out", str(out)]
    goodbye = f"stopped; continue with: {shlex.join(['dpmpn', 'start', *facts, *elsewhere])}"
    with _bound(port) as taken, stoppable() as stop:
        run = run_of(facts, out or folder_for(facts), output.say)
        explorer = None if stop() else _explorer(output, run)
        if explorer is None or stop():
            output.say(goodbye)
            raise typer.Exit(stop.exit_code)
        from dpmpn.serve.app import make_app
        from dpmpn.serve.guard import allowed_hosts
        from dpmpn.serve.run import address
        from dpmpn.serve.run import run as serve

        with output.meter("tuned") as meter:
            tuner = Tuner(run, max_minutes, Teller(output, meter, run, explorer))

            def started() -> None:
                output.say(f"open {address(taken)} in a browser (Ctrl-C stops it)")
                if browser and _has_screen():
                    webbrowser.open(address(taken))
                if tuning and _can_tune(output, run):
                    explorer.tuning = {"state": "tuning"}
                    tuner.start()

            try:
                serve(make_app(explorer, None, allowed_hosts("127.0.0.1", False)), taken, stop, started)
            finally:
                tuner.close()
        output.say(goodbye)


class Teller:
    """Tells a person, the page and the API what the tuning says, and changes the model over."""

    def __init__(self, output: Output, meter: Meter, run: "RunFolder", explorer: "Explorer") -> None:
        self.output, self.meter, self.run, self.explorer = output, meter, run, explorer
        self.position = 0  # of the model that answers

    def __call__(self, message: dict[str, Any]) -> None:
        """Hear a message of the process that tunes."""
        try:
            self._hear(message)
        except DpmpnError as error:  # of a folder that was removed, for instance
            self._fail(str(error))

    def _hear(self, message: dict[str, Any]) -> None:
        from dpmpn.train.trainer import Progress

        if "progress" in message:
            progress = Progress(**message["progress"])
            self.meter.show_training(progress)
            eta = progress.eta_seconds if progress.eta_seconds < float("inf") else None
            now = {"state": "tuning", "done": progress.position, "total": progress.total, "eta_seconds": eta}
            self.explorer.tuning = {**self.explorer.tuning, **now}
        elif "failed" in message:
            self._fail(message["failed"])
        else:
            self._judged(message.get("verdict") or message.get("done"))
            if "done" in message:
                self.explorer.tuning = {**self.explorer.tuning, "state": "done", "eta_seconds": None}
                if self.explorer.info["model"] == "any-graph":
                    self.output.say(
                        "Tuning has ended without a clear improvement; the same model keeps answering."
                    )
                else:
                    self.output.say("Tuning has ended.")

    def _judged(self, values: dict[str, Any] | None) -> None:
        """Change over to a tuned model that is clearly better than the one for any graph, and new."""
        from dpmpn.reasoner.reasoner import Reasoner
        from dpmpn.start.verdict import Verdict

        if values is None:
            return
        verdict = Verdict(**values)
        self.explorer.tuning = {
            **self.explorer.tuning,
            "mrr": verdict.mrr,
            "tuned_mrr": verdict.tuned_mrr,
        }
        if verdict.is_better and verdict.position > self.position:
            self.explorer.change(Reasoner.load(self.run.path).in_memory(), self.run.path)
            self.position = verdict.position
            self.output.say(
                f"The tuned model is answering now: validation MRR {verdict.tuned_mrr:.3f}, was {verdict.mrr:.3f}."
            )

    def _fail(self, why: str) -> None:
        self.explorer.tuning = {
            **self.explorer.tuning,
            "state": "failed",
            "message": why,
            "eta_seconds": None,
        }
        complain(f"tuning failed: {why}; the current model keeps answering")


def _bound(port: int | None) -> "socket.socket":
    """The address to serve on; where no port was given and the usual one is taken, a free one."""
    from dpmpn.serve.run import bind

    if port is not None:
        return bind("127.0.0.1", port)
    try:
        return bind("127.0.0.1", _PORT)
    except ConfigError:
        return bind("127.0.0.1", 0)


def _explorer(output: Output, run: "RunFolder") -> "Explorer":
    """The explorer with the tuned model, if it is clearly better, or with the one for any graph."""
    from dpmpn.reasoner.reasoner import Reasoner
    from dpmpn.serve.app import Explorer
    from dpmpn.start.verdict import verdict_of
    from dpmpn.train.run_folder import START

    verdict = verdict_of(run)
    if verdict is not None and verdict.is_better:
        reasoner = Reasoner.load(run.path).in_memory()
    else:
        reasoner = Reasoner.pretrained(run.path / START).on(run.dataset()).in_memory()
    graph = reasoner.graph
    output.say(
        f"{reasoner.dataset.name}: {counted(graph.n_entities, 'entity', 'entities')}, "
        f"{counted(graph.n_forward, 'relation')}, {counted(len(reasoner.dataset.train), 'fact')}; "
        f"saved in {run.path}"
    )
    say_expectations(output, reasoner)
    return Explorer(reasoner, None if reasoner.is_pretrained else run.path)


def _can_tune(output: Output, run: "RunFolder") -> bool:
    """Whether tuning is still to be done, and can be judged."""
    from dpmpn.start.verdict import verdict_of

    verdict = verdict_of(run)
    if verdict is not None and verdict.is_finished:
        which = "The tuned model answers." if verdict.is_better else "That brought no clear improvement."
        output.say(f"The model was tuned to these facts before. {which}")
        return False
    if not len(run.dataset().valid):
        output.say(
            "The model is not tuned: there are too few facts to hold some out and see whether tuning helps."
        )
        return False
    return True


def _has_screen() -> bool:
    """Whether a browser could be seen."""
    return sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
