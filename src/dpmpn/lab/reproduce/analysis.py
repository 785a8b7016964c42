"""What the exhibits share: how scores of several seeds are shown and drawn, and how the trainings are described."""

from collections.abc import Callable, Iterable, Sequence
from statistics import mean, stdev
from typing import TYPE_CHECKING, Any, TypeVar

from dpmpn.data.dataset import Dataset
from dpmpn.lab.figures import mean_std
from dpmpn.lab.reproduce.exhibit import METRICS, Request, Result, scores_of, value_of
from dpmpn.wording import counted, percentage

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Key = TypeVar("Key")
_PAPER_RUNS = 3  # of each setting
_PAPER_EPOCHS = 1  # of a training on either dataset
_NEARLY = 0.95  # of the foreseen queries: a learning rate has fallen to about 5 % by then
NOT_COMPARABLE = "with small settings: nothing here compares with the paper."


def run_label(dataset: Dataset, seed: int, setting: str = "") -> str:
    """The name of a run's folder."""
    return "-".join(filter(None, (dataset.name.lower(), f"seed{seed}", setting)))


def grouped(results: Iterable[Result], key: Callable[[Result], Key]) -> dict[Key, list[Result]]:
    """Results by something they have in common, in the order in which it first comes."""
    groups: dict[Key, list[Result]] = {}
    for result in results:
        groups.setdefault(key(result), []).append(result)
    return groups


def mean_of(results: Iterable[Result], name: str) -> float:
    """The mean of what the results say."""
    return float(mean(value_of(result, name) for result in results))


def score_cells(results: Sequence[Result], metrics: Iterable[str] = METRICS) -> list[str]:
    """Cells of a table: each score's mean (standard deviation) over the seeds."""
    return [mean_std([value_of(result, metric) for result in results]) for metric in metrics]


def training_note(request: Request, results: Sequence[Result]) -> str:
    """What the trainings saw, and how that is less than what the paper's saw."""
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
        return f"{seen}, of the bundled graph, {NOT_COMPARABLE}"
    as_paper = all(round(count, 3) == _PAPER_EPOCHS for count in epochs)
    return f"{seen}, as in the paper." if as_paper else f"{seen}; the paper's saw {_epochs(_PAPER_EPOCHS)}."


def seeds_note(request: Request, with_paper: bool = True) -> str:
    """How many runs stand behind a score, and behind one of the paper's."""
    if len(request.seeds) == 1:
        return "Each score is of one run" + f"; the paper's are means of {_PAPER_RUNS}" * with_paper + "."
    runs = counted(len(request.seeds), "run")
    theirs = f"; the paper's are of {_PAPER_RUNS}" * with_paper
    return f"Scores are means (standard deviations) of {runs}{theirs}."


def length_note(request: Request, results: Iterable[Result] = ()) -> str:
    """What ended trainings that fill the minutes, and how far from its foreseen end the slowest one was."""
    if request.quick:
        return (
            "Trainings were cut very short, on the bundled graph with small settings: nothing here "
            "compares with anything."
        )
    if request.runs is not None:
        return "The models were trained before, and are used as they are."
    if request.fills_minutes:
        shares = [result["training"]["queries"] / result["planned_queries"] for result in results]
        cut = f" Time was over before: one training saw only {percentage(min(shares, default=1), 0)} % of its queries."
        return (
            f"Each training had {request.max_minutes:g} minutes, validations included. How many queries fit into "
            "them was foreseen from a short trial, so that a learning rate that falls has fallen at the end."
            + cut
            * (min(shares, default=1.0) <= _NEARLY)
        )
    limit = "" if request.max_minutes is None else f", or {request.max_minutes:g} minutes if these came first"
    if request.epochs is not None:
        return f"Each training had {request.epochs:g} epochs{limit}."
    return "Each training was as long as the settings of its model say."


def horizon_note(results: Sequence[Result]) -> str:
    """The horizon that questions were asked with."""
    horizon = results[0]["scores"]["horizon"]
    shown = ", ".join(f"`{key}` = {horizon[key]}" for key in horizon if key.startswith("max_"))
    return f"Test questions were asked with {shown}."


def draw_scores(axes: "Axes", x: Sequence[float], results: Sequence[Sequence[Result]]) -> None:
    """A line for each score over a setting, through the results at each x."""
    from dpmpn.lab.figures import COLOURS, MARKERS

    for metric, colour, marker in zip(METRICS, COLOURS, MARKERS, strict=False):
        points = [[100 * scores_of(result)[metric] for result in at_x] for at_x in results]
        draw_line(axes, x, points, label=METRICS[metric], color=colour, marker=marker)


def draw_line(axes: "Axes", x: Sequence[float], points: Sequence[Sequence[float]], **looks: Any) -> None:
    """A line through the means of the points at each x, with their standard deviations where there are several."""
    axes.errorbar(
        x,
        [mean(values) for values in points],
        yerr=spread_of(points),
        **{"markersize": 4.5, "linewidth": 1.5, "elinewidth": 1, "capsize": 2.5, **looks},
    )


def spread_of(points: Sequence[Sequence[float]]) -> list[float] | None:
    """Standard deviations, where there are any."""
    spread = [stdev(values) if len(values) > 1 else 0.0 for values in points]
    return spread if any(spread) else None


def legend_below(figure: "Figure", axes: "Axes", columns: int) -> None:
    """One legend for all panels, below them."""
    handles = axes.get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=columns, frameon=False)


def _epochs(count: float) -> str:
    return "one epoch" if round(count, 3) == 1 else f"{count:.3g} epochs"
