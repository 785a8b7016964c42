"""`dpmpn pretrain`: trains one set of weights on many graphs, for graphs that it has never seen."""

import math
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpmpn.cli.numbers import number
from dpmpn.cli.output import JsonTarget, Output
from dpmpn.cli.settings import with_options
from dpmpn.cli.signals import stoppable
from dpmpn.config import with_overrides
from dpmpn.errors import ConfigError
from dpmpn.pretrain.settings import PretrainingSettings, all_options, chosen, default_config
from dpmpn.progress import Meter
from dpmpn.wording import counted, duration, listed

if TYPE_CHECKING:
    from dpmpn.pretrain.graphs import NamedGraph
    from dpmpn.pretrain.trainer import PretrainingResult, Progress


@with_options(all_options())
def command(
    graphs: Annotated[
        list[str],
        typer.Argument(
            metavar="GRAPH...",
            help="graphs to train on: names listed by `dpmpn datasets`, folders, or files of facts; only training "
            "facts are learned",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="folder for the weights")],
    validate: Annotated[
        list[str] | None,
        typer.Option(
            "--validate",
            metavar="GRAPH",
            help="a graph to measure on, not used for training; may be repeated",
        ),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="any-graph|FOLDER",
            help="begin with the weights of the package, or of an earlier pre-training, instead of random ones",
        ),
    ] = None,
    max_minutes: Annotated[
        float | None, number(float, "--max-minutes", "end after this many minutes", above=0)
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="continue in FOLDER, with the same graphs and settings")
    ] = False,
    json: JsonTarget = None,
    *,
    settings: dict[str, str],
) -> None:
    """Train one set of weights on many graphs, to answer questions on any graph.

    The model learns to answer from how relations occur together. The weights belong to no entity and no relation, and
    different kinds of graphs teach more than many facts of one kind. Again and again some facts of a graph are hidden,
    also from everything that is counted, and asked for: as on a new graph, whose facts are never complete.

    FOLDER then has weights.safetensors, weights.json (graphs, settings, figures) and MODEL_CARD.md, for the first time
    after --validate-every questions, and can be used wherever `any-graph` can. However a pre-training was interrupted,
    the same command with --resume continues it, and the weights are the same as without the interruption.

    Example: dpmpn pretrain WN18RR NELL-995 my-facts.csv --validate UMLS --out weights
    """
    output = Output(json)
    from dpmpn.pretrain.folder import adopt, begun_with, create
    from dpmpn.pretrain.graphs import read_graphs
    from dpmpn.train.tuning import check_sizes, sizes_of, start_named

    if resume and start is not None:
        raise ConfigError(
            "--from cannot go with --resume: the pre-training has already started; leave it out"
        )
    begins = None if start is None else start_named(start)
    begun = begun_with(out) if resume else (default_config(), PretrainingSettings())
    if begins is not None:
        begun = with_overrides(begun[0], sizes_of(begins)), begun[1]
    config, drawn = chosen(settings, *begun)
    if begins is not None:
        check_sizes(begins, config.model)
    training, validation = read_graphs(graphs, validate or [])
    if resume:
        adopt(out, training, validation, config, drawn)
    else:
        create(out, training, validation, config, drawn, begins)
    _introduce(output, training, validation)
    output.say(f"pre-training on {drawn.questions:,} questions in {out}; Ctrl-C saves and ends")

    from dpmpn.pretrain.trainer import pretrain

    with stoppable() as stop, output.meter("asked") as meter:
        result = pretrain(
            out,
            training,
            validation,
            config,
            drawn,
            max_minutes=max_minutes,
            progress=lambda progress: _show(output, meter, progress),
            stop=stop,
        )
    report: dict[str, Any] = {"folder": str(out), **asdict(result)}
    if result.stopped_because == "interrupted":
        output.say(
            f"Interrupted after {result.position:,} of {result.total:,} questions; everything is saved."
        )
        output.say("Continue with the same command and --resume.")
        output.result(report, lambda: None)
        raise typer.Exit(stop.exit_code)
    output.result(report, lambda: _conclude(output, result, out))


def _introduce(output: Output, training: list["NamedGraph"], validation: list["NamedGraph"]) -> None:
    for what, graphs in (("train on", training), ("validate on", validation)):
        for graph in graphs:
            sizes = listed(
                [
                    counted(len(graph.facts.triples), "fact"),
                    counted(graph.facts.n_entities, "entity", "entities"),
                    counted(graph.facts.n_relations, "relation"),
                ]
            )
            output.say(f"{what} {graph.name}: {sizes}")


def _show(output: Output, meter: Meter, progress: "Progress") -> None:
    loss = "-" if math.isnan(progress.loss) else f"{progress.loss:.3f}"
    speed = f"loss {loss}, {progress.queries_per_s:.0f} questions/s"
    if progress.message:
        output.say(f"{progress.position:,} questions: {speed}, {progress.message}")
    else:
        meter.show(progress.position, progress.total, f"{speed}, ETA {duration(progress.eta_seconds)}")


def _conclude(output: Output, result: "PretrainingResult", out: Path) -> None:
    why = ", ended by --max-minutes" if result.stopped_because == "max_minutes" else ""
    output.say(f"Trained on {result.position:,} questions in {duration(result.seconds)}{why}.")
    if result.validation and result.validation["graphs"]:
        mean = result.validation["mean"]
        output.say(
            f"On graphs it was not trained on: mean MRR {mean['mrr']:.4f}, hits at 10 {mean['hits_at_10']:.4f}."
        )
    output.say(f"Ask with: dpmpn predict {shlex.quote(str(out))} --on FACTS HEAD RELATION")
