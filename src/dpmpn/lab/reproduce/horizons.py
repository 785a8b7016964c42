"""Figure 4 (C) to (F): scores over the sampling, attending-to, attending-from and searching horizons."""

from statistics import mean
from typing import TYPE_CHECKING, Any

from dpmpn.config import Config, with_overrides
from dpmpn.data.dataset import Dataset
from dpmpn.lab.figures import table
from dpmpn.lab.reproduce.analysis import (
    DATASETS,
    METRICS,
    chosen_dataset,
    draw_scores,
    run_label,
    score_cells,
    scores_of,
    seeds_told,
    training_rate,
    training_told,
)
from dpmpn.lab.reproduce.exhibit import Exhibit, Exhibited, Piece, Request, Result
from dpmpn.lab.reproduce.settings import training_seconds
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
from dpmpn.wording import percentage

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dpmpn.lab.reproduce.workshop import Workshop
    from dpmpn.train.run_folder import RunFolder

_KEYS = tuple(varied.key for varied in VARIED)
_TRACED_QUERIES = 200  # over which the size of subgraphs is averaged
_TRACED_AT_ONCE = 20  # since a trace keeps all steps of its batch


def _pieces(request: Request) -> list[Piece]:
    dataset = chosen_dataset(request)
    return [
        _piece(request, dataset, seed, variation)
        for seed in request.seeds
        for variation in variations(request, standard_config(request, dataset, seed))
    ]


def _piece(request: Request, dataset: Dataset, seed: int, variation: Variation) -> Piece:
    standard = standard_config(request, dataset, seed)
    n_queries = standard.training.n_epochs * len(dataset.queries("train"))
    return Piece(
        run_label(dataset, seed, variation.name),
        training_seconds(request, dataset.name, n_queries, len(dataset.queries("test"))),
        lambda workshop: _measured(workshop, dataset, standard, variation),
    )


def _measured(workshop: "Workshop", dataset: Dataset, standard: Config, variation: Variation) -> Result:
    label = run_label(dataset, standard.run.seed, variation.name)
    run = workshop.trained(label, dataset, with_overrides(standard, variation.changes))
    return {
        **workshop.evaluated(run, dataset),
        **described(variation, standard, _KEYS),
        "dataset": dataset.name,
        "seed": standard.run.seed,
        "queries_of_an_epoch": len(dataset.queries("train")),
        "visited_nodes": visited_nodes(workshop, run, dataset),
    }


def visited_nodes(workshop: "Workshop", run: "RunFolder", dataset: Dataset) -> float:
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
            workshop.tell(len(sizes), len(drawn))
    return mean(sizes)


def _show(request: Request, results: dict[str, Result]) -> Exhibited:
    found = list(results.values())
    dataset = found[0]["dataset"]
    text = "\n".join(
        [
            table(
                ["setting", "value", *METRICS.values(), "reached", "nodes", "queries/s"],
                [line for key in _KEYS for line in _lines(found, key)],
            ),
            f"Scores in percent on the test questions of {dataset}; reached: questions whose answer attention "
            f"came to, in percent; nodes: mean size of a question's subgraph; queries/s: of the training, on a machine "
            f"that may have had other work. {values_told()} {standard_told(found)} Questions are asked with the "
            f"horizon of the training, since the paper varies both. {training_told(request, found)} "
            f"{seeds_told(request)}",
        ]
    )
    return Exhibited([_row(result) for result in found], text, {"horizons": _plot(dataset, found)})


def _lines(results: list[Result], key: str) -> list[list[str]]:
    lines = []
    for value, found in by_value(results, key).items():
        lines.append(
            [
                f"`{key}`",
                f"{value} (standard)" if found[0]["varied"] is None else str(value),
                *score_cells(found),
                percentage(mean(result["scores"]["both"]["coverage"] for result in found)),
                f"{mean(result['visited_nodes'] for result in found):.0f}",
                f"{mean(training_rate(result) for result in found):.0f}",
            ]
        )
    return lines


def _row(result: Result) -> dict[str, Any]:
    return {
        "dataset": result["dataset"],
        "seed": result["seed"],
        "varied": result["varied"] or "",
        **result["settings"],
        **scores_of(result),
        "coverage": result["scores"]["both"]["coverage"],
        "visited_nodes": result["visited_nodes"],
        "queries": result["training"]["queries"],
        "training_seconds": result["training"]["training_seconds"],
        "cpu_seconds": result["training"]["cpu_seconds"],
        "queries_per_s": training_rate(result),
    }


def _plot(dataset: str, results: list[Result]) -> "Figure":
    from dpmpn.lab.figures import new_figure

    figure, panels = new_figure(9, 6.6, 2, 2, sharey=True)
    standard = next(result for result in results if result["varied"] is None)["settings"]
    for axes, key, letter in zip(panels.flat, _KEYS, "CDEF", strict=True):
        points = by_value(results, key)
        draw_scores(axes, list(points), list(points.values()))
        draw_setting(axes, key, list(points), standard[key])
        axes.set_title(f"({letter})", loc="left")
    for axes in panels[:, 0]:
        axes.set_ylabel("score on test (percent)")
    figure.suptitle(dataset, fontsize=11)
    figure.legend(
        *panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False
    )
    return figure


HORIZONS = Exhibit(
    name="horizons",
    title="How much of the graph a query may look at",
    place="Figure 4 (C)-(F)",
    claim="Sampling more edges or attending to more nodes does not always help, attending from more nodes does, "
    "and reasoning should take at least four steps.",
    pieces=_pieces,
    show=_show,
    datasets=DATASETS,
    draws=True,
    places={"FB15K-237": "Figure 7 (C)-(F)"},
)
