"""Draws how accuracy grows with training time: one curve a model, this project's own in front."""

from pathlib import Path
from typing import Any

from dpmpn.lab.compare.race import MARKS, validation_seconds
from dpmpn.lab.figures.plots import COLOURS, EMPHASIS, MARKERS, new_figure, save_plot


def draw_curves(conditions: dict[str, Any], models: list[dict[str, Any]], stem: Path) -> None:
    """Validation MRR over minutes of training, as SVG and PNG."""
    figure, axes = new_figure(7.2, 4.2)
    others = [model for model in models if not model["is_own"]]
    for at, model in enumerate(others):
        _draw(axes, model, color=COLOURS[at % len(COLOURS)], marker=MARKERS[at % len(MARKERS)], linewidth=1.2)
    for at, model in enumerate(model for model in models if model["is_own"]):
        style = ("-", "--", ":")[at % 3]
        _draw(axes, model, color=EMPHASIS, marker="o", linewidth=2.8, linestyle=style, zorder=5)
    axes.set_xscale("log")
    budget = conditions["budget_minutes"]
    ticks = [seconds / 60 for seconds in validation_seconds(60 * budget)]
    axes.set_xticks(ticks, [f"{minutes:.2g}" for minutes in ticks])
    axes.minorticks_off()
    for mark in MARKS:
        if mark <= budget:
            axes.axvline(mark, color="0.45", linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    axes.set(xlabel="minutes of training", ylabel="validation MRR (%)", ylim=(0, None))
    axes.set_title(f"{conditions['dataset']}: accuracy over training time")
    handles, labels = axes.get_legend_handles_labels()
    last = {label: handle.get_ydata()[-1] for handle, label in zip(handles, labels, strict=True)}
    order = sorted(range(len(labels)), key=lambda at: -last[labels[at]])  # as the curves end, from the top
    figure.legend(
        [handles[at] for at in order],
        [labels[at] for at in order],
        loc="outside right upper",
        frameon=False,
    )
    save_plot(figure, stem)


def _draw(axes: Any, model: dict[str, Any], **style: Any) -> None:
    curve = model["result"]["curve"]
    minutes = [point["seconds"] / 60 for point in curve]
    axes.plot(minutes, [100 * point["mrr"] for point in curve], label=model["label"], markersize=4.5, **style)
