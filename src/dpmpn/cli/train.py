"""`dpmpn train`: trains a model on a dataset and leaves it in a run folder."""

import shlex
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpmpn.cli.calibrate import calibrated, summary
from dpmpn.cli.numbers import number
from dpmpn.cli.output import JsonTarget, Output
from dpmpn.cli.settings import DatasetName, PresetName, chosen_settings, with_settings
from dpmpn.cli.signals import stoppable
from dpmpn.config import Config, check_overrides, to_dict, with_overrides
from dpmpn.data.dataset import Dataset, name_of_folder, run_name
from dpmpn.data.importer import load_dataset
from dpmpn.data.registry import find_dataset
from dpmpn.errors import ConfigError, RunError
from dpmpn.models.any_graph.settings import AnyGraphSettings
from dpmpn.train.trackers import EVENTS, check_tracker
from dpmpn.wording import counted, duration, plural

if TYPE_CHECKING:
    from dpmpn.evaluate.report import Report
    from dpmpn.train.pretrained import Pretrained
    from dpmpn.train.run_folder import RunFolder
    from dpmpn.train.trainer import TrainingResult

_TELLING = ("model", "n_dims", "n_steps_in_agnn", "n_epochs", "batch_size", "learning_rate")
"""Settings that say most about a training; every model has them."""
_RUNS = Path("runs")
"""Where a run goes if no folder is named."""
_MEASURED_FACTS = 2000
"""Of the held-out facts, at the end of training: minutes at most; `dpmpn evaluate` asks about all of them."""


@with_settings(seldom=("preset", "max_queries", "json"))
def command(
    dataset: DatasetName,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="RUN_DIR", help="folder of the run; default: runs/ and the dataset's name"
        ),
    ] = None,
    preset: PresetName = None,
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="any-graph|FOLDER",
            help="start from the pre-trained model that comes with the package, or from one made with `dpmpn "
            "pretrain`, instead of from random weights",
        ),
    ] = None,
    max_queries: Annotated[
        int | None,
        number(int, "--max-queries", "stop after this many queries", at_least=1, at_most=10**12),
    ] = None,
    max_minutes: Annotated[
        float | None, number(float, "--max-minutes", "stop after this many minutes", above=0)
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="continue the run in RUN_DIR")] = False,
    log_to: Annotated[
        str | None,
        typer.Option(
            "--log-to",
            metavar="tensorboard|mlflow",
            help="also log loss, speed and validations to this tool; TensorBoard reads them from RUN_DIR",
        ),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="list all settings, with the reason for each")
    ] = False,
    json: JsonTarget = None,
    *,
    settings: dict[str, str],
) -> None:
    """Train a model and measure it. It is validated during training, and the best version is kept.

    dpmpn train facts.csv

    The settings follow from the size and shape of the graph, unless the dataset has a preset or you name one with
    --preset. Every setting has an option: --help-all lists them, with the defaults that hold where nothing else
    decides.
    """
    output = Output(json)
    out = out or _RUNS / run_name(dataset)
    _check_start(start, preset, resume, settings)
    check_tracker(log_to)
    run, data, config = (
        _resumed(output, out, dataset, preset, settings)
        if resume
        else _new(output, out, dataset, preset, start, settings, verbose)
    )
    _introduce(output, data, config, out)
    if log_to == EVENTS:
        output.say(f"metrics: tensorboard --logdir {shlex.quote(str(out))}")

    from dpmpn.train.trainer import train

    with stoppable() as stop, output.meter("trained") as meter:
        result = train(
            run,
            data,
            config,
            resume=resume,
            max_queries=max_queries,
            max_minutes=max_minutes,
            progress=meter.show_training,
            stop=stop,
            log_to=log_to,
        )
    record = {"run_dir": str(out), "dataset": data.name, **asdict(result)}
    if result.stopped_because == "interrupted":
        output.say(f"Interrupted after {result.position:,} of {result.total:,} queries; the run is saved.")
        output.say(f"Continue with: {_resume_command(dataset, out, max_queries, max_minutes)}")
        output.result(record, lambda: None)
        raise typer.Exit(stop.exit_code)
    _conclude(output, result)
    report = _measured(output, out)
    record["report"] = None if report is None else dict(report.scores)
    from dpmpn.reasoner.reasoner import Reasoner

    record["calibration"] = summary(calibrated(output, Reasoner.load(out)))
    output.result(record, lambda: _show_report(output, report, out, data))


def _check_start(start: str | None, preset: str | None, resume: bool, settings: dict[str, str]) -> None:
    """Refuse what cannot go with a model to begin from."""
    if start is None:
        return
    if resume:
        raise ConfigError("--from cannot go with --resume: the run has already started; leave it out")
    if preset is not None:
        raise ConfigError("--preset cannot go with --from, whose model has its sizes; leave out one of them")
    if check_overrides(settings) not in (None, AnyGraphSettings.name):
        raise ConfigError(
            f"--model {settings['model']} cannot go with --from, which has a model; leave out one of them"
        )


def _new(
    output: Output,
    out: Path,
    name: str,
    preset: str | None,
    start: str | None,
    settings: dict[str, str],
    verbose: bool,
) -> tuple["RunFolder", Dataset, Config]:
    """A new run, after everything that can be wrong with the request was checked."""
    pretrained: Pretrained | None = None
    if start is None:
        dataset, config, reasons = chosen_settings(name, preset, settings, output.say)
    else:
        from dpmpn.train.tuning import start_named, tuned_config

        pretrained, dataset = start_named(start), load_dataset(name, output.say)
        config, reasons = tuned_config(dataset, pretrained, settings)
    _say_settings(output, config, reasons, settings, verbose)

    from dpmpn.train.run_folder import RunFolder

    return RunFolder.create(out, dataset, config, pretrained), dataset, config


