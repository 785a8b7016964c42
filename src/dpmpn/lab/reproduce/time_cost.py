"""Figure 6: how long one epoch of training takes with other horizons and batch sizes."""

from collections.abc import Sequence
from dataclasses import asdict
from statistics import mean
from typing import TYPE_CHECKING, Any

from dpmpn.config import Config, with_overrides
from dpmpn.data.dataset import Dataset
from dpmpn.errors import Stopped
from dpmpn.lab.figures import table
from dpmpn.lab.reproduce.analysis import DATASETS, chosen_dataset, draw_line, run_label
from dpmpn.lab.reproduce.exhibit import Exhibit, Exhibited, Piece, Request, Result
from dpmpn.lab.reproduce.variations import (
    VARIED,
    Variation,
    by_value,
    described,
    draw_setting,
    standard_config,
    standard_told,
    values_told,
    variations,
)
from dpmpn.wording import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dpmpn.lab.reproduce.workshop import Workshop

_BATCH = "batch_size"
_BATCH_SIZES, _QUICK_BATCH_SIZES = (20, 50, 100, 200, 400), (16, 64)
# As in the paper: so small that large batches fitted into the memory of a graphics card.
_SMALL_HORIZON = {
    "max_attending_from_per_step": 20,
    "max_sampling_per_node": 20,
    "max_attending_to_per_step": 20,
}
_KEYS = tuple(varied.key for varied in VARIED)
_STRETCH, _QUICK_STRETCH = 15.0, 0.3  # seconds that are measured
_WARM_UP = 5.0  # about what the batches before them take, in seconds
_PAPER_HOURS = {"WN18RR": 4.3, "FB15K-237": 25.7}  # of one epoch with the standard settings, on a TITAN X


def _pieces(request: Request) -> list[Piece]:
    dataset = chosen_dataset(request)
    pieces = []
    for seed in request.seeds:
        standard = standard_config(request, dataset, seed)
        for variation in [*variations(request, standard), *_batch_sizes(request)]:
            pieces.append(_piece(request, dataset, standard, variation))
    return pieces


def _batch_sizes(request: Request) -> list[Variation]:
    return [
        Variation(f"batch-size-{size}", _BATCH, {**_SMALL_HORIZON, _BATCH: size})
        for size in (_QUICK_BATCH_SIZES if request.quick else _BATCH_SIZES)
    ]


def _piece(request: Request, dataset: Dataset, standard: Config, variation: Variation) -> Piece:
    seconds = _QUICK_STRETCH if request.quick else _STRETCH
    return Piece(
        run_label(dataset, standard.run.seed, variation.name),
        seconds + (0 if request.quick else _WARM_UP),
        lambda workshop: _measured(workshop, dataset, standard, variation, seconds),
    )


def _measured(
    workshop: "Workshop", dataset: Dataset, standard: Config, variation: Variation, seconds: float
) -> Result:
    from dpmpn.lab.bench import training_stretch

    if workshop.watch.stop():
        raise Stopped
    workshop.watch.say(f"measuring {run_label(dataset, standard.run.seed, variation.name)}")
    config = with_overrides(standard, {**variation.changes, "threads": workshop.request.threads})
    stretch = training_stretch(dataset, config, seconds)
    return {
        **described(variation, standard, (*_KEYS, _BATCH)),
        "dataset": dataset.name,
        "seed": config.run.seed,
        "queries_of_an_epoch": len(dataset.queries("train")),
        "stretch": asdict(stretch),
    }


def epoch_seconds(result: Result, time: str = "seconds") -> float:
    """Wall (or CPU) seconds of one epoch at the measured rate."""
    stretch = result["stretch"]
    return result["queries_of_an_epoch"] * stretch[time] / stretch["queries"]


def _panel(results: Sequence[Result], key: str) -> dict[int, list[Result]]:
    """Results by the values of a setting; batch sizes are measured with a horizon of their own."""
    if key == _BATCH:
        results = [result for result in results if result["varied"] == _BATCH]
    return by_value(results, key)


def _show(request: Request, results: dict[str, Result]) -> Exhibited:
    found = list(results.values())
    columns = [
        "setting",
        "value",
        "queries/s",
        "busy cores",
        "minutes of an epoch",
        "CPU minutes of an epoch",
    ]
    text = "\n".join(
        [
            table(columns, [line for key in (*_KEYS, _BATCH) for line in _lines(found, key)]),
            " ".join(
                [_measuring_told(request, found), values_told(), standard_told(found), _paper_told(found)]
            ),
        ]
    )
    return Exhibited([_row(result) for result in found], text, {"time-cost": _plot(found)})


