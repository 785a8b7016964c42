"""Where the pieces of an exhibit are made: what a user asks for, the settings that means, and the trained runs.

Some trainings have to take the same time. How many queries fit into the minutes of a request is foreseen from a trial:
a learning rate that falls must know the end of its run before it comes, and a run that ends long before its minutes are
over would not be compared with one that uses them.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmpn.config import Config, to_dict, with_overrides
from dpmpn.data.dataset import Dataset, difference
from dpmpn.data.importer import load_dataset
from dpmpn.errors import ConfigError, RunError, Stopped
from dpmpn.suitable_config import suitable_config

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
QUICK_DATASET = "countries"
SCALE_DATASET = "YAGO3-10-quarter"
"""A quarter of the training facts of YAGO3-10: shows speed and memory, not quality."""
BOTH_DATASETS = ("WN18RR", "FB15K-237")
"""What the paper's analyses are made on."""
LIMITS = {
    "max_attending_from_per_step": "N1",
    "max_sampling_per_node": "N2",
    "max_attending_to_per_step": "N3",
}
"""The limits of a horizon, and what the paper calls them."""
_QUICK = {
    "n_dims": 16,
    "n_steps_in_agnn": 4,
    "n_epochs": 0.3,
    "validation_queries": 100,
    "max_attending_from_per_step": 10,
    "max_sampling_per_node": 20,
    "max_attending_to_per_step": 40,
}
_QUICK_OF = {"paper": {"n_dims_att": 8}}
# Training queries a second on two cores with the paper's settings (`dpmpn bench`, and the runs in benchmarks/results).
_RATES = {"WN18RR": 200, "WN18": 150, "FB15K-237": 110, "FB15K": 100, "YAGO3-10": 80, QUICK_DATASET: 800}
# Of graphs without a preset, a guess: only the time that is said beforehand depends on it.
_RATES |= {"NELL-995": 100, "UMLS": 100, "Kinship": 100, "Family": 150}
_NELL_RATE = 8
_EVALUATION_SPEED = 2.5  # times as many queries a second as training
_VALIDATIONS, _VALIDATING_SHARE = 10, 0.1  # at most so many, and so much of the time
_ASKING_SPEED = 1.5  # times as many queries a second as training, at a wider horizon
_SPARE = 0.02  # of the time, for what a trial does not see


@dataclass(frozen=True)
class Request:
    """What a user asked of an exhibit."""

    seeds: tuple[int, ...] = (0,)
    quick: bool = False  # on the bundled graph, in a minute
    dataset: str | None = None  # where an analysis can be made on another one
    epochs: float | None = None  # of each training; None = as the paper
    max_minutes: float | None = None  # of each training
    threads: int = 0  # 0 = all cores
    runs: Path | None = None  # folder of another exhibit, whose trained models are used instead of new ones
    only: tuple[str, ...] = ()  # parts of an exhibit that has such; none named = all

    def __post_init__(self) -> None:
        if not self.seeds or len(set(self.seeds)) < len(self.seeds) or min(self.seeds) < 0:
            raise ConfigError(f"'--seeds' must be different numbers from 0 on, not {list(self.seeds)}")
        for name, value in (("--epochs", self.epochs), ("--max-minutes", self.max_minutes)):
            if value is not None and not value > 0:
                raise ConfigError(f"'{name}' must be above 0, not {value:g}")
        if self.runs is not None and (self.epochs is not None or self.max_minutes is not None):
            raise ConfigError("'--runs' uses models as they are; leave out --epochs and --max-minutes")

    @property
    def fills_minutes(self) -> bool:
        """Whether trainings that are planned last as long as `--max-minutes` says, whatever their presets say."""
        return self.max_minutes is not None and self.epochs is None and self.runs is None

    def as_dict(self) -> dict[str, Any]:
        """All but the seeds and parts: results of others can stand side by side."""
        return {
            "quick": self.quick,
            "dataset": self.dataset,
            "epochs": self.epochs,
            "max_minutes": self.max_minutes,
            "runs": None if self.runs is None else str(self.runs),
        }


@lru_cache(maxsize=2)  # exhibits go through their datasets one after the other
def dataset_named(name: str) -> Dataset:
    """A dataset, read once however many pieces ask for it."""
    return load_dataset(name)


