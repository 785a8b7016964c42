"""What a user asks of an exhibit, and the dataset, settings and length that its trainings have for it.

Some trainings have to take the same time. How many queries fit into the minutes of a request is foreseen from a trial:
a learning rate that falls must know the end of its run before it comes, and a run that ends long before its minutes are
over would not be compared with one that uses them.
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from dpmpn.config import Config, to_dict, with_overrides
from dpmpn.data.dataset import Dataset
from dpmpn.data.importer import load_dataset
from dpmpn.errors import ConfigError
from dpmpn.suitable_config import suitable_config

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