def _lines(results: Sequence[Result], key: str) -> list[list[str]]:
    lines = []
    for value, found in _panel(results, key).items():
        queries, wall, cpu = (
            sum(result["stretch"][name] for result in found) for name in ("queries", "seconds", "cpu_seconds")
        )
        lines.append(
            [
                f"`{key}`",
                f"{value} (standard)" if found[0]["varied"] is None else str(value),
                f"{queries / wall:.0f}",
                f"{cpu / wall:.2f}",
                f"{_minutes(found):.1f}",
                f"{_minutes(found, 'cpu_seconds'):.1f}",
            ]
        )
    return lines


def _minutes(results: Sequence[Result], time: str = "seconds") -> float:
    return mean(epoch_seconds(result, time) for result in results) / 60


def _measuring_told(request: Request, results: Sequence[Result]) -> str:
    seconds = mean(result["stretch"]["seconds"] for result in results)
    small = ", ".join(f"`{key}` = {value}" for key, value in _SMALL_HORIZON.items())
    stretches = counted(len(request.seeds), "stretch", "stretches")
    return (
        f"One epoch on {results[0]['dataset']} has {results[0]['queries_of_an_epoch']:,} queries. Its time is "
        f"computed from the rate of {stretches} of about {seconds:.2g} s for each setting, trained from the initial "
        f"weights after a warm-up; the whole epoch was not trained. Other work on the machine makes minutes longer "
        f"and leaves CPU minutes nearly alone; busy cores tell how much of the machine the training had. "
        f"Batch sizes are measured with {small}."
    )


def _paper_told(results: Sequence[Result]) -> str:
    dataset = results[0]["dataset"]
    if dataset not in _PAPER_HOURS:
        return "The graph and the settings are small: nothing here compares with the paper."
    minutes = _minutes([result for result in results if result["varied"] is None])
    return (
        f"With the standard settings the paper's epoch took {_PAPER_HOURS[dataset]} h on a TITAN X; "
        f"here it would take {minutes / 60:.2f} h."
    )


def _row(result: Result) -> dict[str, Any]:
    stretch = result["stretch"]
    return {
        "dataset": result["dataset"],
        "seed": result["seed"],
        "varied": result["varied"] or "",
        **result["settings"],
        **stretch,
        "queries_per_s": stretch["queries"] / stretch["seconds"],
        "busy_cores": stretch["cpu_seconds"] / stretch["seconds"],
        "epoch_seconds": epoch_seconds(result),
        "epoch_cpu_seconds": epoch_seconds(result, "cpu_seconds"),
    }


def _plot(results: Sequence[Result]) -> "Figure":
    from dpmpn.lab.figures import COLOURS, MARKERS, new_figure

    figure, panels = new_figure(9, 5.8, 2, 3, sharey=True)
    standard = next(result for result in results if result["varied"] is None)["settings"]
    *used, spare = panels.flat
    for axes, key, letter in zip(used, (*_KEYS, _BATCH), "ABCDE", strict=True):
        points = _panel(results, key)
        for at, (time, label) in enumerate({"seconds": "minutes", "cpu_seconds": "CPU minutes"}.items()):
            minutes = [[epoch_seconds(result, time) / 60 for result in found] for found in points.values()]
            draw_line(axes, list(points), minutes, color=COLOURS[at], marker=MARKERS[at], label=label)
        draw_setting(axes, key, list(points), None if key == _BATCH else standard[key])
        axes.set_title(f"({letter})", loc="left")
    used[0].set_ylim(bottom=0)  # of all panels, once all are drawn: it ends the scaling
    for axes in panels[:, 0]:
        axes.set_ylabel("one epoch of training (min)")
    spare.axis("off")
    spare.legend(*panels[0, 0].get_legend_handles_labels(), loc="center", frameon=False)
    figure.suptitle(results[0]["dataset"], fontsize=11)
    return figure


TIME_COST = Exhibit(
    name="time-cost",
    title="Time of one epoch of training",
    place="Figure 6",
    claim="The nodes attended from and the number of steps make training longer, "
    "the sampled edges and the nodes attended to hardly do, and larger batches make it shorter.",
    pieces=_pieces,
    show=_show,
    datasets=DATASETS,
    draws=True,
    trains=False,  # but for stretches of a fixed length
    takes_runs=False,
    places={"FB15K-237": "Figure 8"},
)
