"""How often an answer with so much attention is right: measured on validation facts, applied to others, and drawn."""

from dataclasses import asdict, dataclass, fields
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


LEAST = 20  # predictions that make one step of a curve; fewer say too little
_SHRUNK = 20  # questions of a relation that weigh as much as what is known of all relations


@dataclass(frozen=True, eq=False)
class JudgedAnswers:
    """Answers to validation questions, grouped by question, the most attended first."""

    attention: np.ndarray
    right: np.ndarray  # bool
    weight: np.ndarray  # how many of the graph's questions each stands for
    question: np.ndarray
    relation: np.ndarray  # that was asked; an inverse one asks for heads
    group: np.ndarray  # of questions: see questions.GROUPS

    def __getitem__(self, rows: np.ndarray) -> "JudgedAnswers":
        return JudgedAnswers(*(getattr(self, field.name)[rows] for field in fields(self)))


@dataclass(frozen=True)
class Curve:
    """A rising step function: from the attention `low[i]` on, predictions were right with `probability[i]`."""

    low: tuple[float, ...]
    probability: tuple[float, ...]
    right: tuple[float, ...]  # how many were right, estimated for all of the graph's questions
    of: tuple[float, ...]  # of how many, estimated likewise
    sure: tuple[float, ...]  # predictions of equal weight that would be as certain

    def step(self, attention: np.ndarray) -> np.ndarray:
        """Which step each attention is on."""
        return np.maximum(np.searchsorted(self.low, attention, side="right") - 1, 0)


@dataclass(frozen=True, eq=False)
class Estimates:
    """What each of some answers is worth; NaN in a group of questions that was not measured."""

    probability: np.ndarray
    right: np.ndarray  # how many answers like this one were right on validation
    of: np.ndarray  # and how many there were
    sure: np.ndarray

    @property
    def interval(self) -> tuple[np.ndarray, np.ndarray]:
        """The 95 % interval of each probability."""
        return wilson(self.probability, self.sure)


@dataclass(frozen=True)
class Calibration:
    """What attention is worth in each kind of question, and how good that is: before and after.

    A kind is a group of questions, told apart by whether their relation is right more often than the group's
    questions on average. `after` is cross-fitted: each half of the questions is judged by the other half.
    """

    curves: tuple[tuple[Curve | None, Curve | None], ...]  # by group: seldom right, often right
    often: tuple[tuple[int, ...], ...]  # by group: the relations that are right more often
    before: Reliability
    after: Reliability
    questions: int  # that a graph like this one is asked
    asked: int  # of them, to measure this
    facts: int  # validation facts among their answers

    def estimates(self, attention: np.ndarray, relation: np.ndarray, group: np.ndarray) -> "Estimates":
        """What answers like each of these were worth on validation."""
        return _estimates(self.curves, self.often, attention, relation, group)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Calibration":
        """Read plain values; ValueError, KeyError, TypeError or AttributeError if they are something else."""
        curves = tuple((_curve(seldom), _curve(often)) for seldom, often in values["curves"])
        often = tuple(tuple(int(relation) for relation in relations) for relations in values["often"])
        if len(curves) != len(often):
            raise ValueError(f"{len(curves)} groups of curves, but {len(often)} of relations")
        before, after = (Reliability.from_dict(values[name]) for name in ("before", "after"))
        counts = (int(values[name]) for name in ("questions", "asked", "facts"))
        return cls(curves, often, before, after, *counts)


def calibrate(answers: JudgedAnswers, questions: np.ndarray, asked: int, seed: int = 0) -> Calibration:
    """Fit the curves, and measure by cross-fitting what they are worth.

    `questions` counts all the graph's questions, by relation and group.
    """
    curves, often = _fitted(answers, questions)
    half = np.random.default_rng(seed).permutation(answers.question.max(initial=0) + 1) % 2
    half = half[answers.question]
    crossed = np.empty(len(half))
    for number in (0, 1):
        judged = answers[half == number]
        fitted = _fitted(answers[half != number], questions / 2)
        estimates = _estimates(*fitted, judged.attention, judged.relation, judged.group)
        crossed[half == number] = np.nan_to_num(estimates.probability)  # all of a group may be in one half
    right, weight = answers.right.astype(np.float64), answers.weight.astype(np.float64)
    first = np.flatnonzero(np.diff(answers.question, prepend=-1))
    return Calibration(
        curves,
        often,
        reliability(answers.attention, right, weight, first),
        reliability(crossed, right, weight, first),
        int(questions.sum()),
        asked,
        int(answers.right.sum()),
    )


_Curves = tuple[tuple[Curve | None, Curve | None], ...]
_Often = tuple[tuple[int, ...], ...]


