"""Figure 6: how long one epoch of training takes with other horizons and batch sizes."""

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from statistics import mean
from typing import TYPE_CHECKING, Any

from dpmpn.config import Config, with_overrides
from dpmpn.data.dataset import Dataset
from dpmpn.errors import Stopped
from dpmpn.lab.figures import COLOURS, MARKERS, new_figure, table
from dpmpn.lab.reproduce.exhibit import Piece, draw_line, run_label
from dpmpn.lab.reproduce.settings import Request
from dpmpn.lab.reproduce.variations import (
    KEYS,
    WHOSE_VALUES,
    Variation,
    Varying,
    by_value,
    described,
    draw_setting,
    standard_config,
    standard_note,
    standard_settings,
    value_cells,
    variations,
)
from dpmpn.lab.reproduce.workshop import Result, Workshop
from dpmpn.wording import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_BATCH = "batch_size"
_BATCH_SIZES, _QUICK_BATCH_SIZES = (20, 50, 100, 200, 400), (16, 64)
# As in the paper: so small that large batches fitted into the memory of a graphics card.
_SMALL_HORIZON = {
    "max_attending_from_per_step": 20,
    "max_sampling_per_node": 20,
    "max_attending_to_per_step": 20,
}
_STRETCH, _QUICK_STRETCH = 15.0, 0.3  # seconds that are measured
_WARM_UP = 5.0  # about what the batches before them take, in seconds
_PAPER_HOURS = {"WN18RR": 4.3, "FB15K-237": 25.7}  # of one epoch with the standard settings, on a TITAN X


class TimeCost(Varying):
    """How long one epoch of training takes with other horizons and batch sizes."""

    name = "time-cost"
    title = "Time of one epoch of training"
    place = "Figure 6"
    places = (("FB15K-237", "Figure 8"),)
    claim = (
        "The nodes attended from and the number of steps make training longer, "
        "the sampled edges and the nodes attended to hardly do, and larger batches make it shorter."
    )
    trains = False  # but for stretches of a fixed length
    takes_runs = False

    def pieces(self, request: Request) -> list[Piece]:
        """A stretch of training for each variation and seed."""
        dataset, pieces = self.dataset(request), []
        seconds = _QUICK_STRETCH if request.quick else _STRETCH
        batch_sizes = [
            Variation(f"batch-size-{size}", _BATCH, {**_SMALL_HORIZON, _BATCH: size})
            for size in (_QUICK_BATCH_SIZES if request.quick else _BATCH_SIZES)
        ]
        for seed in request.seeds:
            standard = standard_config(request, dataset, seed)
            for variation in [*variations(request, standard), *batch_sizes]:
                name = run_label(dataset, seed, variation.name)
                work = partial(_measure_stretch, name, dataset, standard, variation, seconds)
                pieces.append(Piece(name, seconds + (0 if request.quick else _WARM_UP), work))
        return pieces

    def rows(self, request: Request, results: Sequence[Result]) -> list[dict[str, Any]]:
        """The settings, the stretch, and an epoch at its speed."""
        return [
            {
                **row,
                **(stretch := result["stretch"]),
                "queries_per_s": stretch["queries"] / stretch["seconds"],
                "busy_cores": stretch["cpu_seconds"] / stretch["seconds"],
                "epoch_seconds": epoch_seconds(result),
                "epoch_cpu_seconds": epoch_seconds(result, "cpu_seconds"),
            }
            for row, result in zip(super().rows(request, results), results, strict=True)
        ]

    def text(self, request: Request, results: Sequence[Result]) -> list[str]:
        """Minutes of an epoch by setting and value."""
        columns = ["queries/s", "busy cores", "minutes of an epoch", "CPU minutes of an epoch"]
        lines = []
        for key in (*KEYS, _BATCH):
            for value, found in _panel(results, key).items():
                queries, wall, cpu = (
                    sum(result["stretch"][name] for result in found)
                    for name in ("queries", "seconds", "cpu_seconds")
                )
                rates = [f"{queries / wall:.0f}", f"{cpu / wall:.2f}"]
                minutes = [f"{_minutes(found, time):.1f}" for time in ("seconds", "cpu_seconds")]
                lines.append([*value_cells(key, value, found), *rates, *minutes])
        notes = [
            _measuring_note(request, results),
            WHOSE_VALUES,
            standard_note(results),
            _paper_note(results),
        ]
        return [table(["setting", "value", *columns], lines), " ".join(notes)]

    def plot(self, results: Sequence[Result]) -> "Figure":
        """A panel for each setting, and one for batch sizes."""
        figure, panels = new_figure(9, 5.8, 2, 3, sharey=True)
        standard = standard_settings(results)
        *used, spare = panels.flat
        for axes, key, letter in zip(used, (*KEYS, _BATCH), "ABCDE", strict=True):
            points = _panel(results, key)
            for at, (time, label) in enumerate({"seconds": "minutes", "cpu_seconds": "CPU minutes"}.items()):
                minutes = [
                    [epoch_seconds(result, time) / 60 for result in found] for found in points.values()
                ]
                draw_line(axes, list(points), minutes, color=COLOURS[at], marker=MARKERS[at], label=label)
            draw_setting(axes, key, list(points), None if key == _BATCH else standard[key], letter)
        used[0].set_ylim(bottom=0)  # of all panels, once all are drawn: it ends the scaling
        for axes in panels[:, 0]:
            axes.set_ylabel("one epoch of training (min)")
        spare.axis("off")
        spare.legend(*panels[0, 0].get_legend_handles_labels(), loc="center", frameon=False)
        figure.suptitle(results[0]["dataset"], fontsize=11)
        return figure


def _measure_stretch(
    name: str,
    dataset: Dataset,
    standard: Config,
    variation: Variation,
    seconds: float,
    workshop: Workshop,
) -> Result:
    from dpmpn.lab.bench import training_stretch

    if workshop.watch.stop():
        raise Stopped
    workshop.watch.say(f"measuring {name}")
    config = with_overrides(standard, {**variation.changes, "threads": workshop.request.threads})
    stretch = training_stretch(dataset, config, seconds)
    return {
        **described(variation, standard, (*KEYS, _BATCH)),
        "dataset": dataset.name,
        "seed": config.run.seed,
        "queries_of_an_epoch": len(dataset.queries("train")),
        "stretch": asdict(stretch),
    }


def epoch_seconds(result: Result, time: str = "seconds") -> float:
    """Wall (or CPU) seconds of one epoch at the measured rate."""
    stretch = result["stretch"]
    return float(result["queries_of_an_epoch"] * stretch[time] / stretch["queries"])


def _panel(results: Sequence[Result], key: str) -> dict[int, list[Result]]:
    """Results by the values of a setting; batch sizes are measured with a horizon of their own."""
    if key == _BATCH:
        results = [result for result in results if result["varied"] == _BATCH]
    return by_value(results, key)


def _minutes(results: Sequence[Result], time: str = "seconds") -> float:
    return mean(epoch_seconds(result, time) for result in results) / 60


def _measuring_note(request: Request, results: Sequence[Result]) -> str:
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


def _paper_note(results: Sequence[Result]) -> str:
    dataset = results[0]["dataset"]
    if dataset not in _PAPER_HOURS:
        return "The graph and the settings are small: nothing here compares with the paper."
    minutes = _minutes([result for result in results if result["varied"] is None])
    return (
        f"With the standard settings the paper's epoch took {_PAPER_HOURS[dataset]} h on a TITAN X; "
        f"here it would take {minutes / 60:.2f} h."
    )


TIME_COST = TimeCost()
