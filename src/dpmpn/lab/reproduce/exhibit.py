"""What an exhibit is: pieces of work whose results are kept, and the table or figure made of them; and how results of
several seeds are shown, drawn and described.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import TYPE_CHECKING, Any, TypeVar

from dpmpn.data.dataset import Dataset
from dpmpn.errors import ConfigError
from dpmpn.evaluate.metrics import TITLES
from dpmpn.lab.figures import COLOURS, MARKERS, mean_std
from dpmpn.lab.reproduce.workshop import QUICK_DATASET, Request, Result, Workshop, dataset_named
from dpmpn.wording import counted, percentage

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

METRICS = {key: TITLES[key] for key in sorted(TITLES, key="mrr".__eq__)}
"""As in the paper's tables: MRR last."""
Key = TypeVar("Key")
_PAPER_RUNS = 3  # of each setting
_PAPER_EPOCHS = 1  # of a training on either dataset
_NEARLY = 0.95  # of the foreseen queries: a learning rate has fallen to about 5 % by then
NOT_COMPARABLE = "with small settings: nothing here compares with the paper."


@dataclass(frozen=True)
class Piece:
    """A piece of work: done once, and left alone when the command is run again."""

    name: str  # of its file of results
    seconds: float  # about what it takes on two cores
    work: Callable[[Workshop], Result]


@dataclass(frozen=True)
class Exhibited:
    """What an exhibit shows."""

    rows: list[dict[str, Any]]  # the data, one row per point or line; all with the same keys
    text: str  # Markdown: the table, or what the figures show
    figure: "Figure | None" = None


class Exhibit(ABC):
    """A table or figure of the paper, or one of its kind about what goes beyond it.

    One says what its pieces of work are, which `fields` of their results are its data, and what its text is; with a
    `plot` it is a figure.
    """

    name: str
    title: str
    place: str  # in the paper, of the default dataset
    claim: str  # what the paper says it shows; of an exhibit that is not in the paper, what it is
    datasets: tuple[str, ...] = ()  # that `--dataset` can name; the first is the default
    trains: bool = True  # as long as `--epochs` and `--max-minutes` say
    takes_runs: bool = True  # `--runs` can name trained models
    places: tuple[tuple[str, str], ...] = ()  # of other datasets, where they stand elsewhere
    in_paper: bool = True
    parts: tuple[str, ...] = ()  # that `--only` can name
    fields: tuple[str, ...] = ()  # of its data: keys of a result, or what `value_of` knows

    @abstractmethod
    def pieces(self, request: Request) -> list[Piece]:
        """The work to be done; what cannot be done is refused here."""

    @abstractmethod
    def text(self, request: Request, results: Sequence[Result]) -> list[str]:
        """Paragraphs and tables in Markdown, from the results of all pieces."""

    def rows(self, request: Request, results: Sequence[Result]) -> list[dict[str, Any]]:
        """The data: a row for each result, where an exhibit does not say otherwise."""
        return [row_of(result, self.fields) for result in results]

    def plot(self, results: Sequence[Result]) -> "Figure":
        """The figure, of an exhibit that has one."""
        raise NotImplementedError

    @property
    def draws(self) -> bool:
        """Whether there is a plot, which needs matplotlib."""
        return type(self).plot is not Exhibit.plot

    def show(self, request: Request, results: Mapping[str, Result]) -> Exhibited:
        """Data, text and figure from the results of all pieces, by name."""
        made = list(results.values())
        figure = self.plot(made) if self.draws else None
        return Exhibited(self.rows(request, made), "\n".join(self.text(request, made)), figure)

    def dataset(self, request: Request) -> Dataset:
        """The dataset it is made on."""
        return dataset_named(QUICK_DATASET if request.quick else request.dataset or self.datasets[0])

    def check(self, request: Request) -> None:
        """Refuse what this exhibit cannot do."""
        if request.dataset is not None and request.dataset not in self.datasets:
            use = f"use {' or '.join(self.datasets)}" if self.datasets else "leave it out"
            raise ConfigError(f"'--dataset {request.dataset}' does not fit '{self.name}'; {use}")
        if not self.trains and (request.epochs is not None or request.max_minutes is not None):
            raise ConfigError(
                f"'{self.name}' has no trainings that could be shortened; leave out --epochs and --max-minutes"
            )
        if not self.takes_runs and request.runs is not None:
            raise ConfigError(
                f"'{self.name}' cannot be made of trainings of another exhibit; leave out --runs"
            )
        for part in request.only:
            if part not in self.parts:
                use = f"there are {', '.join(self.parts)}" if self.parts else "leave out --only"
                raise ConfigError(f"'--only': '{self.name}' has no part '{part}'; {use}")

    def place_of(self, request: Request) -> str:
        """Where the paper has it, for the dataset that was asked for."""
        return dict(self.places).get(request.dataset or "", self.place)

    def remembered(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """What a folder must have been made with to go on in it; the default dataset need not be named."""
        values = {key: asked.get(key) for key in Request().as_dict()}  # older versions wrote fewer
        if self.datasets and values["dataset"] == self.datasets[0]:
            values["dataset"] = None
        return values


def row_of(result: Result, fields: Sequence[str]) -> dict[str, Any]:
    """A row of data."""
    return {name: value_of(result, name) for name in fields}


def value_of(result: Result, name: str) -> Any:
    """What a result says, also in its scores and of its training: metrics, coverage, epochs, queries_per_s ..."""
    if name in result:
        return result[name]
    if name in TITLES:
        return scores_of(result)[name]
    if name == "coverage":
        return result["scores"]["both"]["coverage"]
    if name == "epochs":
        return result["training"]["queries"] / result["queries_of_an_epoch"]
    if name == "queries_per_s":  # of wall time, validations left out; 0 where nothing was trained
        training = result["training"]
        return training["queries"] / training["training_seconds"] if training["training_seconds"] else 0.0
    return result["training"][name]


def scores_of(result: Result) -> dict[str, float]:
    """The filtered scores of both directions, where entities that tie share the mean of their places."""
    scores: dict[str, float] = result["scores"]["both"]["realistic"]
    return scores


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
        least = min(shares, default=1.0)
        cut = f" Time was over before: one training saw only {percentage(least, 0)} % of its queries."
        return (
            f"Each training had {request.max_minutes:g} minutes, validations included. How many queries fit into "
            "them was foreseen from a short trial, so that a learning rate that falls has fallen at the end."
            + cut
            * (least <= _NEARLY)
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
