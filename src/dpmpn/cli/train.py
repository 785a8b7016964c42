"""`dpmpn train`: trains a model on a dataset and leaves it in a run folder."""

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpmpn.cli.numbers import number
from dpmpn.cli.output import JsonTarget, Meter, Output
from dpmpn.cli.settings import DatasetName, PresetName, chosen_settings, with_settings
from dpmpn.cli.signals import stoppable
from dpmpn.config import Config, check_overrides, with_overrides
from dpmpn.data.dataset import Dataset, name_of_folder
from dpmpn.data.importer import load_dataset
from dpmpn.data.registry import find_dataset
from dpmpn.errors import ConfigError, RunError
from dpmpn.models.any_graph.settings import AnyGraphSettings
from dpmpn.wording import duration, plural

if TYPE_CHECKING:
    from dpmpn.train.pretrained import Pretrained
    from dpmpn.train.run_folder import RunFolder
    from dpmpn.train.trainer import TrainingResult


@with_settings()
def command(
    dataset: DatasetName,
    out: Annotated[Path, typer.Option("--out", metavar="RUN_DIR", help="folder of the run")],
    preset: PresetName = None,
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="any-graph|FOLDER",
            help="begin from the model for any graph that comes with the package, or from one that `dpmpn pretrain` "
            "made, instead of from random numbers",
        ),
    ] = None,
    max_queries: Annotated[
        int | None, number(int, "--max-queries", "end after so many queries", at_least=1, at_most=10**12)
    ] = None,
    max_minutes: Annotated[
        float | None, number(float, "--max-minutes", "end after so many minutes", above=0)
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="go on with the run in RUN_DIR")] = False,
    json: JsonTarget = None,
    *,
    settings: dict[str, str],
) -> None:
    """Train a model; the best one of the validations is kept.

    Settings come from --preset, else from the dataset's own preset for --model, else from the graph's
    statistics; each can be changed by its option. The defaults shown below are those without any of these.
    """
    output = Output(json)
    _check_start(start, preset, resume, settings)
    run, data, config = (
        _resumed(output, out, dataset, preset, settings)
        if resume
        else _new(output, out, dataset, preset, start, settings)
    )
    _introduce(output, data, config, out)

    from dpmpn.train.trainer import train

    with stoppable() as stop, Meter(output, "trained") as meter:
        result = train(
            run,
            data,
            config,
            resume=resume,
            max_queries=max_queries,
            max_minutes=max_minutes,
            progress=meter.show_training,
            stop=stop,
        )
    report = {"run_dir": str(out), "dataset": data.name, **asdict(result)}
    if result.stopped_because == "interrupted":
        output.say(f"Interrupted after {result.position:,} of {result.total:,} queries; the run is saved.")
        output.say(f"Go on with: {_resume_command(dataset, out, max_queries, max_minutes)}")
        output.result(report, lambda: None)
        raise typer.Exit(stop.exit_code)
    output.result(report, lambda: _conclude(output, result, data, out))


def _check_start(start: str | None, preset: str | None, resume: bool, settings: dict[str, str]) -> None:
    """Refuse what cannot go with a model to begin from."""
    if start is None:
        return
    if resume:
        raise ConfigError("--from cannot go with --resume: the run has begun already; leave it out")
    if preset is not None:
        raise ConfigError("--preset cannot go with --from, whose model has its sizes; leave out one of them")
    if check_overrides(settings) not in (None, AnyGraphSettings.name):
        raise ConfigError(
            f"--model {settings['model']} cannot go with --from, which has a model; leave out one of them"
        )


def _new(
    output: Output, out: Path, name: str, preset: str | None, start: str | None, settings: dict[str, str]
) -> tuple["RunFolder", Dataset, Config]:
    """A new run, after everything that can be wrong with the request was checked."""
    pretrained: Pretrained | None = None
    if start is None:
        dataset, config, reasons = chosen_settings(name, preset, settings)
    else:
        from dpmpn.train.tuning import start_named, tuned_config

        pretrained, dataset = start_named(start), load_dataset(name)
        config, reasons = tuned_config(dataset, pretrained, settings)
    output.say("settings: " + (reasons[0] if len(reasons) == 1 else "derived from the graph"))
    for reason in reasons[1:] and reasons:
        output.say(f"  {reason}")

    from dpmpn.train.run_folder import RunFolder

    return RunFolder.create(out, dataset, config, pretrained), dataset, config


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
    if folder.is_dir() or (known is not None and known.is_dir()):
        try:
            check_data(run, load_dataset(name))
        except RunError as error:
            raise error if is_named else other from error
    elif is_named:
        output.say(f"'{name}' is not here to compare with: training goes on with the facts in {out}")
    else:
        raise other
    check_beginning(run, resume=True)
    if not run.has_weights():
        output.say(f"{out} has no checkpoint yet: training begins anew")
    return run, dataset, with_overrides(run.config, settings)


def _introduce(output: Output, dataset: Dataset, config: Config, out: Path) -> None:
    graph = dataset.graph
    output.say(
        f"{dataset.name}: {graph.n_entities:,} entities, {graph.n_forward:,} relations; "
        f"triples: {len(dataset.train):,} train, {len(dataset.valid):,} valid, {len(dataset.test):,} test"
    )
    epochs = config.training.n_epochs
    output.say(f"training for {epochs:g} {plural(epochs, 'epoch')} in {out}; Ctrl-C saves and ends")


def _conclude(output: Output, result: "TrainingResult", dataset: Dataset, out: Path) -> None:
    why = {
        "max_minutes": ", ended by --max-minutes",
        "patience": ", ended early: nothing better came any more",
    }
    output.say(
        f"Trained on {result.position:,} queries in {duration(result.seconds)}"
        f"{why.get(result.stopped_because, '')}."
    )
    if result.best is not None:
        output.say(
            f"Best model: validation MRR {result.best.mrr:.4f}, after {result.best.position:,} queries."
        )
    if len(dataset.test):
        output.say(f"Measure it with: dpmpn evaluate {shlex.quote(str(out))}")


def _resume_command(dataset: str, out: Path, max_queries: int | None, max_minutes: float | None) -> str:
    words = ["dpmpn", "train", dataset, "--out", str(out), "--resume"]
    words += [] if max_queries is None else ["--max-queries", str(max_queries)]
    words += [] if max_minutes is None else ["--max-minutes", f"{max_minutes:g}"]
    return shlex.join(words)
