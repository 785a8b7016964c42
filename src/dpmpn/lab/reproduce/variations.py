"""One setting varied at a time: Figure 4 (C) to (F), scores over the horizons, and Figure 6, the time of an epoch."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from functools import partial
from statistics import mean
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpmpn.config import AskingConfig, Config, with_overrides
from dpmpn.data.dataset import Dataset
from dpmpn.errors import Stopped
from dpmpn.lab.figures import COLOURS, MARKERS, new_figure, table
from dpmpn.lab.reproduce.exhibit import (
    METRICS,
    Exhibit,
    Piece,
    draw_line,
    draw_scores,
    grouped,
    legend_below,
    mean_of,
    row_of,
    run_label,
    score_cells,
    seeds_note,
    training_note,
)
from dpmpn.lab.reproduce.workshop import (
    BOTH_DATASETS,
    LIMITS,
    Request,
    Result,
    Workshop,
    config_for,
    piece_seconds,
    setting,
)
from dpmpn.wording import counted, listed, percentage

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dpmpn.train.run_folder import RunFolder


class Varied(NamedTuple):
    """A setting, and the values it is given."""

    key: str
    short: str  # in names of runs
    values: tuple[int, ...]
    quick_values: tuple[int, ...]


class Variation(NamedTuple):
    """The standard settings with one of them changed, or with none."""

    name: str
    varied: str | None  # None in the standard settings, which are a point of every panel
    changes: dict[str, Any]


# The paper prints no values beside its charts; these are ours, around the standard ones.
VARIED = (
    Varied("max_sampling_per_node", "sampling", (20, 50, 100, 200, 400), (5, 20)),
    Varied("max_attending_to_per_step", "attending-to", (20, 50, 100, 200, 400), (10, 40)),
    Varied("max_attending_from_per_step", "attending-from", (5, 10, 20, 40), (3, 10)),
    Varied("n_steps_in_agnn", "steps", (2, 4, 6, 8, 10), (2, 4)),
)
KEYS = tuple(varied.key for varied in VARIED)
_TRACED_QUERIES = 200  # over which the size of subgraphs is averaged
_TRACED_AT_ONCE = 20  # since a trace keeps all steps of its batch
_BATCH = "batch_size"
_BATCH_SIZES, _QUICK_BATCH_SIZES = (20, 50, 100, 200, 400), (16, 64)
# As in the paper: so small that large batches fitted into the memory of a graphics card.
_SMALL_HORIZON = dict.fromkeys(LIMITS, 20)
_STRETCH, _QUICK_STRETCH = 15.0, 0.3  # seconds that are measured
_WARM_UP = 5.0  # about what the batches before them take, in seconds
_PAPER_HOURS = {"WN18RR": 4.3, "FB15K-237": 25.7}  # of one epoch with the standard settings, on a TITAN X
_WHOSE_VALUES = (
    "One setting is varied at a time and the others stay as they are. "
    "The paper's text names no values for its charts, so these are ours."
)


def standard_config(request: Request, dataset: Dataset, seed: int) -> Config:
    """The settings of the preset, asked with the horizon they were trained with: both vary together."""
    as_trained: dict[str, Any] = {option.name: None for option in fields(AskingConfig)}
    return config_for(request, dataset, seed, **as_trained)


def variations(request: Request, standard: Config) -> list[Variation]:
    """The standard settings, and every other value of every setting."""
    made = [Variation("standard", None, {})]
    for varied in VARIED:
        for value in varied.quick_values if request.quick else varied.values:
            if value != setting(standard, varied.key):
                made.append(Variation(f"{varied.short}-{value}", varied.key, {varied.key: value}))
    return made


def described(variation: Variation, standard: Config, keys: Iterable[str]) -> dict[str, Any]:
    """Which setting a piece varies, and the values of those that are varied somewhere."""
    config = with_overrides(standard, variation.changes)
    return {"varied": variation.varied, "settings": {key: setting(config, key) for key in keys}}


def by_value(results: Sequence[Result], key: str) -> dict[int, list[Result]]:
    """The results where a setting was varied, by its ascending values, with the standard ones among them.

    Batch sizes are measured with a horizon of their own, to which the standard ones do not belong.
    """
    varied = [result for result in results if result["varied"] in ((key,) if key == _BATCH else (key, None))]
    return dict(sorted(grouped(varied, lambda result: int(result["settings"][key])).items()))


def standard_settings(results: Iterable[Result]) -> dict[str, int]:
    """The settings where none was varied."""
    settings: dict[str, int] = next(result for result in results if result["varied"] is None)["settings"]
    return settings


def standard_note(results: Iterable[Result]) -> str:
    """The standard settings in words."""
    shown = [f"`{key}` = {value}" for key, value in standard_settings(results).items()]
    return f"The standard settings are {listed(shown)}."


def value_cells(key: str, value: int, results: Sequence[Result]) -> list[str]:
    """The first cells of a line: a setting and its value."""
    return [f"`{key}`", f"{value} (standard)" if results[0]["varied"] is None else str(value)]


def draw_setting(axes: "Axes", key: str, values: Sequence[int], standard: int | None, letter: str) -> None:
    """Label a panel with a setting's name and its values, and mark the standard one."""
    axes.set_xlabel(key)
    if key != "n_steps_in_agnn":  # the others are doubled from value to value
        axes.set_xscale("log")
    axes.set_xticks(list(values), [str(value) for value in values])
    axes.minorticks_off()
    if standard is not None:
        looks: Any = {"linewidth": 1, "linestyle": (0, (4, 3)), "zorder": 0}
        axes.axvline(standard, label="standard setting", color=COLOURS[-1], **looks)
    axes.set_title(f"({letter})", loc="left")


