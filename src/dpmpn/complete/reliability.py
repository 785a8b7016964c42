"""How well probabilities fit what was right: the expected calibration error, and the reliability curve drawn."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmpn.errors import DataError
from dpmpn.evaluate.metrics import wilson
from dpmpn.files import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpmpn.complete.calibration import Calibration

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
    predictions: float  # estimated for all of the graph's questions


@dataclass(frozen=True)
class Reliability:
    """How well probabilities fit what was right."""

    error: float  # expected calibration error
    error_of_first: float  # the same, of each question's first answer alone
    bins: tuple[ReliabilityBin, ...]

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Reliability":
        """Read plain values; ValueError, KeyError or TypeError if they are something else."""
        rows = [{key: float(value) for key, value in row.items()} for row in values["bins"]]
        bins = tuple(ReliabilityBin(**row) for row in rows)
        return cls(float(values["error"]), float(values["error_of_first"]), bins)


def reliability(
    probability: np.ndarray, right: np.ndarray, weight: np.ndarray, first: np.ndarray
) -> Reliability:
    """Compare probabilities with what was right; `first` are the rows of each question's first answer."""
    number = bin_numbers(probability)
    total, squares = np.bincount(number, weight, BINS), np.bincount(number, weight**2, BINS)
    used = total > 0
    total, squares = total[used], squares[used]
    predicted = np.bincount(number, weight * probability, BINS)[used] / total
    fraction = np.minimum(np.bincount(number, weight * right, BINS)[used] / total, 1)
    columns = (predicted, fraction, *wilson(fraction, total**2 / squares), total)
    return Reliability(
        expected_error(probability, right, weight),
        expected_error(probability[first], right[first], weight[first]),
        tuple(ReliabilityBin(*row) for row in np.stack(columns, 1).tolist()),
    )


def expected_error(probability: np.ndarray, right: np.ndarray, weight: np.ndarray) -> float:
    """Expected calibration error: mean gap between probability and fraction right, over bins of equal width."""
    number = bin_numbers(probability)
    gaps = np.bincount(number, weight * (probability - right), BINS)
    return float(np.abs(gaps).sum() / max(weight.sum(), 1e-300))


def bin_numbers(probability: np.ndarray) -> np.ndarray:
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


def save_plot(calibration: "Calibration", path: Path, title: str) -> None:
    """Draw the reliability curves and how many predictions each point stands for."""
    check_plot(path)
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(6.4, 7.2), layout="constrained")
        FigureCanvasAgg(figure)
        curves, counts = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
        _draw_curves(curves, calibration)
        _draw_counts(counts, calibration)
        figure.suptitle(f"{title}: how often answers were right on validation", fontsize=12)
        figure.legend(*curves.get_legend_handles_labels(), loc="outside lower center", frameon=False)
        kind = path.suffix.lower()[1:]
        metadata: dict[str, Any] = {"Date": None} if kind == "svg" else {}
        write_whole(path, lambda file: figure.savefig(file, format=kind, dpi=150, metadata=metadata))


def _draw_curves(axes: "Axes", calibration: "Calibration") -> None:
    axes.plot([0, 1], [0, 1], color=_IDEAL, linewidth=1, linestyle=(0, (4, 3)), label="as often as said")
    _draw_curve(axes, calibration.before, _BEFORE, "o", "attention")
    _draw_curve(axes, calibration.after, _AFTER, "s", "calibrated on the other half of the questions")
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), ylabel="fraction right")
    axes.grid(color="#e6e6e6", linewidth=0.6)
    axes.set_axisbelow(True)


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
        label=f"{what}: calibration error of first answers {100 * reliability.error_of_first:.1f} %",
    )


def _draw_counts(axes: "Axes", calibration: "Calibration") -> None:
    """How many predictions of each probability there are: before to the left of a bin, after to the right."""
    width = 0.4 / BINS
    for reliability, colour, shift in (
        (calibration.before, _BEFORE, -width / 2),
        (calibration.after, _AFTER, width / 2),
    ):
        numbers = bin_numbers(np.array([bin.predicted for bin in reliability.bins]))
        centres = (numbers + 0.5) / BINS + shift
        axes.bar(centres, [bin.predictions for bin in reliability.bins], width * 0.95, color=colour)
    axes.set_yscale("log")
    axes.set(xlabel="probability said", ylabel="predictions", ylim=(0.7, None))
    axes.grid(axis="y", color="#e6e6e6", linewidth=0.6)
    axes.set_axisbelow(True)
