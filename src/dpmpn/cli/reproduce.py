"""`dpmpn reproduce`: makes a table or figure of the paper anew, or one about the stronger model."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from dpmpn.cli.output import JsonTarget, Meter, Output
from dpmpn.cli.signals import Stop, stoppable
from dpmpn.errors import ConfigError, Stopped


def command(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="an exhibit of --list")] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="folder for the exhibit, its data and its runs"),
    ] = None,
    list_all: Annotated[
        bool, typer.Option("--list", help="show all exhibits and what the paper says of them")
    ] = False,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="on the bundled graph with small settings, in a minute: to try it out"),
    ] = False,
    seeds: Annotated[
        str,
        typer.Option(
            "--seeds",
            metavar="LIST",
            help="seeds of the trainings, such as 0,1,2; name all that are to be shown, also those made before",
        ),
    ] = "0",
    dataset: Annotated[
        str | None,
        typer.Option(
            "--dataset",
            metavar="NAME",
            help="WN18RR or FB15K-237 for convergence, ignn, horizons, time-cost, growth, ablation and unseen; these, "
            "WN18, FB15K, NELL-995, UMLS, Kinship, Family or countries for strong; YAGO3-10-quarter for yago3-10",
        ),
    ] = None,
    epochs: Annotated[
        float | None,
        typer.Option("--epochs", metavar="NUMBER", help="of each training, instead of the paper's"),
    ] = None,
    max_minutes: Annotated[
        float | None,
        typer.Option(
            "--max-minutes",
            metavar="NUMBER",
            help="end each training after so many minutes; trainings of strong, ablation and unseen fill them",
        ),
    ] = None,
    runs: Annotated[
        Path | None,
        typer.Option(
            "--runs",
            metavar="DIR",
            help="folder of another exhibit whose trained models are used as they are, instead of training: "
            "nell995's for attention-flow and subgraphs, ignn's for wn18rr, fb15k-237's for growth",
        ),
    ] = None,
    only: Annotated[
        str,
        typer.Option(
            "--only",
            metavar="LIST",
            help="parts of ablation, such as no-gates,paper; name all that are to be shown, also those made before",
        ),
    ] = "",
    threads: Annotated[int, typer.Option("--threads", min=0, metavar="INT", help="0 = all cores")] = 0,
    json: JsonTarget = None,
) -> None:
    """Make a table or figure of the paper anew: data, table or plot, settings and command in one folder.

    It says first how long it will take. Ended early, it goes on where it stopped when the same command comes again.

    Seeds can be added to a folder: --seeds 0,1,2 after --seeds 0 trains the two others and shows all three.

    Datasets are found as `dpmpn datasets` shows.

    Example: dpmpn reproduce wn18rr --seeds 0,1,2 --out exhibits/wn18rr

    Shortened: dpmpn reproduce horizons --epochs 0.2 --out exhibits/horizons

    Beyond it: dpmpn reproduce strong --max-minutes 60 --out exhibits/strong

    Trained before: dpmpn reproduce subgraphs --runs exhibits/nell995 --out exhibits/subgraphs
    """
    from dpmpn.lab.reproduce.making import EXHIBITS, exhibit_named, make
    from dpmpn.lab.reproduce.settings import Request
    from dpmpn.lab.reproduce.workshop import Watch

    output = Output(json)
    if list_all:
        listed = [
            {"name": e.name, "place": e.place, "title": e.title, "claim": e.claim} for e in EXHIBITS.values()
        ]
        output.result(listed, lambda: _show_exhibits(output, listed))
        return
    if name is None or out is None:
        raise ConfigError(
            "name an exhibit and a folder: dpmpn reproduce NAME --out DIR; --list shows all exhibits"
        )
    parts = tuple(part.strip() for part in only.split(",") if part.strip())
    request = Request(_numbers(seeds), quick, dataset, epochs, max_minutes, threads, runs, parts)
    exhibit = exhibit_named(name)
    output.say(f"{exhibit.place_of(request)}: {exhibit.title}")
    with stoppable() as stop, Meter(output, "trained") as training, Meter(output, "asked") as asking:
        watch = Watch(output.say, training.show_training, asking.show, stop)
        try:
            files = make(exhibit, request, out, watch, shlex.join(["dpmpn", *sys.argv[1:]]))
        except Stopped:
            raise _ended(output, stop) from None
    report = {"exhibit": exhibit.name, "folder": str(out), "files": [str(path) for path in files]}
    output.result(report, lambda: output.say("\n".join(f"made {path}" for path in files)))


def _ended(output: Output, stop: Stop) -> typer.Exit:
    output.say("Interrupted; what was done is kept. Go on by giving the same command again.")
    return typer.Exit(stop.exit_code)


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError as error:
        raise ConfigError(
            f"'--seeds' must be numbers with commas between them, such as 0,1,2, not '{text}'"
        ) from error


def _show_exhibits(output: Output, listed: list[dict[str, str]]) -> None:
    for exhibit in listed:
        output.say(f"{exhibit['name']:<16}{exhibit['place']:<20}{exhibit['title']}")
        output.wrap(f"    {exhibit['claim']}", indent=4)
