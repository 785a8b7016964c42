"""Trainings that take the same time: how many queries fit into the minutes of a request is foreseen from a trial.

A learning rate that falls must know the end of its run before it comes; and a run that ends long before its minutes
are over would not be compared with one that uses them.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from dpmpn.config import Config, with_overrides
from dpmpn.data.dataset import Dataset
from dpmpn.lab.reproduce.exhibit import Request, Result
from dpmpn.lab.reproduce.settings import training_seconds
from dpmpn.lab.reproduce.workshop import RUNS
from dpmpn.wording import percentage

if TYPE_CHECKING:
    from dpmpn.lab.reproduce.workshop import Workshop
    from dpmpn.train.run_folder import RunFolder

_TRIAL_SHARE, _TRIAL_SECONDS = 0.05, 20.0  # of the minutes; at most so many seconds
_VALIDATIONS, _VALIDATING_SHARE = 10, 0.1  # at most so many, and so much of the time
_ASKING_SPEED = 1.5  # times as many queries a second as training, at a wider horizon
_SPARE = 0.02  # of the time, for what a trial does not see
_NEARLY = 0.95  # of the foreseen queries: a learning rate has fallen to about 5 % by then
_PLANNED = ("n_epochs", "validate_every_queries", "patience")


def fills_minutes(request: Request) -> bool:
    """Whether trainings are as long as `--max-minutes` says, whatever their presets say."""
    return request.max_minutes is not None and request.epochs is None and request.runs is None


def planned(workshop: "Workshop", label: str, dataset: Dataset, config: Config) -> Config:
    """The settings of a run with as many epochs as fill the minutes of the request.

    A run that was begun before keeps its plan.
    """
    from dpmpn.train.run_folder import RunFolder

    request, path = workshop.request, workshop.folder / RUNS / label
    if not fills_minutes(request):
        return config
    if RunFolder(path).exists():
        training = RunFolder.open(path).config.training
        return with_overrides(config, {key: getattr(training, key) for key in _PLANNED})
    from dpmpn.lab.bench import training_stretch

    workshop.watch.say(f"measuring the speed of {label}")
    seconds = 60 * (request.max_minutes or 0)
    timed = with_overrides(config, {"threads": request.threads})
    rate = training_stretch(dataset, timed, min(_TRIAL_SECONDS, _TRIAL_SHARE * seconds)).queries_per_s
    return filled(config, seconds, rate, queries_of_an_epoch(dataset, config), len(dataset.queries("valid")))


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


def planned_queries(run: "RunFolder", dataset: Dataset) -> int:
    """Training queries that a run's settings are made for."""
    return max(1, round(run.config.training.n_epochs * queries_of_an_epoch(dataset, run.config)))


def piece_seconds(request: Request, dataset: Dataset, config: Config, n_asked: int) -> float:
    """About what a training and asking so many questions takes on two cores."""
    if fills_minutes(request):
        return 60 * (request.max_minutes or 0) + training_seconds(request, dataset.name, 0, n_asked)
    n_queries = config.training.n_epochs * len(dataset.queries("train"))
    return training_seconds(request, dataset.name, n_queries, n_asked)


def n_parameters(run: "RunFolder") -> int:
    """Trainable numbers of a run's network."""
    return sum(parameter.numel() for parameter in run.network().parameters())


def length_told(request: Request, results: Iterable[Result] = ()) -> str:
    """What ended the trainings, and how far from its foreseen end the slowest one was."""
    if request.quick:
        return (
            "Trainings were cut very short, on the bundled graph with small settings: nothing here "
            "compares with anything."
        )
    if request.runs is not None:
        return "The models were trained before, and are used as they are."
    if fills_minutes(request):
        return (
            f"Each training had {request.max_minutes:g} minutes, validations included. How many queries fit into "
            "them was foreseen from a short trial, so that a learning rate that falls has fallen at the end."
            f"{_cut_told(results)}"
        )
    limit = "" if request.max_minutes is None else f", or {request.max_minutes:g} minutes if these came first"
    if request.epochs is not None:
        return f"Each training had {request.epochs:g} epochs{limit}."
    return "Each training was as long as the settings of its model say."


def _cut_told(results: Iterable[Result]) -> str:
    shares = [result["training"]["queries"] / result["planned_queries"] for result in results]
    if min(shares, default=1.0) > _NEARLY:
        return ""
    return f" Time was over before: one training saw only {percentage(min(shares), 0)} % of its queries."


def runs_told(request: Request) -> str:
    """How many runs stand behind a score."""
    if len(request.seeds) == 1:
        return "Each score is of one run."
    return f"Scores are means (standard deviations) of {len(request.seeds)} runs."
