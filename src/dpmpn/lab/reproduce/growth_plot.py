"""Draws how subgraphs grow: what the proposition promises, sizes within their bounds, and answers found."""

from statistics import mean
from typing import TYPE_CHECKING, Any

from dpmpn.lab.reproduce.exhibit import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Grown = dict[str, dict[str, list[dict[str, Any]]]]
"""What was measured, of each seed: by setting, then strategy."""
SETTINGS = {"preset": "the preset's horizon", "quarter": "a quarter of it"}
_DASHED = (0, (4, 3))


def plot(expansion: Result, grown: Grown) -> "Figure":
    """Promises, sizes with both horizons, and answers found."""
    from dpmpn.lab.figures import new_figure

    figure, axes = new_figure(10, 8, 2, 2)
    _draw_proposition(axes[0, 0], expansion)
    for panel, letter, setting in zip((axes[0, 1], axes[1, 0]), "BC", grown, strict=True):
        _draw_sizes(panel, expansion, grown[setting])
        panel.set_title(f"({letter}) nodes of a subgraph, {SETTINGS[setting]}")
    _draw_coverage(axes[1, 1], grown)
    return figure


def _draw_proposition(axes: "Axes", expansion: Result) -> None:
    """Promised and measured shares over the steps, for the values of d where they are not all alike."""
    from dpmpn.lab.figures import COLOURS, MARKERS

    telling = [bound for bound in expansion["bounds"] if bound["p"] < 1][: len(COLOURS) - 2]
    for bound, colour, marker in zip(telling, COLOURS, MARKERS, strict=False):
        steps = [step["step"] for step in bound["steps"]]
        looks: Any = {"color": colour, "marker": marker, "markersize": 4, "linewidth": 1.3}
        axes.plot(steps, [100 * s["within"] for s in bound["steps"]], label=f"d = {bound['d']}", **looks)
        axes.plot(steps, [100 * s["probability"] for s in bound["steps"]], linestyle=_DASHED, **looks)
    axes.set(xlabel="step", ylabel="percent of nodes", ylim=(-3, 103))
    axes.set_xticks(range(1, len(expansion["sizes"]["mean"])))
    axes.set_title("(A) within the proposition's bound; dashed: promised")
    axes.legend(frameon=False, fontsize=8)


def _draw_sizes(axes: "Axes", expansion: Result, strategies: dict[str, list[dict[str, Any]]]) -> None:
    """Mean sizes over the steps on a logarithmic axis; the bounds that hold for every question are dashed."""
    from dpmpn.lab.figures import COLOURS, MARKERS

    full = expansion["sizes"]["mean"]
    axes.plot(full, color=COLOURS[-1], linewidth=1.3, label="full expansion")
    for (strategy, found), colour, marker in zip(strategies.items(), COLOURS, MARKERS, strict=False):
        means = [mean(sizes) for sizes in zip(*(each["sizes"]["mean"] for each in found), strict=True)]
        axes.plot(means, color=colour, marker=marker, markersize=4, linewidth=1.3, label=strategy)
        added = found[0]["bound_added"]
        if added is not None and strategy != "attention":  # whose bound is that of three_times
            bounds = [1 + step * added for step in range(len(means))]
            axes.plot(bounds, color=colour, linewidth=1, linestyle=_DASHED, label=f"bound of {strategy}")
    axes.set_yscale("log")
    axes.set_xticks(range(len(full)))
    axes.set(xlabel="step", ylabel="nodes, mean over the questions")
    axes.legend(frameon=False, fontsize=7)


def _draw_coverage(axes: "Axes", grown: Grown) -> None:
    from dpmpn.lab.figures import COLOURS

    strategies = list(next(iter(grown.values())))
    height = 0.8 / len(grown)
    for at, (setting, found) in enumerate(grown.items()):
        values = [100 * mean(each["coverage"] for each in found[strategy]) for strategy in strategies]
        places = [place + (at - (len(grown) - 1) / 2) * height for place in range(len(strategies))]
        axes.barh(places, values, height, color=COLOURS[at], label=SETTINGS[setting])
    axes.set_yticks(range(len(strategies)), strategies)
    axes.invert_yaxis()
    axes.set(xlabel="percent of the questions", xlim=(0, 100))
    axes.set_title("(D) answer in the subgraph")
    axes.legend(frameon=False, fontsize=8)
