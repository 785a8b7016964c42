"""Figure 4 (B): what the inattentive GNN adds."""

from statistics import mean, stdev
from typing import TYPE_CHECKING, Any

from dpmpn.config import Config
from dpmpn.data.dataset import Dataset
from dpmpn.lab.figures import table
from dpmpn.lab.reproduce.analysis import (
    DATASETS,
    METRICS,
    chosen_dataset,
    horizon_told,
    run_label,
    score_cells,
    scores_of,
    seeds_told,
    training_told,
)
from dpmpn.lab.reproduce.exhibit import Exhibit, Exhibited, Piece, Request, Result
from dpmpn.lab.reproduce.settings import config_for, training_seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dpmpn.lab.reproduce.workshop import Workshop

_FORMS = {"with": "with IGNN", "without": "without IGNN"}


def _pieces(request: Request) -> list[Piece]:
    dataset = chosen_dataset(request)
    return [_piece(request, dataset, seed, form) for seed in request.seeds for form in _FORMS]


def _piece(request: Request, dataset: Dataset, seed: int, form: str) -> Piece:
    without: dict[str, Any] = {"n_steps_in_ignn": 0} if form == "without" else {}
    config = config_for(request, dataset, seed, **without)
    n_queries = config.training.n_epochs * len(dataset.queries("train"))
    return Piece(
        run_label(dataset, seed, f"{form}-ignn"),
        training_seconds(request, dataset.name, n_queries, len(dataset.queries("test"))),
        lambda workshop: _measured(workshop, dataset, config, form),
    )


def _measured(workshop: "Workshop", dataset: Dataset, config: Config, form: str) -> Result:
    label = run_label(dataset, config.run.seed, "without-ignn" if form == "without" else "")
    run = workshop.trained(label, dataset, config)
    return {
        **workshop.evaluated(run, dataset),
        "dataset": dataset.name,
        "seed": config.run.seed,
        "form": form,
        "n_steps_in_ignn": config.model.n_steps_in_ignn,
        "queries_of_an_epoch": len(dataset.queries("train")),
    }


def _show(request: Request, results: dict[str, Result]) -> Exhibited:
    by_form = {form: [r for r in results.values() if r["form"] == form] for form in _FORMS}
    rows = [
        [_FORMS[form], str(found[0]["n_steps_in_ignn"]), *score_cells(found)]
        for form, found in by_form.items()
    ]
    dataset = by_form["with"][0]["dataset"]
    text = "\n".join(
        [
            table(["", "n_steps_in_ignn", *METRICS.values()], rows),
            f"Scores in percent on the test questions of {dataset}; without the IGNN, the AGNN reads the embeddings "
            f"of the nodes themselves. {training_told(request, results.values())} {seeds_told(request)} "
            f"{horizon_told(results.values())}",
        ]
    )
    return Exhibited([_row(r) for r in results.values()], text, {"ignn": _plot(dataset, by_form)})


def _row(result: Result) -> dict[str, Any]:
    training = result["training"]
    return {
        "dataset": result["dataset"],
        "seed": result["seed"],
        "n_steps_in_ignn": result["n_steps_in_ignn"],
        **scores_of(result),
        "queries": training["queries"],
        "training_seconds": training["training_seconds"],
    }


def _plot(dataset: str, by_form: dict[str, list[Result]]) -> "Figure":
    from dpmpn.lab.figures import COLOURS, new_figure

    figure, axes = new_figure(6.5, 4.2)
    width = 0.38
    for form, shift, colour in zip(_FORMS, (-width / 2, width / 2), COLOURS, strict=False):
        points = [[100 * scores_of(r)[metric] for r in by_form[form]] for metric in METRICS]
        spread = [stdev(values) if len(values) > 1 else 0.0 for values in points]
        bars = axes.bar(
            [at + shift for at in range(len(METRICS))],
            [mean(values) for values in points],
            width * 0.95,
            yerr=spread if any(spread) else None,
            capsize=2.5,
            color=colour,
            label=_FORMS[form],
        )
        axes.bar_label(bars, fmt="%.1f", padding=2)
    axes.set_xticks(range(len(METRICS)), list(METRICS.values()))
    axes.set(ylabel="score on test (percent)", title=dataset)
    axes.grid(visible=False, axis="x")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    return figure


IGNN = Exhibit(
    name="ignn",
    title="With and without the inattentive GNN",
    place="Figure 4 (B)",
    claim="Node states from message passing over the full graph help the pruned message passing: "
    "every score is higher with the IGNN.",
    pieces=_pieces,
    show=_show,
    datasets=DATASETS,
    draws=True,
    places={"FB15K-237": "Figure 7 (B)"},
)
