"""The result of a comparison as files: everything as JSON, the table as CSV and Markdown, the curves as a plot."""

from pathlib import Path
from typing import Any

from dpmpn.evaluate.metrics import TITLES
from dpmpn.files import write_json, write_text
from dpmpn.lab.figures import (
    COLOURS,
    EMPHASIS,
    MARKERS,
    PublishedRow,
    csv_text,
    new_figure,
    published_rows,
    save_plot,
    table,
)
from dpmpn.wording import DIGITS, counted, percentage, plural

NAME = "compare"
_LATE = 1.1  # minutes of a validation over those of its mark: a batch may take long
_UNEQUAL = 1.1  # busy cores of one model over those of another
_FORMAT, _VERSION = "dpmpn-compare", 1
# Of these there is no kept implementation that could be trained here.
_WITHOUT_LIBRARY = ("neurallp", "minerva", "mwalk", "deeppath")
_HALVINGS = 8
MARKS = (5, 15, 60)
"""Minutes at which all models are validated, however long the budget beyond them is."""


def validation_seconds(budget_seconds: float) -> list[float]:
    """When a model is validated: at 1/128, 1/64, ... 1/2 and all of the budget, and at the marks within it."""
    halves = [budget_seconds * 2.0**-halvings for halvings in range(_HALVINGS)]
    marks = [60.0 * minutes for minutes in MARKS if 60 * minutes < budget_seconds]
    return sorted({*halves, *marks})


def write_report(out: Path, conditions: dict[str, Any], models: list[dict[str, Any]]) -> dict[str, Any]:
    """Write compare.json, .csv, .md, .svg and .png; what the first holds."""
    published = _published(conditions["dataset"])
    once = ("format", "version", "conditions")  # which a model's own file has, too
    report = {
        "format": _FORMAT,
        "version": _VERSION,
        "conditions": conditions,
        "models": [{key: model[key] for key in model if key not in once} for model in models],
        "published": [row.as_dict() for row in published],
    }
    write_json(out / f"{NAME}.json", report)
    write_text(out / f"{NAME}.csv", _csv(models, published))
    write_text(out / f"{NAME}.md", markdown(conditions, models, published))
    draw_curves(conditions, models, out / NAME)
    return report


def markdown(conditions: dict[str, Any], models: list[dict[str, Any]], published: list[PublishedRow]) -> str:
    """The table, best MRR first, then published figures; and the sentence that says how it was made."""
    marks = [mark for mark in MARKS if mark <= conditions["budget_minutes"]]
    columns = ["model", *TITLES.values(), "MRR, ties worst to best"]
    columns += [f"validation MRR, {mark} min" for mark in marks] + ["parameters", "epochs", "queries/s"]
    rows = [_model_cells(model, marks) for model in by_mrr(models)]
    rows += [
        [f"{row.system} (published)", *map(row.shown, TITLES), *["-"] * (6 + len(marks)), row.source]
        for row in published
    ]
    return (
        f"# {conditions['dataset']}: models trained for {conditions['budget_minutes']:g} minutes each\n\n"
        f"{_how(conditions, models)}\n\n"
        + table([*columns, "minutes", "busy cores", "figures"], rows, words=("figures",))
    )


def by_mrr(models: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Models with the best test MRR first."""
    return sorted(models, key=lambda model: -model["result"]["test"]["both"]["realistic"]["mrr"])


def _how(conditions: dict[str, Any], models: list[dict[str, Any]]) -> str:
    test, threads = conditions["test"], conditions["threads"]
    counts = sorted({len(model["result"]["curve"]) for model in models})
    validations = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else f"{counts[0]}"
    return (
        f"Whole test set: {test:,} triples asked in both directions, filtered ranks, ties at the mean of their places, "
        f"in percent. Training on {counted(threads, 'thread')}, seed {conditions['seed']}; the best of "
        f"{validations} {plural(counts[-1], 'validation')} is tested, and no clock runs while a model is measured."
        f"{_unequal(models)}"
    )


def _unequal(models: list[dict[str, Any]]) -> str:
    """A warning where the models did not have the machine alike."""
    by_cores = sorted(models, key=_busy_cores)
    least, most = by_cores[0], by_cores[-1]
    if _busy_cores(most) <= _UNEQUAL * _busy_cores(least):
        return ""
    return (
        f" **Busy cores differ**, from {_busy_cores(least):.2f} ({least['label']}) to {_busy_cores(most):.2f} "
        f"({most['label']}): something else used the machine, or a model does not keep its threads busy."
    )


def _busy_cores(model: dict[str, Any]) -> float:
    """Processor seconds for each second of training."""
    return float(model["result"]["cpu_seconds"] / model["result"]["seconds"])


def at_mark(model: dict[str, Any], minutes: float) -> float | None:
    """Validation MRR after so many minutes of training; None where the model was not validated then."""
    near = (point for point in model["result"]["curve"] if 1 <= point["seconds"] / (60 * minutes) < _LATE)
    return next((point["mrr"] for point in near), None)


def _model_cells(model: dict[str, Any], marks: list[int]) -> list[str]:
    result, both = model["result"], model["result"]["test"]["both"]
    label = f"**{model['label']}**" if model["is_own"] else model["label"]
    return [
        label,
        *(percentage(both["realistic"][metric]) for metric in TITLES),
        f"{percentage(both['pessimistic']['mrr'])} to {percentage(both['optimistic']['mrr'])}",
        *(percentage(at_mark(model, mark)) for mark in marks),
        f"{result['parameters']:,}",
        f"{result['epochs']:.3g}",
        f"{result['queries_per_s']:,.0f}",
        f"{result['seconds'] / 60:.1f}",
        f"{_busy_cores(model):.2f}",
        "trained here",
    ]


def _csv(models: list[dict[str, Any]], published: list[PublishedRow]) -> str:
    """One line a model; scores in percent."""
    counts = ("epochs", "queries_per_s", "seconds", "cpu_seconds")
    marked = [f"validation_mrr_{mark}_min" for mark in MARKS]
    columns = [*TITLES, "parameters", *counts, "busy_cores", "validation_mrr", *marked]
    rows = []
    for model in by_mrr(models):
        result = model["result"]
        scores = [percentage(result["test"]["both"]["realistic"][metric], 2) for metric in TITLES]
        values = [result["parameters"], *(f"{result[key]:.{DIGITS}g}" for key in counts)]
        values += [f"{_busy_cores(model):.3f}", percentage(result["best"]["mrr"], 2)]
        values += ["" if (mrr := at_mark(model, mark)) is None else percentage(mrr, 2) for mark in MARKS]
        rows.append([model["name"], *scores, *values, "trained here"])
    for row in published:
        scores = ["" if (value := row.scores[metric]) is None else f"{value:.2f}" for metric in TITLES]
        rows.append([row.system, *scores, *[""] * (len(columns) - len(TITLES)), row.source])
    return csv_text(["model", *columns, "figures"], rows)


def _published(dataset: str) -> list[PublishedRow]:
    """Figures of systems that cannot be trained here, as their papers give them."""
    return [
        row
        for row in published_rows(dataset)
        if "".join(filter(str.isalnum, row.system.lower())) in _WITHOUT_LIBRARY
    ]


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
        [handles[at] for at in order], [labels[at] for at in order], loc="outside right upper", frameon=False
    )
    save_plot(figure, stem)


def _draw(axes: Any, model: dict[str, Any], **style: Any) -> None:
    curve = model["result"]["curve"]
    minutes = [point["seconds"] / 60 for point in curve]
    axes.plot(minutes, [100 * point["mrr"] for point in curve], label=model["label"], markersize=4.5, **style)
