"""One setting varied at a time, which two figures show; and Figure 4 (C) to (F), scores over the horizons."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from statistics import mean
from typing import TYPE_CHECKING, Any

from dpmpn.config import AskingConfig, Config, with_overrides
from dpmpn.data.dataset import Dataset
from dpmpn.lab.figures import COLOURS, new_figure, table
from dpmpn.lab.reproduce.exhibit import (
    METRICS,
    Exhibit,
    Piece,
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
from dpmpn.lab.reproduce.settings import BOTH_DATASETS, Request, config_for, piece_seconds, setting
from dpmpn.lab.reproduce.workshop import Result, Workshop
from dpmpn.wording import listed, percentage

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dpmpn.train.run_folder import RunFolder

STANDARD = "standard"


@dataclass(frozen=True)
class Varied:
    """A setting, and the values it is given."""

    key: str
    short: str  # in names of runs
    values: tuple[int, ...]
    quick_values: tuple[int, ...]


@dataclass(frozen=True)
class Variation:
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
WHOSE_VALUES = (
    "One setting is varied at a time and the others stay as they are. "
    "The paper's text names no values for its charts, so these are ours."
)


def standard_config(request: Request, dataset: Dataset, seed: int) -> Config:
    """The settings of the preset, asked with the horizon they were trained with: both vary together."""
    as_trained: dict[str, Any] = {option.name: None for option in fields(AskingConfig)}
    return config_for(request, dataset, seed, **as_trained)


def variations(request: Request, standard: Config) -> list[Variation]:
    """The standard settings, and every other value of every setting."""
    made = [Variation(STANDARD, None, {})]
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
    """The results where a setting was varied, with the standard ones among them, by its ascending values."""
    varied = [result for result in results if result["varied"] in (key, None)]
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
        looks: Any = {"color": COLOURS[-1], "linewidth": 1, "linestyle": (0, (4, 3)), "zorder": 0}
        axes.axvline(standard, label="standard setting", **looks)
    axes.set_title(f"({letter})", loc="left")


class Varying(Exhibit):
    """One setting after the other."""

    datasets = BOTH_DATASETS
    measured: tuple[str, ...] = ()  # of the data, after the settings

    def rows(self, request: Request, results: Sequence[Result]) -> list[dict[str, Any]]:
        """The settings, and what was measured with them."""
        return [
            {
                **{"dataset": result["dataset"], "seed": result["seed"], "varied": result["varied"] or ""},
                **result["settings"],
                **row_of(result, self.measured),
            }
            for result in results
        ]


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

    def pieces(self, request: Request) -> list[Piece]:
        """A training for each variation and seed."""
        dataset, pieces = self.dataset(request), []
        for seed in request.seeds:
            standard = standard_config(request, dataset, seed)
            seconds = piece_seconds(request, dataset, standard, len(dataset.queries("test")))
            for variation in variations(request, standard):
                name = run_label(dataset, seed, variation.name)
                pieces.append(Piece(name, seconds, partial(_scored, dataset, standard, variation)))
        return pieces

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
            f"a machine that may have had other work. {WHOSE_VALUES} {standard_note(results)} Questions are asked "
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


def _scored(dataset: Dataset, standard: Config, variation: Variation, workshop: Workshop) -> Result:
    label = run_label(dataset, standard.run.seed, variation.name)
    run = workshop.trained(label, dataset, with_overrides(standard, variation.changes))
    return {
        **workshop.evaluated(run, dataset),
        **described(variation, standard, KEYS),
        "dataset": dataset.name,
        "seed": standard.run.seed,
        "queries_of_an_epoch": len(dataset.queries("train")),
        "visited_nodes": visited_nodes(workshop, run, dataset),
    }


def visited_nodes(workshop: Workshop, run: "RunFolder", dataset: Dataset) -> float:
    """The mean number of nodes in a test question's subgraph."""
    import numpy as np

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


HORIZONS = Horizons()