def _say_settings(
    output: Output, config: Config, reasons: list[str], given: Mapping[str, str], verbose: bool
) -> None:
    """The settings that say most, and those that were given, in a line; why all were chosen, where that is asked."""
    values = {
        key: f"{value:g}" if isinstance(value, float) else value
        for section in to_dict(config).values()
        for key, value in section.items()
    }
    of_preset = f"{reasons[0]}: " if len(reasons) == 1 else ""
    shown = ", ".join(f"{key}={values[key]}" for key in dict.fromkeys([*_TELLING, *given]))
    output.say(
        f"settings: {of_preset}{shown}" + ("" if verbose else ", ...; --verbose lists all, with reasons")
    )
    if not verbose:
        return
    for reason in [f"{key} = {value}" for key, value in values.items()] if of_preset else reasons:
        if reason.partition(" = ")[0] not in given:
            output.say(f"  {reason}")
    for key in given:
        output.say(f"  {key} = {values[key]}: given")


def _resumed(
    output: Output, out: Path, name: str, preset: str | None, settings: dict[str, str]
) -> tuple["RunFolder", Dataset, Config]:
    """The run in a folder, with its own dataset, which is the named one; settings given again replace the run's."""
    if preset is not None:
        raise ConfigError("--preset cannot go with --resume: the run has its settings; leave it out")
    from dpmpn.train.resuming import check_beginning, check_data
    from dpmpn.train.run_folder import RunFolder

    run = RunFolder.open(out)
    dataset, entry, folder = run.dataset(), find_dataset(name), Path(name)
    is_named = dataset.name in (entry.name if entry else None, name_of_folder(folder))
    other = RunError(f"{out} is a run on '{dataset.name}', not on '{name}'; name that dataset to resume it")
    known = entry.folder() if entry else None
    if folder.exists() or (known is not None and known.is_dir()):
        try:
            check_data(run, load_dataset(name))
        except RunError as error:
            raise error if is_named else other from error
    elif is_named:
        output.say(f"'{name}' is not here to compare with: training continues with the facts in {out}")
    else:
        raise other
    check_beginning(run, resume=True)
    if not run.has_weights():
        output.say(f"{out} has no checkpoint yet: training starts over")
    return run, dataset, with_overrides(run.config, settings)


def _introduce(output: Output, dataset: Dataset, config: Config, out: Path) -> None:
    graph = dataset.graph
    output.say(
        f"{dataset.name}: {counted(graph.n_entities, 'entity', 'entities')}, "
        f"{counted(graph.n_forward, 'relation')}; "
        f"triples: {len(dataset.train):,} train, {len(dataset.valid):,} valid, {len(dataset.test):,} test"
    )
    epochs = config.training.n_epochs
    output.say(f"training for {epochs:g} {plural(epochs, 'epoch')} in {out}; Ctrl-C saves and stops")


def _conclude(output: Output, result: "TrainingResult") -> None:
    why = {
        "max_minutes": ", stopped by --max-minutes",
        "patience": ", stopped early: no further improvement",
    }
    output.say(
        f"Trained on {result.position:,} queries in {duration(result.seconds)}"
        f"{why.get(result.stopped_because, '')}."
    )
    if result.best is not None:
        output.say(
            f"Best model: validation MRR {result.best.mrr:.4f}, after {result.best.position:,} queries."
        )


def _measured(output: Output, out: Path) -> "Report | None":
    """How good the best model is on held-out facts; on many of them, a sample is asked."""
    from dpmpn.evaluate.report import Report, held_out_split
    from dpmpn.reasoner.reasoner import Reasoner

    reasoner = Reasoner.load(out)
    split = held_out_split(reasoner.dataset)
    if split is None:
        return None
    with output.meter("asked") as meter:
        scores = reasoner.evaluate(split, per_relation=True, limit=_MEASURED_FACTS, progress=meter.show_speed)
    return Report.of(scores, reasoner.dataset)


def _show_report(output: Output, report: "Report | None", out: Path, dataset: Dataset) -> None:
    output.say()
    if report is None:
        output.say("No facts are held out, so the quality of the answers cannot be measured.")
        return
    output.say(report.text())
    run, example = shlex.quote(str(out)), shlex.join(_held_out_question(dataset))
    output.say(f"All relations: dpmpn evaluate {run} --split {report.scores['split']} --per-relation")
    output.say(f"To ask it: dpmpn predict {run} {example} --why; in the browser: dpmpn serve {run}")


def _held_out_question(dataset: Dataset) -> tuple[str, str]:
    """The head and the relation of a fact that the graph lacks."""
    held_out = dataset.test if len(dataset.test) else dataset.valid
    head, relation, _ = held_out[0].tolist()
    return dataset.graph.entities.name(head), dataset.graph.relation_names.name(relation)


def _resume_command(dataset: str, out: Path, max_queries: int | None, max_minutes: float | None) -> str:
    words = ["dpmpn", "train", dataset, "--out", str(out), "--resume"]
    words += [] if max_queries is None else ["--max-queries", str(max_queries)]
    words += [] if max_minutes is None else ["--max-minutes", f"{max_minutes:g}"]
    return shlex.join(words)
