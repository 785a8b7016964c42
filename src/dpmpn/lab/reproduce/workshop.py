"""Where the pieces of an exhibit are made: trains runs or goes on with them, and measures them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmpn.config import Config, to_dict, with_overrides
from dpmpn.data.dataset import SPLITS, Dataset
from dpmpn.errors import RunError, Stopped
from dpmpn.lab.reproduce.settings import Request, filled, queries_of_an_epoch

if TYPE_CHECKING:
    from dpmpn.engine.engine import Engine
    from dpmpn.engine.settings import Horizon
    from dpmpn.train.run_folder import RunFolder
    from dpmpn.train.trainer import Progress

Result = dict[str, Any]
"""What a piece of work found, as plain values."""
RUNS = "runs"
_PLANNED = ("n_epochs", "validate_every_queries", "patience")
# Settings of a training that say how long it lasts. Exhibits say what a run saw, whatever these are.
_LENGTH = (*_PLANNED, "validation_queries", "checkpoint_every_seconds")
_TRIAL_SHARE, _TRIAL_SECONDS = 0.05, 20.0  # of the minutes; at most so many seconds


@dataclass(frozen=True)
class Watch:
    """Who is told how the work goes on, and may end it."""

    say: Callable[[str], None] = lambda _: None
    training: "Callable[[Progress], None]" = lambda _: None
    asking: Callable[[int, int], None] = lambda *_: None
    stop: Callable[[], bool] = lambda: False


@dataclass(frozen=True)
class Workshop:
    """The folder of an exhibit, with the runs in it, and whom to tell."""

    folder: Path
    request: Request
    watch: Watch = Watch()

    def trained(
        self, label: str, dataset: Dataset, config: Config, *, max_queries: int | None = None
    ) -> "RunFolder":
        """The run of a label, trained as far as the request, the configuration and `max_queries` say.

        A run that was begun before goes on where it stopped; one of another exhibit is used as it is.
        """
        from dpmpn.train.run_folder import RunFolder
        from dpmpn.train.trainer import train

        if self.request.runs is not None:
            self.watch.say(f"using {label} of {self.request.runs}")
            return lent_run(self.request.runs / RUNS / label, dataset, config)
        config = with_overrides(config, {"threads": self.request.threads})
        path = self.folder / RUNS / label
        begun = RunFolder(path).exists()
        run = RunFolder.open(path) if begun else RunFolder.create(path, dataset, config)
        self.watch.say(f"training {label}")
        result = train(
            run,
            dataset,
            config,
            resume=begun,
            max_queries=max_queries,
            max_minutes=self.request.max_minutes,
            progress=self.watch.training,
            stop=self.watch.stop,
        )
        if result.stopped_because == "interrupted":
            raise Stopped
        if max_queries is not None and result.position > max_queries:
            raise RunError(
                f"{run.path} was trained on {result.position:,} queries, more than the {max_queries:,} asked for; "
                "remove that folder to train it anew"
            )
        return run

    def trained_in_time(self, label: str, dataset: Dataset, config: Config) -> "tuple[RunFolder, Result]":
        """A run with as many epochs as fill the minutes of the request, and what is to be known of its length."""
        run = self.trained(label, dataset, self.planned(label, dataset, config))
        n_epoch = queries_of_an_epoch(dataset, run.config)
        return run, {
            "seed": config.run.seed,
            "parameters": sum(parameter.numel() for parameter in run.model().parameters()),
            "queries_of_an_epoch": n_epoch,
            "planned_queries": max(1, round(run.config.training.n_epochs * n_epoch)),
        }

    def planned(self, label: str, dataset: Dataset, config: Config) -> Config:
        """The settings of a run that fills the minutes; one that was begun before keeps its plan."""
        from dpmpn.train.run_folder import RunFolder

        request, path = self.request, self.folder / RUNS / label
        if not request.fills_minutes:
            return config
        if RunFolder(path).exists():
            training = RunFolder.open(path).config.training
            return with_overrides(config, {key: getattr(training, key) for key in _PLANNED})
        from dpmpn.lab.bench import training_stretch

        self.watch.say(f"measuring the speed of {label}")
        seconds = 60 * (request.max_minutes or 0)
        timed = with_overrides(config, {"threads": request.threads})
        rate = training_stretch(dataset, timed, min(_TRIAL_SECONDS, _TRIAL_SHARE * seconds)).queries_per_s
        n_epoch, n_valid = queries_of_an_epoch(dataset, config), len(dataset.queries("valid"))
        return filled(config, seconds, rate, n_epoch, n_valid)

    def evaluated(
        self,
        run: "RunFolder",
        dataset: Dataset,
        *,
        which: str = "best",
        split: str = "test",
        horizon: "Horizon | None" = None,
        limit: int | None = None,
    ) -> Result:
        """Scores of a run's best or last weights on a split, or `limit` of its facts, with what training took."""
        from dpmpn.evaluate.evaluator import evaluate

        with self.asking(run, dataset, which) as engine:
            scores = evaluate(engine, dataset, split, horizon=horizon, limit=limit, progress=self.progress)
        return {"scores": scores, "training": training_record(run)}

    @contextmanager
    def asking(self, run: "RunFolder", dataset: Dataset, which: str = "best") -> "Iterator[Engine]":
        """The weights of a run, ready to be asked with the threads of the request."""
        from dpmpn.engine.engine import Engine

        config = with_overrides(run.config, {"threads": self.request.threads})
        engine = Engine(run.model(which), dataset.graph, config)
        try:
            yield engine
        finally:
            engine.close()

    def progress(self, done: int, total: int) -> None:
        """Say how many questions were asked; raise `Stopped` where the user ended the work."""
        if self.watch.stop():
            raise Stopped
        self.watch.asking(done, total)


