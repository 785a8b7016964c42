"""NELL995: twelve tasks of one relation each, scored by mean average precision over given candidates."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from statistics import mean
from typing import TYPE_CHECKING, Any

from dpmpn.evaluate.metrics import MAP_TITLES, TIES
from dpmpn.lab.figures import mean_std, table
from dpmpn.lab.published import published_map
from dpmpn.lab.reproduce.analysis import seeds_told
from dpmpn.lab.reproduce.exhibit import Exhibit, Exhibited, Piece, Request, Result
from dpmpn.lab.reproduce.tasks import (
    TEST_FACTS,
    check_tasks,
    facts_counted,
    task_run,
    task_seconds,
    tasks_of,
    training_told,
)
from dpmpn.wording import percentage

if TYPE_CHECKING:
    from dpmpn.lab.reproduce.workshop import Workshop

_PAPER = "DPMPN"
_SOURCES = "\nThe figures of other systems are those that the paper took from Shen et al. 2018 (M-Walk)."


def _pieces(request: Request) -> list[Piece]:
    check_tasks(request)
    # Each test head is asked twice: for the filtered rank of its answers, and for its candidates.
    seconds = task_seconds(request, 2 * TEST_FACTS)
    return [
        Piece(f"{task}-seed{seed}", seconds, partial(_train_and_rank, request, task, seed))
        for seed in request.seeds
        for task in tasks_of(request)
    ]


def _train_and_rank(request: Request, task: str, seed: int, workshop: "Workshop") -> Result:
    run, dataset = task_run(workshop, request, task, seed)
    return {
        "task": task,
        "seed": seed,
        **facts_counted(run, dataset),
        **workshop.evaluated(run, dataset),
    }


def _show(request: Request, results: dict[str, Result]) -> Exhibited:
    by_task: dict[str, list[Result]] = {}
    for result in results.values():
        by_task.setdefault(result["task"], []).append(result)
    published = {
        system: maps for system, maps in published_map().items() if any(task in maps for task in by_task)
    }
    columns = ["task", "ours", "ours, over heads", *(_heading(system) for system in published)]
    rows = [
        [task, _map_cell(found, "map_over_triples"), _map_cell(found, "map_over_heads")]
        + [maps.get(task, "-") for maps in published.values()]
        for task, found in by_task.items()
    ]
    text = "\n".join(
        [
            table(columns, rows),
            *([_compared(by_task, published[_PAPER])] if _PAPER in published else []),
            "Mean average precision in percent over the candidates that come with each task. A head counts once for "
            "each of its test facts, as in the paper; over heads it counts once, as in older papers. "
            f"{_ties_told(results.values())} {training_told(request, list(results.values()))} {seeds_told(request)}",
            *([_SOURCES] if published else []),
        ]
    )
    return Exhibited([_row(result) for result in results.values()], text)


def _heading(system: str) -> str:
    return f"{system}, the paper" if system == _PAPER else system


def _map_cell(found: Sequence[Result], average: str) -> str:
    return mean_std([_map(result)[average] for result in found])


def _map(result: Result, ties: str = "realistic") -> dict[str, float]:
    maps: dict[str, float] = result["scores"]["map"][ties]
    return maps


def _compared(by_task: Mapping[str, Sequence[Result]], paper: Mapping[str, str]) -> str:
    """On how many tasks ours reaches the paper's figure, at the precision of the table."""
    behind = {
        task: shortfall(mean(_map(result)["map_over_triples"] for result in found), paper[task])
        for task, found in by_task.items()
    }
    reached = sum(points <= 0 for points in behind.values())
    told = f"Ours is at or above the paper's figure on {reached} of {len(behind)} tasks"
    if reached == len(behind):
        return f"{told}.\n"
    worst = max(behind, key=lambda task: behind[task])
    return f"{told}; the largest shortfall is {behind[worst]:.1f} points, on {worst}.\n"


def shortfall(ours: float, printed: str) -> float:
    """Points by which a fraction is below a printed percentage, both with one digit; negative where it is above."""
    return round(float(printed.split("(")[0]) - round(100 * ours, 1), 1)


def _ties_told(results: Iterable[Result]) -> str:
    apart = max(
        _map(result, "optimistic")["map_over_triples"] - _map(result, "pessimistic")["map_over_triples"]
        for result in results
    )
    return (
        "Candidates that tie are placed in random order; the best and the worst order differ by "
        f"{percentage(apart)} points at most."
    )


def _row(result: Result) -> dict[str, Any]:
    training = result["training"]
    maps = {
        average + ("" if ties == "realistic" else f"_{ties}"): _map(result, ties)[average]
        for ties in TIES
        for average in MAP_TITLES
    }
    return {
        "task": result["task"],
        "seed": result["seed"],
        **maps,
        "queries": training["queries"],
        "epochs": training["queries"] / result["queries_of_an_epoch"],
        "training_seconds": training["training_seconds"],
        "cpu_seconds": training["cpu_seconds"],
    }


NELL995 = Exhibit(
    name="nell995",
    title="The tasks of NELL995",
    place="Table 6",
    claim="DPMPN is the best of the systems compared on five of the tasks and close to the best on the others.",
    pieces=_pieces,
    show=_show,
)
