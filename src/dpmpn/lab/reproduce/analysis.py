"""What the analyses of Section 3 share: their datasets, how scores are read, told and drawn over a setting."""

from collections.abc import Iterable, Sequence
from statistics import mean, stdev
from typing import TYPE_CHECKING, Any

from dpmpn.data.dataset import Dataset
from dpmpn.evaluate.metrics import TITLES
from dpmpn.lab.figures import mean_std
from dpmpn.lab.reproduce.exhibit import Request, Result
from dpmpn.lab.reproduce.settings import QUICK_DATASET, dataset_named
from dpmpn.wording import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DATASETS = ("WN18RR", "FB15K-237")
METRICS = {key: TITLES[key] for key in sorted(TITLES, key="mrr".__eq__)}
"""As in the paper's tables: MRR last."""
_PAPER_RUNS = 3  # of each setting
_PAPER_EPOCHS = 1  # of a training on either dataset


def chosen_dataset(request: Request) -> Dataset:
    """The dataset an analysis is made on."""
    return dataset_named(QUICK_DATASET if request.quick else request.dataset or DATASETS[0])


def run_label(dataset: Dataset, seed: int, setting: str = "") -> str:
    """The name of a run's folder."""
    return "-".join(filter(None, (dataset.name.lower(), f"seed{seed}", setting)))


def scores_of(result: Result) -> dict[str, float]:
    """The filtered scores of both directions, where entities that tie share the mean of their places."""
    both = result["scores"]["both"]["realistic"]
    return {metric: both[metric] for metric in METRICS}


def score_cells(results: Sequence[Result]) -> list[str]:
    """Cells of a table: each score's mean (standard deviation) over the seeds."""
    return [mean_std([scores_of(result)[metric] for result in results]) for metric in METRICS]


def training_rate(result: Result) -> float:
    """Training queries a second of wall time, validations left out; 0 where nothing was trained."""
    training = result["training"]
    return training["queries"] / training["training_seconds"] if training["training_seconds"] else 0.0


def training_told(request: Request, results: Iterable[Result]) -> str:
    """What the trainings saw, and how that is less than what the paper's saw."""
    results = list(results)
    queries = sorted({result["training"]["queries"] for result in results})
    epochs = [count / results[0]["queries_of_an_epoch"] for count in (queries[0], queries[-1])]
    if len(queries) == 1:
        seen = f"Each training saw {queries[0]:,} queries, {_epochs(epochs[0])}"
    else:
        limit = f", where --max-minutes {request.max_minutes:g} ended them" if request.max_minutes else ""
        seen = (
            f"Trainings saw from {queries[0]:,} to {queries[-1]:,} queries, "
            f"{epochs[0]:.2g} to {_epochs(epochs[1])}{limit}"
        )
    if request.quick:
        return f"{seen}, of the bundled graph, with small settings: nothing here compares with the paper."
    as_paper = all(round(count, 3) == _PAPER_EPOCHS for count in epochs)
    return f"{seen}, as in the paper." if as_paper else f"{seen}; the paper's saw {_epochs(_PAPER_EPOCHS)}."


def seeds_told(request: Request) -> str:
    """How many runs stand behind a score."""
    if len(request.seeds) == 1:
        return f"Each score is of one run; the paper's are means of {_PAPER_RUNS}."
    return (
        f"Scores are means (standard deviations) of {counted(len(request.seeds), 'run')}; "
        f"the paper's are of {_PAPER_RUNS}."
    )


def horizon_told(results: Iterable[Result]) -> str:
    """The horizon that questions were asked with."""
    horizon = next(iter(results))["scores"]["horizon"]
    shown = ", ".join(f"`{key}` = {horizon[key]}" for key in horizon if key.startswith("max_"))
    return f"Test questions were asked with {shown}."


def draw_scores(axes: "Axes", x: Sequence[float], results: Sequence[Sequence[Result]]) -> None:
    """A line for each score over a setting, through the results at each x."""
    from dpmpn.lab.figures import COLOURS, MARKERS

    for metric, colour, marker in zip(METRICS, COLOURS, MARKERS, strict=False):
        points = [[100 * scores_of(result)[metric] for result in found] for found in results]
        draw_line(axes, x, points, label=METRICS[metric], color=colour, marker=marker)


def draw_line(axes: "Axes", x: Sequence[float], points: Sequence[Sequence[float]], **looks: Any) -> None:
    """A line through the means of the points at each x, with their standard deviations where there are several."""
    spread = [stdev(values) if len(values) > 1 else 0.0 for values in points]
    axes.errorbar(
        x,
        [mean(values) for values in points],
        yerr=spread if any(spread) else None,
        **{"markersize": 4.5, "linewidth": 1.5, "elinewidth": 1, "capsize": 2.5, **looks},
    )


def _epochs(count: float) -> str:
    return "one epoch" if round(count, 3) == 1 else f"{count:.3g} epochs"
