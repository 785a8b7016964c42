"""What readers see: tables and plots the way the paper prints them, and what others published, with its sources."""

import csv
import io
import tomllib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from importlib import resources
from pathlib import Path
from statistics import mean, stdev
from typing import TYPE_CHECKING, Any

from dpmpn.data.spreadsheets import marked_text
from dpmpn.errors import RunError
from dpmpn.evaluate.metrics import TITLES
from dpmpn.files import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# Okabe and Ito's colours, which colour-blind readers tell apart; the dark ones first.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8a8a8a")
EMPHASIS = "#d7261e"  # what a reader should see first
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_STYLE: Any = {
    "svg.hashsalt": "dpmpn",
    "svg.fonttype": "path",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
}


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], words: Collection[str] = ()) -> str:
    """A table; all columns but the first and those of `words` hold numbers, which stand to the right."""
    bars = ["---", *("---" if column in words else "--:" for column in columns[1:])]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (columns, bars, *rows)) + "\n"


def csv_text(columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """A table as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for cells in (columns, *rows):
        writer.writerow(marked_text(cell) if isinstance(cell, str) else cell for cell in cells)
    return text.getvalue()


def mean_std(fractions: Sequence[float], sign: str = "") -> str:
    """Mean (standard deviation) in percent, as in the paper: 48.2 (.5); the mean alone where there is one value."""
    shown = f"{100 * mean(fractions):{sign}.1f}"
    if len(fractions) == 1:
        return shown
    return f"{shown} ({f'{100 * stdev(fractions):.1f}'.removeprefix('0')})"


def check_plotting() -> None:
    """Refuse before any work what could not be drawn after it."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise RunError("plots need the extra 'plot': pip install 'dpmpn[plot]'") from error


def new_figure(
    width: float, height: float, rows: int = 1, columns: int = 1, **options: Any
) -> "tuple[Figure, Any]":
    """A figure (inches) and its axes, as matplotlib's `subplots` gives them."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)
        return figure, figure.subplots(rows, columns, **options)


def save_plot(figure: "Figure", stem: Path) -> list[Path]:
    """Write a figure as SVG and PNG; the files."""
    import matplotlib

    files = [stem.with_name(f"{stem.name}.{kind}") for kind in ("svg", "png")]
    with matplotlib.rc_context(_STYLE):
        for path in files:
            kind = path.suffix[1:]
            metadata: dict[str, Any] = {"Date": None} if kind == "svg" else {}
            write_whole(path, partial(figure.savefig, format=kind, dpi=150, metadata=metadata))
    return files


@dataclass(frozen=True)
class PublishedRow:
    """A system's filtered scores in percent on one dataset, as they were printed; None where they were not."""

    system: str
    scores: dict[str, float | None]  # by the keys of all metrics
    source: str
    later: bool  # than the paper
    printed: dict[str, str]  # the scores with the standard deviations that stood beside them

    def score(self, metric: str, missing: float) -> float:
        """A score, or what stands for one that was not printed."""
        value = self.scores[metric]
        return missing if value is None else value

    def as_dict(self) -> dict[str, Any]:
        """Plain values, the scores among them by their metrics."""
        values = asdict(self)
        return {"system": values.pop("system"), **values.pop("scores"), **values}

    def shown(self, metric: str) -> str:
        """A score as it was printed; a dash where it was not."""
        return self.printed.get(metric, "-")


def published_rows(dataset: str) -> list[PublishedRow]:
    """The rows of a dataset in the order of the paper's tables, later systems last; none for other datasets."""
    return [_published_row(values) for values in _published_file().get(dataset, [])]


def published_map() -> dict[str, dict[str, str]]:
    """MAP in percent on the NELL995 tasks as printed in the paper: system, then task."""
    return dict(_published_file()["NELL995"])


def source_names() -> dict[str, str]:
    """Where figures were taken from, by the key that rows name."""
    return dict(_published_file()["sources"])


@cache
def _published_file() -> dict[str, Any]:
    return tomllib.loads((resources.files("dpmpn.lab") / "published.toml").read_text("utf-8"))


def _published_row(values: dict[str, Any]) -> PublishedRow:
    printed = dict(values["scores"])
    numbers = {metric: float(text.split("(")[0]) for metric, text in printed.items()}
    return PublishedRow(
        system=values["system"],
        scores={metric: numbers.get(metric) for metric in TITLES},
        source=source_names()[values["source"]],
        later=values.get("later", False),
        printed=printed,
    )
