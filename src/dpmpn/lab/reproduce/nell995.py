"""NELL995: twelve tasks of one relation each, scored by mean average precision; their models serve three exhibits."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from statistics import mean
from typing import TYPE_CHECKING, Any

from dpmpn.config import load_preset
from dpmpn.data.dataset import Dataset, single_relation_task
from dpmpn.data.registry import known_dataset
from dpmpn.evaluate.metrics import MAP_TITLES, TIES
from dpmpn.lab.figures import mean_std, published_map, table
from dpmpn.lab.reproduce.exhibit import NOT_COMPARABLE, Exhibit, Piece, grouped, row_of, seeds_note
from dpmpn.lab.reproduce.workshop import (
    QUICK_DATASET,
    Request,
    Result,
    Workshop,
    config_for,
    dataset_named,
    training_seconds,
)
from dpmpn.wording import listed, percentage

if TYPE_CHECKING:
    from dpmpn.train.run_folder import RunFolder

TASKS = (
    *(
        "athleteplaysforteam",
        "athleteplaysinleague",
        "athletehomestadium",
        "athleteplayssport",
        "teamplayssport",
    ),
    *("organizationheadquarteredincity", "worksfor", "personborninlocation", "personleadsorganization"),
    *("organizationhiredperson", "agentbelongstoorganization", "teamplaysinleague"),
)
"""In the order of the paper's table."""
QUICK_TASKS = ("in_region", "official_language")
"""Relations of the bundled graph, asked like the tasks of NELL995."""
_PRESET = "nell995"
_QUICK_EPOCHS, _QUICK_QUERIES = 2.0, 600
# Facts of a task, on average; reading all twelve to know takes half a minute.
_TRAIN_FACTS, TEST_FACTS = 774, 333
_PAPER_EPOCHS = 3
_PAPER = "DPMPN"
_SOURCES = "\nThe figures of other systems are those that the paper took from Shen et al. 2018 (M-Walk)."


def task_dataset(task: str) -> Dataset:
    """The graph, queries and candidates of a task."""
    if task in QUICK_TASKS:
        return single_relation_task(dataset_named(QUICK_DATASET), task)
    return dataset_named(f"NELL-995/{task}")


def task_run(workshop: Workshop, request: Request, task: str, seed: int) -> "tuple[RunFolder, Dataset]":
    """The trained run of a task, and its dataset."""
    dataset = task_dataset(task)
    settings: dict[str, Any] = {}
    if request.quick and request.epochs is None:
        settings["n_epochs"] = _QUICK_EPOCHS
    config = config_for(request, dataset, seed, **settings)
    return workshop.trained(f"{task}-seed{seed}", dataset, config), dataset


def facts_counted(run: "RunFolder", dataset: Dataset) -> Result:
    """The training facts of a task, and how many of them an epoch asks: not those that choose the model."""
    from dpmpn.train.validation import training_queries

    return {
        "train_facts": len(dataset.train),
        "queries_of_an_epoch": len(training_queries(dataset, run.config)),
    }


def _limits_note(request: Request) -> str:
    """What ended the trainings, as far as the request says it."""
    named = (("--epochs", request.epochs), ("--max-minutes", request.max_minutes))
    limits = [f"{option} {value:g}" for option, value in named if value is not None]
    return f". Ours were limited by {listed(limits)}" if limits else ""


def tasks_note(request: Request, results: Sequence[Result]) -> str:
    """How long the tasks were trained, and how that differs from the paper."""
    epochs = sorted(result["training"]["queries"] / result["queries_of_an_epoch"] for result in results)
    shown = list(dict.fromkeys(f"{count:.3g}" for count in (epochs[0], epochs[-1])))
    seen = "Trainings saw " + ("one epoch" if shown == ["1"] else f"{' to '.join(shown)} epochs")
    if request.quick:
        return f"{seen} of the bundled graph, {NOT_COMPARABLE}"
    if shown == [f"{_PAPER_EPOCHS}"]:
        seen += ", as in the paper"
    else:
        seen += f"; the paper's saw {_PAPER_EPOCHS}{_limits_note(request)}"
    held_out = sum(result["train_facts"] - result["queries_of_an_epoch"] for result in results)
    share = held_out / sum(result["train_facts"] for result in results)
    if not held_out:
        return f"{seen}."
    return (
        f"{seen}. {percentage(share, 0)} % of the training facts were not asked in training: they choose the best "
        "weights, since the validation facts of these tasks are training facts, too."
    )


