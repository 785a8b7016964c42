"""The twelve tasks of NELL995, and their trained models: what three exhibits are made of."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dpmpn.config import load_preset
from dpmpn.data.dataset import Dataset
from dpmpn.data.registry import known_dataset
from dpmpn.data.tasks import single_relation_task
from dpmpn.lab.reproduce.exhibit import Request, Result
from dpmpn.lab.reproduce.settings import QUICK_DATASET, config_for, dataset_named, training_seconds
from dpmpn.wording import listed, percentage

if TYPE_CHECKING:
    from dpmpn.lab.reproduce.workshop import Workshop
    from dpmpn.train.run_folder import RunFolder

TASKS = (
    "athleteplaysforteam",
    "athleteplaysinleague",
    "athletehomestadium",
    "athleteplayssport",
    "teamplayssport",
    "organizationheadquarteredincity",
    "worksfor",
    "personborninlocation",
    "personleadsorganization",
    "organizationhiredperson",
    "agentbelongstoorganization",
    "teamplaysinleague",
)
"""In the order of the paper's table."""
QUICK_TASKS = ("in_region", "official_language")
"""Relations of the bundled graph, asked like the tasks of NELL995."""
_PRESET = "nell995"
_QUICK_EPOCHS, _QUICK_QUERIES = 2.0, 600
# Facts of a task, on average; reading all twelve to know takes half a minute.
_TRAIN_FACTS, TEST_FACTS = 774, 333
PAPER_EPOCHS = 3


def tasks_of(request: Request) -> tuple[str, ...]:
    """The tasks a request is about."""
    return QUICK_TASKS if request.quick else TASKS


def task_dataset(task: str) -> Dataset:
    """The graph, queries and candidates of a task."""
    if task in QUICK_TASKS:
        return single_relation_task(dataset_named(QUICK_DATASET), task)
    return dataset_named(f"NELL-995/{task}")


def task_run(workshop: "Workshop", request: Request, task: str, seed: int) -> "tuple[RunFolder, Dataset]":
    """The trained run of a task, and its dataset."""
    dataset = task_dataset(task)
    settings: dict[str, Any] = {}
    if request.quick and request.epochs is None:
        settings["n_epochs"] = _QUICK_EPOCHS
    config = config_for(request, dataset, seed, **settings)
    return workshop.trained(f"{task}-seed{seed}", dataset, config), dataset


def check_tasks(request: Request) -> None:
    """Refuse before any training where the data of one task is missing."""
    if not request.quick:
        for task in TASKS:
            known_dataset(f"NELL-995/{task}").existing_folder()


def task_seconds(request: Request, n_questions: int) -> float:
    """About what training the model of a task and asking it so many questions takes on two cores."""
    if request.quick:
        return training_seconds(request, QUICK_DATASET, _QUICK_QUERIES, n_questions)
    epochs = request.epochs or load_preset(_PRESET).training.n_epochs
    return training_seconds(request, _PRESET, epochs * _TRAIN_FACTS, n_questions)


def facts_counted(run: "RunFolder", dataset: Dataset) -> Result:
    """The training facts of a task, and how many of them an epoch asks: not those that choose the model."""
    from dpmpn.train.validation import training_queries

    return {
        "train_facts": len(dataset.train),
        "queries_of_an_epoch": len(training_queries(dataset, run.config)),
    }


def _ended_told(request: Request) -> str:
    """What ended the trainings, as far as the request says it."""
    named = (("--epochs", request.epochs), ("--max-minutes", request.max_minutes))
    limits = [f"{option} {value:g}" for option, value in named if value is not None]
    return f". Ours were limited by {listed(limits)}" if limits else ""


def training_told(request: Request, results: Sequence[Result]) -> str:
    """How long the tasks were trained, and how that differs from the paper."""
    epochs = sorted(result["training"]["queries"] / result["queries_of_an_epoch"] for result in results)
    shown = list(dict.fromkeys(f"{count:.3g}" for count in (epochs[0], epochs[-1])))
    seen = "Trainings saw " + ("one epoch" if shown == ["1"] else f"{' to '.join(shown)} epochs")
    if request.quick:
        return f"{seen} of the bundled graph, with small settings: nothing here compares with the paper."
    if shown == [f"{PAPER_EPOCHS}"]:
        seen += ", as in the paper"
    else:
        seen += f"; the paper's saw {PAPER_EPOCHS}{_ended_told(request)}"
    held_out = sum(result["train_facts"] - result["queries_of_an_epoch"] for result in results)
    share = held_out / sum(result["train_facts"] for result in results)
    if not held_out:
        return f"{seen}."
    return (
        f"{seen}. {percentage(share, 0)} % of the training facts were not asked in training: they choose the best "
        "weights, since the validation facts of these tasks are training facts, too."
    )
