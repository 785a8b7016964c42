"""What an exhibit is: pieces of work whose results are kept, and the table or figure made of them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmpn.data.dataset import Dataset
from dpmpn.errors import ConfigError
from dpmpn.evaluate.metrics import TITLES
from dpmpn.lab.reproduce.settings import QUICK_DATASET, dataset_named

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dpmpn.lab.reproduce.workshop import Workshop

Result = dict[str, Any]
"""What a piece of work found, as plain values."""
METRICS = {key: TITLES[key] for key in sorted(TITLES, key="mrr".__eq__)}
"""As in the paper's tables: MRR last."""


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


@dataclass(frozen=True)
class Piece:
    """A piece of work: done once, and left alone when the command is run again."""

    name: str  # of its file of results
    seconds: float  # about what it takes on two cores
    work: "Callable[[Workshop], Result]"


@dataclass(frozen=True)
class Exhibited:
    """What an exhibit shows."""

    rows: list[dict[str, Any]]  # the data, one row per point or line; all with the same keys
    text: str  # Markdown: the table, or what the figures show
    figures: "Mapping[str, Figure]" = field(default_factory=dict)  # by the names of their files


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
        figures = {self.name: self.plot(made)} if self.draws else {}
        return Exhibited(self.rows(request, made), "\n".join(self.text(request, made)), figures)

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