def config_for(
    request: Request, dataset: Dataset, seed: int, *, model: str = "paper", **settings: Any
) -> Config:
    """The settings of a dataset with those of the request and of an exhibit; quick ones are far smaller.

    `model` is the model they are for, "paper" or "strong".
    """
    config, _ = suitable_config(dataset, model)
    if request.quick:
        config = with_overrides(config, _QUICK | _QUICK_OF.get(model, {}))
    if request.epochs is not None:
        config = with_overrides(config, {"n_epochs": request.epochs})
    return with_overrides(config, {"seed": seed, **settings})


def setting(config: Config, key: str) -> Any:
    """The value of a setting by its key alone."""
    return next(section[key] for section in to_dict(config).values() if key in section)


def filled(config: Config, seconds: float, rate: float, n_epoch: int, n_valid: int) -> Config:
    """Settings for so many seconds, at `rate` training queries a second; validations are spread evenly over them."""
    asked = min(config.training.validation_queries or n_valid, n_valid)
    validating = asked / (_ASKING_SPEED * rate)  # seconds each
    validations = max(1, min(_VALIDATIONS, int(_VALIDATING_SHARE * seconds / max(validating, 1e-9))))
    training = max((1 - _SPARE) * seconds - validations * validating, seconds / 2)
    queries = max(1, round(rate * training))
    plan = {"n_epochs": queries / n_epoch, "validate_every_queries": max(1, -(-queries // validations))}
    return with_overrides(config, {**plan, "patience": None})


def queries_of_an_epoch(dataset: Dataset, config: Config) -> int:
    """Training queries of an epoch; a question with several answers to learn together is one."""
    from dpmpn.train.batches import TrainingQueries
    from dpmpn.train.validation import training_queries

    return len(TrainingQueries(dataset.graph, training_queries(dataset, config), config))


def training_seconds(request: Request, dataset_name: str, n_queries: float, n_asked: int = 0) -> float:
    """About what training on so many queries and asking `n_asked` takes on two cores."""
    rate = _RATES.get(dataset_name, _NELL_RATE)
    training = n_queries / rate
    if request.runs is not None:  # trained already
        training = 0.0
    if request.max_minutes is not None:
        training = min(training, 60 * request.max_minutes)
    return training + n_asked / (_EVALUATION_SPEED * rate)


def piece_seconds(request: Request, dataset: Dataset, config: Config, n_asked: int) -> float:
    """About what a training and asking so many questions takes on two cores."""
    n_queries = config.training.n_epochs * len(dataset.queries("train"))
    return training_seconds(request, dataset.name, n_queries, n_asked)


def planned_seconds(request: Request, dataset: Dataset, config: Config, n_asked: int) -> float:
    """The same of a training that fills the minutes of the request, where it names some."""
    if request.fills_minutes:
        return 60 * (request.max_minutes or 0) + training_seconds(request, dataset.name, 0, n_asked)
    return piece_seconds(request, dataset, config, n_asked)


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
                "remove that folder to train it again"
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
        engine: "Callable[..., Engine] | None" = None,
    ) -> Result:
        """Scores of a run's best or last weights on a split, or `limit` of its facts, with what training took."""
        from dpmpn.evaluate.evaluator import evaluate

        with self.asking(run, dataset, which, engine) as asked:
            scores = evaluate(asked, dataset, split, horizon=horizon, limit=limit, progress=self.progress)
        return {"scores": scores, "training": training_record(run)}

    @contextmanager
    def asking(
        self,
        run: "RunFolder",
        dataset: Dataset,
        which: str = "best",
        engine: "Callable[..., Engine] | None" = None,
    ) -> "Iterator[Engine]":
        """The weights of a run, ready to be asked with the threads of the request; `engine` makes another engine."""
        from dpmpn.engine.engine import Engine

        config = with_overrides(run.config, {"threads": self.request.threads})
        asked = (engine or Engine)(run.model(which), dataset.graph, config)
        try:
            yield asked
        finally:
            asked.close()

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
        raise RunError(f"{path} was trained with {difference}; leave out --runs to train again")
    return run


def _other_data(before: Dataset, wanted: Dataset) -> str:
    if before.name != wanted.name:
        return f"the dataset {before.name} instead of {wanted.name}"
    found = difference(before, wanted)
    return f"other facts of {wanted.name} ({found})" if found else ""


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