def lent_run(path: Path, dataset: Dataset, config: Config) -> "RunFolder":
    """A run that another exhibit trained: read, never written, and only where it is the model that is wanted."""
    from dpmpn.train.run_folder import RunFolder

    if not RunFolder(path).exists():
        raise RunError(
            f"{path} is not there; name a folder that has it with --runs, or leave that out to train"
        )
    run = RunFolder.open(path)
    if not run.has_weights():
        raise RunError(f"{path} has no weights yet; train it first, or leave out --runs")
    difference = _other_data(run.dataset(), dataset) or _other_setting(run.config, config)
    if difference:
        raise RunError(f"{path} was trained with {difference}; leave out --runs to train anew")
    return run


def _other_data(before: Dataset, wanted: Dataset) -> str:
    if before.name != wanted.name:
        return f"the dataset {before.name} instead of {wanted.name}"
    same = before.graph.n_entities == wanted.graph.n_entities and all(
        np.array_equal(before.split(split), wanted.split(split)) for split in SPLITS
    )
    return "" if same else f"other facts of {wanted.name}"


def _other_setting(before: Config, wanted: Config) -> str:
    """The first setting that makes another model, in words; limits of the training and the machine do not."""
    for section, settings in to_dict(before).items():
        for key, value in settings.items():
            now = to_dict(wanted)[section].get(key)
            if value != now and key not in _LENGTH and (section != "run" or key == "seed"):
                return f"{key} = {value} instead of {now}"
    return ""


def training_record(run: "RunFolder") -> Result:
    """What a run was trained on and what that took, from its metrics; validations are in the seconds only."""
    from dpmpn.train.run_folder import read_lines

    lines = read_lines(run.metrics)
    stretches = [line for line in lines if line["kind"] == "train"]
    positions = [0, *(line["position"] for line in stretches)]
    training_seconds = sum(
        (after - before) / line["queries_per_s"]
        for before, after, line in zip(positions, positions[1:], stretches, strict=False)
    )
    return {
        "queries": positions[-1],
        "training_seconds": training_seconds,
        "seconds": lines[-1]["seconds"] if lines else 0.0,
        "cpu_seconds": lines[-1]["cpu_seconds"] if lines else 0.0,
        "validations": [
            {"queries": line["position"], "mrr": line["mrr"]}
            for line in lines
            if line["kind"] == "validation"
        ],
    }
