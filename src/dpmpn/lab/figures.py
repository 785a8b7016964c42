"""Tables and plots for readers, the way the paper prints them; the same figure is the same file."""

from collections.abc import Collection, Iterable, Sequence
from functools import partial
from pathlib import Path
from statistics import mean, stdev
from typing import TYPE_CHECKING, Any

from dpmpn.errors import RunError
from dpmpn.files import write_whole
from dpmpn.wording import percentage

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], words: Collection[str] = ()) -> str:
    """A table; all columns but the first and those of `words` hold numbers, which stand to the right."""
    bars = ["---", *("---" if column in words else "--:" for column in columns[1:])]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (columns, bars, *rows)) + "\n"


def mean_std(fractions: Sequence[float]) -> str:
    """Mean (standard deviation) in percent, as in the paper: 48.2 (.5); the mean alone where there is one value."""
    if len(fractions) == 1:
        return percentage(fractions[0])
    spread = f"{100 * stdev(fractions):.1f}"
    return f"{percentage(mean(fractions))} ({spread.removeprefix('0')})"


# Okabe and Ito's colours, which colour-blind readers tell apart; the dark ones first.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8a8a8a")
EMPHASIS = "#d7261e"  # what a reader should see first
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_GRID = "#e6e6e6"
_STYLE: Any = {
    "svg.hashsalt": "dpmpn",
    "svg.fonttype": "path",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": _GRID,
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
}


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
