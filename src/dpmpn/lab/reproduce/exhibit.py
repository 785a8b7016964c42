"""What an exhibit is: pieces of work whose results are kept, and the table or figure made of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmpn.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dpmpn.lab.reproduce.workshop import Workshop

Result = dict[str, Any]
"""What a piece of work found, as plain values."""


@dataclass(frozen=True)
class Request:
    """What a user asked of an exhibit."""

    seeds: tuple[int, ...] = (0,)
    quick: bool = False  # on the bundled graph, in a minute
    dataset: str | None = None  # where an analysis can be made on another one
    epochs: float | None = None  # of each training; None = as the paper
    max_minutes: float | None = None  # of each training
    threads: int = 0  # 0 = all cores
    runs: Path | None = (
        None  # the folder of another exhibit, whose trained models are used instead of new ones
    )
    only: tuple[str, ...] = ()  # parts of an exhibit that has such; none named = all

    def __post_init__(self) -> None:
        if not self.seeds or len(set(self.seeds)) < len(self.seeds) or min(self.seeds) < 0:
            raise ConfigError(f"'--seeds' must be different numbers from 0 on, not {list(self.seeds)}")
        for name, value in (("--epochs", self.epochs), ("--max-minutes", self.max_minutes)):
            if value is not None and not value > 0:
                raise ConfigError(f"'{name}' must be above 0, not {value:g}")
        if self.runs is not None and (self.epochs is not None or self.max_minutes is not None):
            raise ConfigError("'--runs' uses models as they are; leave out --epochs and --max-minutes")

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
    figures: "Mapping[str, Figure]" = field(
        default_factory=dict
    )  # by the name of their files, without suffix


@dataclass(frozen=True)
class Exhibit:
    """A table or figure of the paper, or one of its kind about what goes beyond it."""

    name: str
    title: str
    place: str  # in the paper, of the default dataset
    claim: str  # what the paper says it shows; of an exhibit that is not in the paper, what it is
    pieces: Callable[[Request], list[Piece]]
    show: Callable[[Request, dict[str, Result]], Exhibited]  # from the results of all pieces, by name
    datasets: tuple[str, ...] = ()  # that `--dataset` can name; the first is the default
    draws: bool = False  # plots, which need matplotlib
    trains: bool = True  # as long as `--epochs` and `--max-minutes` say
    takes_runs: bool = True  # `--runs` can name trained models
    places: Mapping[str, str] = field(default_factory=dict)  # of other datasets, where they stand elsewhere
    in_paper: bool = True
    parts: tuple[str, ...] = ()  # that `--only` can name

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
        return self.places.get(request.dataset or "", self.place)

    def remembered(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """What a folder must have been made with to go on in it; the default dataset need not be named."""
        values = {key: asked.get(key) for key in Request().as_dict()}  # older versions wrote fewer
        if self.datasets and values["dataset"] == self.datasets[0]:
            values["dataset"] = None
        return values