def _fitted(answers: JudgedAnswers, questions: np.ndarray) -> tuple[_Curves, _Often]:
    often = _often_right(answers, questions)
    curves = []
    for group, relations in enumerate(often):
        of_group = answers.group == group
        is_often = np.isin(answers.relation, relations)
        seldom, more = (_fit(answers[of_group & rows]) for rows in (~is_often, is_often))
        curves.append((seldom or more, more or seldom))
    return tuple(curves), often


def _fit(answers: JudgedAnswers) -> Curve | None:
    if not len(answers.attention):
        return None
    return fit_curve(answers.attention, answers.right, answers.weight)


def _often_right(answers: JudgedAnswers, questions: np.ndarray) -> _Often:
    """The relations that have more right answers a question than their group; few questions prove little."""
    right = np.zeros(questions.shape)
    np.add.at(right, (answers.relation, answers.group), answers.weight * answers.right)
    mean = right.sum(axis=0) / np.maximum(questions.sum(axis=0), 1)
    is_often = (right + _SHRUNK * mean) / (questions + _SHRUNK) > mean
    return tuple(tuple(np.flatnonzero(column).tolist()) for column in is_often.T)


def _estimates(
    curves: _Curves, often: _Often, attention: np.ndarray, relation: np.ndarray, group: np.ndarray
) -> Estimates:
    columns = [field.name for field in fields(Estimates)]
    found = np.full((len(columns), len(attention)), np.nan)
    for number, (pair, relations) in enumerate(zip(curves, often, strict=True)):
        is_often = np.isin(relation, relations)
        for curve, rows in zip(pair, (~is_often, is_often), strict=True):
            rows = rows & (group == number)
            if curve is not None and rows.any():
                table = np.array([getattr(curve, column) for column in columns])
                found[:, rows] = table[:, curve.step(attention[rows])]
    return Estimates(*found)


def _curve(values: dict[str, Any] | None) -> Curve | None:
    if values is None:
        return None
    curve = Curve(**{key: tuple(map(float, row)) for key, row in values.items()})
    if len({len(row) for row in asdict(curve).values()}) != 1 or list(curve.low) != sorted(curve.low):
        raise ValueError("a curve's steps do not rise")
    return curve


def fit_curve(attention: np.ndarray, right: np.ndarray, weight: np.ndarray) -> Curve:
    """Weighted isotonic regression (pool adjacent violators) of right on attention, in steps of `LEAST` or more."""
    blocks: list[list[float]] = []  # lowest attention, weight of the right ones, weight, squared weights
    for low, hits, total, squares in zip(*_bins(attention, right, weight), strict=True):
        blocks.append([low, hits, total, squares])
        while len(blocks) > 1 and blocks[-2][1] * blocks[-1][2] >= blocks[-1][1] * blocks[-2][2]:
            _, hits, total, squares = blocks.pop()
            blocks[-1] = [blocks[-1][0], blocks[-1][1] + hits, blocks[-1][2] + total, blocks[-1][3] + squares]
    low, hits, total, squares = np.array(blocks).reshape(-1, 4).T
    rows = (low, np.minimum(hits / total, 1), hits, total, total**2 / squares)
    return Curve(*(tuple(row.tolist()) for row in rows))


def _bins(attention: np.ndarray, right: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, ...]:
    """Sums over neighbouring predictions, counted from the most attended down; equal ones stay together.

    A rare sample that stands for many weighs like many: a step must hold `LEAST` of the heaviest.
    """
    order = np.argsort(-attention, kind="stable")
    attention, right, weight = attention[order], right[order], weight[order].astype(np.float64)
    starts = _starts(attention, weight)
    ends = np.append(starts[1:], len(attention)) - 1
    summed = (weight * right, weight, weight**2)
    sums = [np.add.reduceat(values, starts) if len(starts) else values for values in summed]
    return tuple(column[::-1] for column in (attention[ends], *sums))


def _starts(attention: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Where bins begin: at the first smaller attention after a bin has enough; what is left joins the last."""
    values = np.flatnonzero(np.diff(attention, prepend=np.inf))  # the first of each attention
    before = (np.cumsum(weight) - weight)[values]
    enough = LEAST * weight.max(initial=1) * (1 - 1e-9)  # sums are rounded
    total, starts, at = weight.sum(), [], 0
    while at < len(values) and (not at or total - before[at] >= enough):
        starts.append(values[at])
        at = int(np.searchsorted(before, before[at] + enough))
    return np.array(starts, np.int64)


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
        write_named(path, lambda file: figure.savefig(file, format=kind, dpi=150, metadata=metadata))


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
