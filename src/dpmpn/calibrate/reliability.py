"""How well probabilities fit what was right: bins, the expected calibration error, and a drawing."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmpn.errors import DataError
from dpmpn.evaluate.metrics import wilson
from dpmpn.files import write_named

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BINS = 10  # of equal width
_BEFORE, _AFTER, _IDEAL = "#b5651d", "#1f5f8b", "#8a8a8a"
_STYLE: Any = {
    "svg.hashsalt": "dpmpn",  # the same figure is the same file
    "svg.fonttype": "path",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


@dataclass(frozen=True)
class ReliabilityBin:
    """Predictions of about the same probability, and how often they were right."""

    predicted: float  # mean
    right: float  # fraction
    low: float  # 95 % interval of the fraction
    high: float
    predictions: float  # that it stands for


@dataclass(frozen=True)
class Reliability:
    """How well probabilities fit what was right."""

    error: float  # expected calibration error
    predicted: float  # mean
    right: float  # fraction
    bins: tuple[ReliabilityBin, ...]

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Reliability":
        """Read plain values; ValueError, KeyError or TypeError if they are something else."""
        rows = [{key: float(value) for key, value in row.items()} for row in values["bins"]]
        error, predicted, right = (float(values[name]) for name in ("error", "predicted", "right"))
        return cls(error, predicted, right, tuple(ReliabilityBin(**row) for row in rows))


def reliability(probability: np.ndarray, right: np.ndarray, weight: np.ndarray | None = None) -> Reliability:
    """Compare probabilities with what was right; the error is the mean gap between them over bins of equal width."""
    weight = np.ones_like(probability) if weight is None else weight
    number = _bin_numbers(probability)
    total, squares = np.bincount(number, weight, BINS), np.bincount(number, weight**2, BINS)
    said, found = (np.bincount(number, weight * x, BINS) for x in (probability, right))
    used, n = total > 0, max(weight.sum(), 1e-300)
    fraction = np.minimum(found[used] / total[used], 1)
    interval = wilson(fraction, total[used] ** 2 / squares[used])
    columns = (said[used] / total[used], fraction, *interval, total[used])
    return Reliability(
        float(np.abs(said - found).sum() / n),
        float(said.sum() / n),
        float(found.sum() / n),
        tuple(ReliabilityBin(*row) for row in np.stack(columns, 1).tolist()),
    )


def _bin_numbers(probability: np.ndarray) -> np.ndarray:
    """The bin of each probability; a mean of equal ones may be a rounding below them, and stays in their bin."""
    return np.minimum((probability * BINS + 1e-9).astype(np.int64), BINS - 1)


def check_plot(path: Path) -> None:
    """Refuse a file that cannot be drawn before anything is measured for it."""
    if path.suffix.lower() not in (".svg", ".png"):
        raise DataError(f"{path}: a drawing cannot be named so; end the name in .svg or .png")
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise DataError("drawing reliability needs the extra 'plot': pip install 'dpmpn[plot]'") from error


def save_plot(panels: dict[str, tuple[Reliability, Reliability]], path: Path, title: str) -> None:
    """Draw for each panel how often what the score and the probability said was right, and how often each was said."""
    check_plot(path)
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(0.6 + 4.6 * len(panels), 6.6), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots(2, len(panels), sharex=True, squeeze=False, height_ratios=(3, 1))
        for column, (name, (before, after)) in enumerate(panels.items()):
            _draw_curves(axes[0, column], name, before, after)
            _draw_counts(axes[1, column], before, after)
        axes[0, 0].set(ylabel="fraction right")
        axes[1, 0].set(ylabel="answers")
        figure.suptitle(title, fontsize=12)
        kind = path.suffix.lower()[1:]
        metadata: dict[str, Any] = {"Date": None} if kind == "svg" else {}
        write_named(path, lambda file: figure.savefig(file, format=kind, dpi=150, metadata=metadata))


def _draw_curves(axes: "Axes", name: str, before: Reliability, after: Reliability) -> None:
    axes.plot([0, 1], [0, 1], color=_IDEAL, linewidth=1, linestyle=(0, (4, 3)), label="as often as said")
    _draw_curve(axes, before, _BEFORE, "o", "score")
    _draw_curve(axes, after, _AFTER, "s", "probability")
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    axes.set_title(name, fontsize=10)
    axes.grid(color="#e6e6e6", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.legend(frameon=False, loc="upper left", fontsize=9)


def _draw_curve(axes: "Axes", reliability: Reliability, colour: str, marker: str, what: str) -> None:
    x, y, low, high = (
        np.array([getattr(bin, name) for bin in reliability.bins])
        for name in ("predicted", "right", "low", "high")
    )
    axes.errorbar(
        x,
        y,
        yerr=np.clip([y - low, high - y], 0, None),
        color=colour,
        marker=marker,
        markersize=5,
        linewidth=1.5,
        elinewidth=1,
        capsize=2.5,
        label=f"{what}: calibration error {reliability.error:.3f}",
    )


def _draw_counts(axes: "Axes", before: Reliability, after: Reliability) -> None:
    """How many answers had each probability: by the score to the left of a bin, by the probability to the right."""
    width = 0.4 / BINS
    for each, colour, shift in ((before, _BEFORE, -width / 2), (after, _AFTER, width / 2)):
        centres = (_bin_numbers(np.array([bin.predicted for bin in each.bins])) + 0.5) / BINS + shift
        axes.bar(centres, [bin.predictions for bin in each.bins], width * 0.95, color=colour)
    axes.set_yscale("log")
    axes.set(xlabel="said", ylim=(0.7, None))
    axes.grid(axis="y", color="#e6e6e6", linewidth=0.6)
    axes.set_axisbelow(True)
