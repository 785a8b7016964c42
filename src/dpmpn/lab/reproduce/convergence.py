"""Figure 4 (A): scores of snapshots on the way of one training."""

from functools import partial
from typing import TYPE_CHECKING, Any

from dpmpn.config import Config
from dpmpn.data.dataset import Dataset
from dpmpn.errors import ConfigError
from dpmpn.lab.figures import table
from dpmpn.lab.reproduce.analysis import (
    DATASETS,
    METRICS,
    chosen_dataset,
    draw_scores,
    horizon_told,
    run_label,
    score_cells,
    scores_of,
    seeds_told,
)
from dpmpn.lab.reproduce.exhibit import Exhibit, Exhibited, Piece, Request, Result
from dpmpn.lab.reproduce.settings import config_for, training_seconds
from dpmpn.wording import listed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dpmpn.lab.reproduce.workshop import Workshop

_SNAPSHOTS = (0.3, 0.5, 0.7, 1.0, 2.0, 3.0)  # epochs, as in the paper
_QUICK_SNAPSHOTS = (0.1, 0.2, 0.3)


def snapshots(request: Request) -> list[float]:
    """Epochs after which the model is measured; `--epochs` ends them."""
    usual = _QUICK_SNAPSHOTS if request.quick else _SNAPSHOTS
    if request.epochs is None:
        return list(usual)
    return [epochs for epochs in usual if epochs < request.epochs] + [request.epochs]


def queries_until(epochs: float, queries_of_an_epoch: int, batch_size: int) -> int:
    """Training queries until a snapshot, in whole batches: the training is the same with and without the stop."""
    whole, rest = divmod(round(epochs * queries_of_an_epoch), queries_of_an_epoch)
    return max(batch_size, whole * queries_of_an_epoch + rest // batch_size * batch_size)


def _pieces(request: Request) -> list[Piece]:
    if request.max_minutes is not None:
        raise ConfigError(
            "'convergence' measures a model after fixed parts of the training; "
            "leave out --max-minutes, and shorten it by --epochs"
        )
    dataset = chosen_dataset(request)
    return [piece for seed in request.seeds for piece in _pieces_of_seed(request, dataset, seed)]


def _pieces_of_seed(request: Request, dataset: Dataset, seed: int) -> list[Piece]:
    points = snapshots(request)
    config = config_for(request, dataset, seed, n_epochs=points[-1], validate_every_queries=0, patience=None)
    n_epoch = len(dataset.queries("train"))
    n_test = len(dataset.queries("test"))
    pieces, before = [], 0
    for epochs in points:
        until = queries_until(epochs, n_epoch, config.training.batch_size)
        pieces.append(
            Piece(
                f"{run_label(dataset, seed)}-{epochs:g}-epochs",
                training_seconds(request, dataset.name, until - before, n_test),
                partial(_snapshot, dataset=dataset, config=config, epochs=epochs, queries=until),
            )
        )
        before = until
    return pieces


def _snapshot(workshop: "Workshop", dataset: Dataset, config: Config, epochs: float, queries: int) -> Result:
    """Train the run of a seed until a snapshot and measure its weights as they are then."""
    run = workshop.trained(run_label(dataset, config.run.seed), dataset, config, max_queries=queries)
    return {
        **workshop.evaluated(run, dataset, which="last"),
        "dataset": dataset.name,
        "seed": config.run.seed,
        "epochs": epochs,
        "queries_of_an_epoch": len(dataset.queries("train")),
    }


def _show(request: Request, results: dict[str, Result]) -> Exhibited:
    by_epochs: dict[float, list[Result]] = {}
    for result in results.values():
        by_epochs.setdefault(result["epochs"], []).append(result)
    rows = [
        [f"{epochs:g}", f"{found[0]['training']['queries']:,}", *score_cells(found)]
        for epochs, found in by_epochs.items()
    ]
    text = "\n".join(
        [
            table(["epochs", "queries", *METRICS.values()], rows),
            f"Scores in percent of the weights after each part of the training, on the test questions of "
            f"{_dataset(results)}. A snapshot is taken after a whole batch, so the training is the same as without it. "
            f"{seeds_told(request)} {horizon_told(results.values())}{_shortened(request)}",
        ]
    )
    return Exhibited([_row(result) for result in results.values()], text, {"convergence": _plot(by_epochs)})


def _row(result: Result) -> dict[str, Any]:
    training = result["training"]
    return {
        "dataset": result["dataset"],
        "seed": result["seed"],
        "epochs": result["epochs"],
        "queries": training["queries"],
        **scores_of(result),
        "training_seconds": training["training_seconds"],
    }


def _shortened(request: Request) -> str:
    if request.quick:
        return " The graph and the settings are small: nothing here compares with the paper."
    points, usual = snapshots(request), list(_SNAPSHOTS)
    if points == usual:
        return " The snapshots are the paper's."
    return (
        f" The paper's snapshots are at {listed([f'{epochs:g}' for epochs in usual])} epochs; "
        f"here the training ended after {points[-1]:g}."
    )


def _dataset(results: dict[str, Result]) -> str:
    return next(iter(results.values()))["dataset"]


def _plot(by_epochs: dict[float, list[Result]]) -> "Figure":
    from dpmpn.lab.figures import new_figure

    figure, axes = new_figure(6.5, 4.2)
    draw_scores(axes, list(by_epochs), list(by_epochs.values()))
    axes.set_xticks(list(by_epochs), [f"{epochs:g}" for epochs in by_epochs])
    axes.set(xlabel="epochs of training", ylabel="score on test (percent)")
    axes.set_title(next(iter(by_epochs.values()))[0]["dataset"])
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    return figure


CONVERGENCE = Exhibit(
    name="convergence",
    title="Convergence",
    place="Figure 4 (A)",
    claim="Training converges fast: half of the training queries are enough to generalise, "
    "and a second epoch is not needed.",
    pieces=_pieces,
    show=_show,
    datasets=DATASETS,
    draws=True,
    takes_runs=False,  # a run keeps its last weights, not those on the way
    places={"FB15K-237": "Figure 7 (A)"},
)