class Varying(Exhibit):
    """One setting after the other."""

    datasets = BOTH_DATASETS
    keys = KEYS  # of the settings that are varied
    measured: tuple[str, ...] = ()  # of the data, after the settings

    def seconds(self, request: Request, dataset: Dataset, standard: Config) -> float:
        """About what a piece takes on two cores: a training and all test questions."""
        return piece_seconds(request, dataset, standard, len(dataset.queries("test")))

    @abstractmethod
    def measure(self, label: str, dataset: Dataset, config: Config, workshop: Workshop) -> Result:
        """What is measured with a configuration."""

    def variations(self, request: Request, standard: Config) -> list[Variation]:
        """What is measured with each seed."""
        return variations(request, standard)

    def pieces(self, request: Request) -> list[Piece]:
        """One for each variation and seed."""
        dataset, pieces = self.dataset(request), []
        for seed in request.seeds:
            standard = standard_config(request, dataset, seed)
            seconds = self.seconds(request, dataset, standard)
            for variation in self.variations(request, standard):
                name = run_label(dataset, seed, variation.name)
                pieces.append(Piece(name, seconds, partial(self._work, name, dataset, standard, variation)))
        return pieces

    def _work(
        self, name: str, dataset: Dataset, standard: Config, variation: Variation, workshop: Workshop
    ) -> Result:
        config = with_overrides(standard, variation.changes)
        return {
            **described(variation, standard, self.keys),
            "dataset": dataset.name,
            "seed": standard.run.seed,
            "queries_of_an_epoch": len(dataset.queries("train")),
            **self.measure(name, dataset, config, workshop),
        }

    def rows(self, request: Request, results: Sequence[Result]) -> list[dict[str, Any]]:
        """The settings, and what was measured with them."""
        columns = ("dataset", "seed", "varied", *self.keys, *self.measured)
        flat = ({**result, **result["settings"], "varied": result["varied"] or ""} for result in results)
        return [row_of(result, columns) for result in flat]


class Horizons(Varying):
    """Scores over the sampling, attending-to, attending-from and searching horizons."""

    name = "horizons"
    title = "How much of the graph a query may look at"
    place = "Figure 4 (C)-(F)"
    places = (("FB15K-237", "Figure 7 (C)-(F)"),)
    claim = (
        "Sampling more edges or attending to more nodes does not always help, attending from more nodes does, "
        "and reasoning should take at least four steps."
    )
    measured = (
        *(*METRICS, "coverage", "visited_nodes", "queries", "training_seconds", "cpu_seconds"),
        "queries_per_s",
    )

    def measure(self, label: str, dataset: Dataset, config: Config, workshop: Workshop) -> Result:
        """Train, ask and trace."""
        run = workshop.trained(label, dataset, config)
        nodes = visited_nodes(workshop, run, dataset)
        return {**workshop.evaluated(run, dataset), "visited_nodes": nodes}

    def text(self, request: Request, results: Sequence[Result]) -> list[str]:
        """Scores by setting and value."""
        lines = [
            [
                *value_cells(key, value, found),
                *score_cells(found),
                percentage(mean_of(found, "coverage")),
                f"{mean_of(found, 'visited_nodes'):.0f}",
                f"{mean_of(found, 'queries_per_s'):.0f}",
            ]
            for key in KEYS
            for value, found in by_value(results, key).items()
        ]
        return [
            table(["setting", "value", *METRICS.values(), "reached", "nodes", "queries/s"], lines),
            f"Scores in percent on the test questions of {results[0]['dataset']}; reached: questions whose answer "
            f"attention came to, in percent; nodes: mean size of a question's subgraph; queries/s: of the training, on "
            f"a machine that may have had other work. {_WHOSE_VALUES} {standard_note(results)} Questions are asked "
            f"with the horizon of the training, since the paper varies both. {training_note(request, results)} "
            f"{seeds_note(request)}",
        ]

    def plot(self, results: Sequence[Result]) -> "Figure":
        """A panel for each setting."""
        figure, panels = new_figure(9, 6.6, 2, 2, sharey=True)
        standard = standard_settings(results)
        for axes, key, letter in zip(panels.flat, KEYS, "CDEF", strict=True):
            points = by_value(results, key)
            draw_scores(axes, list(points), list(points.values()))
            draw_setting(axes, key, list(points), standard[key], letter)
        for axes in panels[:, 0]:
            axes.set_ylabel("score on test (percent)")
        figure.suptitle(results[0]["dataset"], fontsize=11)
        legend_below(figure, panels[0, 0], 5)
        return figure