class TaskExhibit(Exhibit):
    """A piece for each task and seed, made of its trained model."""

    n_questions: int  # that a piece asks, on average
    seed_by_seed = False  # or task by task

    @abstractmethod
    def work(self, request: Request, task: str, seed: int, workshop: Workshop) -> Result:
        """What is asked of the model of a task."""

    def pieces(self, request: Request) -> list[Piece]:
        """All tasks with all seeds; refused where the data of one is missing."""
        tasks, seconds = QUICK_TASKS if request.quick else TASKS, self._seconds(request)
        if not request.quick:
            for task in TASKS:
                known_dataset(f"NELL-995/{task}").existing_folder()
        pairs = [(task, seed) for task in tasks for seed in request.seeds]
        if self.seed_by_seed:
            pairs = [(task, seed) for seed in request.seeds for task in tasks]
        return [
            Piece(f"{task}-seed{seed}", seconds, partial(self.work, request, task, seed))
            for task, seed in pairs
        ]

    def _seconds(self, request: Request) -> float:
        """About what training the model of a task and asking it takes on two cores."""
        if request.quick:
            return training_seconds(request, QUICK_DATASET, _QUICK_QUERIES, self.n_questions)
        epochs = request.epochs or load_preset(_PRESET).training.n_epochs
        return training_seconds(request, _PRESET, epochs * _TRAIN_FACTS, self.n_questions)


class Nell995(TaskExhibit):
    """Mean average precision on each task."""

    name = "nell995"
    title = "The tasks of NELL995"
    place = "Table 6"
    claim = (
        "DPMPN is the best of the systems compared on five of the tasks and close to the best on the others."
    )
    # For the filtered rank of the answers of each test head, and for its candidates.
    n_questions = 2 * TEST_FACTS
    seed_by_seed = True
    fields = ("queries", "epochs", "training_seconds", "cpu_seconds")

    def work(self, request: Request, task: str, seed: int, workshop: Workshop) -> Result:
        """Ask all test questions."""
        run, dataset = task_run(workshop, request, task, seed)
        return {"task": task, "seed": seed, **facts_counted(run, dataset), **workshop.evaluated(run, dataset)}

    def rows(self, request: Request, results: Sequence[Result]) -> list[dict[str, Any]]:
        """Both averages with ties placed in every way."""
        rows = []
        for result in results:
            averages = {
                average + ("" if ties == TIES[0] else f"_{ties}"): _map(result, ties)[average]
                for ties in TIES
                for average in MAP_TITLES
            }
            rows.append({**row_of(result, ("task", "seed")), **averages, **row_of(result, self.fields)})
        return rows

    def text(self, request: Request, results: Sequence[Result]) -> list[str]:
        """Ours beside what was published, task by task."""
        by_task = grouped(results, lambda result: str(result["task"]))
        published = {
            system: maps for system, maps in published_map().items() if any(task in maps for task in by_task)
        }
        systems = [system + ", the paper" * (system == _PAPER) for system in published]
        lines = [
            [task, *(mean_std([_map(result)[average] for result in found]) for average in MAP_TITLES)]
            + [maps.get(task, "-") for maps in published.values()]
            for task, found in by_task.items()
        ]
        return [
            table(["task", "ours", "ours, over heads", *systems], lines),
            *([_shortfall_note(by_task, published[_PAPER])] if _PAPER in published else []),
            "Mean average precision in percent over the candidates that come with each task. A head counts once for "
            "each of its test facts, as in the paper; over heads it counts once, as in older papers. "
            f"{_ties_note(results)} {tasks_note(request, results)} {seeds_note(request)}",
            *([_SOURCES] if published else []),
        ]


def _map(result: Result, ties: str = "realistic") -> dict[str, float]:
    maps: dict[str, float] = result["scores"]["map"][ties]
    return maps


def _shortfall_note(by_task: Mapping[str, Sequence[Result]], paper: Mapping[str, str]) -> str:
    """On how many tasks ours reaches the paper's figure, at the precision of the table."""
    behind = {
        task: shortfall(mean(_map(result)["map_over_triples"] for result in found), paper[task])
        for task, found in by_task.items()
    }
    reached = sum(points <= 0 for points in behind.values())
    shown = f"Ours is at or above the paper's figure on {reached} of {len(behind)} tasks"
    if reached == len(behind):
        return f"{shown}.\n"
    worst = max(behind, key=lambda task: behind[task])
    return f"{shown}; the largest shortfall is {behind[worst]:.1f} points, on {worst}.\n"


def shortfall(ours: float, printed: str) -> float:
    """Points by which a fraction is below a printed percentage, both with one digit; negative where it is above."""
    return round(float(printed.split("(")[0]) - round(100 * ours, 1), 1)


def _ties_note(results: Iterable[Result]) -> str:
    apart = max(
        _map(result, "optimistic")["map_over_triples"] - _map(result, "pessimistic")["map_over_triples"]
        for result in results
    )
    return (
        "Candidates that tie are placed in random order; the best and the worst order differ by "
        f"{percentage(apart)} points at most."
    )


NELL995 = Nell995()