def visited_nodes(workshop: Workshop, run: "RunFolder", dataset: Dataset) -> float:
    """The mean number of nodes in a test question's subgraph."""
    queries = dataset.queries("test")
    drawn = queries[np.random.default_rng(0).permutation(len(queries))[:_TRACED_QUERIES]]
    sizes: list[int] = []
    with workshop.asking(run, dataset) as engine:
        for start in range(0, len(drawn), _TRACED_AT_ONCE):
            heads, relations, _ = drawn[start : start + _TRACED_AT_ONCE].T
            _, trace = engine.trace(engine.asking_batch(heads, relations))
            sizes += [len(trace.visited(query)) for query in range(len(heads))]
            workshop.progress(len(sizes), len(drawn))
    return mean(sizes)


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
    keys = (*KEYS, _BATCH)

    def variations(self, request: Request, standard: Config) -> list[Variation]:
        """Batch sizes, too."""
        made = variations(request, standard)
        for size in _QUICK_BATCH_SIZES if request.quick else _BATCH_SIZES:
            made.append(Variation(f"batch-size-{size}", _BATCH, {**_SMALL_HORIZON, _BATCH: size}))
        return made

    def seconds(self, request: Request, dataset: Dataset, standard: Config) -> float:
        """A stretch and its warm-up."""
        return _QUICK_STRETCH if request.quick else _STRETCH + _WARM_UP

    def measure(self, label: str, dataset: Dataset, config: Config, workshop: Workshop) -> Result:
        """Train for some seconds, and keep nothing of it."""
        from dpmpn.lab.bench import training_stretch

        if workshop.watch.stop():
            raise Stopped
        workshop.watch.say(f"measuring {label}")
        config = with_overrides(config, {"threads": workshop.request.threads})
        seconds = _QUICK_STRETCH if workshop.request.quick else _STRETCH
        return {"stretch": asdict(training_stretch(dataset, config, seconds))}

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
        for key in self.keys:
            for value, found in by_value(results, key).items():
                queries, wall, cpu = (
                    sum(result["stretch"][name] for result in found)
                    for name in ("queries", "seconds", "cpu_seconds")
                )
                rates = [f"{queries / wall:.0f}", f"{cpu / wall:.2f}"]
                minutes = [f"{_minutes(found, time):.1f}" for time in ("seconds", "cpu_seconds")]
                lines.append([*value_cells(key, value, found), *rates, *minutes])
        return [
            table(["setting", "value", *columns], lines),
            f"{_measuring_note(request, results)} {_WHOSE_VALUES} {standard_note(results)} {_paper_note(results)}",
        ]

    def plot(self, results: Sequence[Result]) -> "Figure":
        """A panel for each setting, and one for batch sizes."""
        figure, panels = new_figure(9, 5.8, 2, 3, sharey=True)
        standard = standard_settings(results)
        *used, spare = panels.flat
        for axes, key, letter in zip(used, self.keys, "ABCDE", strict=True):
            points = by_value(results, key)
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


def epoch_seconds(result: Result, time: str = "seconds") -> float:
    """Wall (or CPU) seconds of one epoch at the measured rate."""
    stretch = result["stretch"]
    return float(result["queries_of_an_epoch"] * stretch[time] / stretch["queries"])


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


HORIZONS, TIME_COST = Horizons(), TimeCost()
