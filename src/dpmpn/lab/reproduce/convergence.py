"""Figure 4 (A): scores of snapshots during one training."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from dpmpn.config import Config
from dpmpn.data.dataset import Dataset
from dpmpn.errors import ConfigError
from dpmpn.lab.figures import new_figure, table
from dpmpn.lab.reproduce.exhibit import (
    METRICS,
    Exhibit,
    Piece,
    draw_scores,
    grouped,
    horizon_note,
    legend_below,
    run_label,
    score_cells,
    seeds_note,
)
from dpmpn.lab.reproduce.workshop import (
    BOTH_DATASETS,
    Request,
    Result,
    Workshop,
    config_for,
    training_seconds,
)
from dpmpn.wording import listed

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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


class Convergence(Exhibit):
    """Scores after parts of a training."""

    name = "convergence"
    title = "Convergence"
    place = "Figure 4 (A)"
    places = (("FB15K-237", "Figure 7 (A)"),)
    claim = (
        "Training converges fast: half of the training queries are enough to generalise, "
        "and a second epoch is not needed."
    )
    datasets = BOTH_DATASETS
    takes_runs = False  # a run keeps its last weights, not those before them
    fields = ("dataset", "seed", "epochs", "queries", *METRICS, "training_seconds")

    def pieces(self, request: Request) -> list[Piece]:
        """A piece for each snapshot, one after the other in the training of a seed."""
        if request.max_minutes is not None:
            raise ConfigError(
                "'convergence' measures a model after fixed parts of the training; "
                "leave out --max-minutes, and shorten it by --epochs"
            )
        dataset, points, pieces = self.dataset(request), snapshots(request), []
        n_epoch, n_test = len(dataset.queries("train")), len(dataset.queries("test"))
        length: dict[str, Any] = {"n_epochs": points[-1], "validate_every_queries": 0, "patience": None}
        for seed in request.seeds:
            config, before = config_for(request, dataset, seed, **length), 0
            for epochs in points:
                until = queries_until(epochs, n_epoch, config.training.batch_size)
                name = f"{run_label(dataset, seed)}-{epochs:g}-epochs"
                seconds = training_seconds(request, dataset.name, until - before, n_test)
                pieces.append(Piece(name, seconds, partial(_snapshot, dataset, config, epochs, until)))
                before = until
        return pieces

    def text(self, request: Request, results: Sequence[Result]) -> list[str]:
        """Scores by epochs."""
        rows = [
            [f"{epochs:g}", f"{found[0]['training']['queries']:,}", *score_cells(found)]
            for epochs, found in _by_epochs(results).items()
        ]
        return [
            table(["epochs", "queries", *METRICS.values()], rows),
            f"Scores in percent of the weights after each part of the training, on the test questions of "
            f"{results[0]['dataset']}. A snapshot is taken after a whole batch, so the training is the same as without "
            f"it. {seeds_note(request)} {horizon_note(results)}{_shortened(request)}",
        ]

    def plot(self, results: Sequence[Result]) -> "Figure":
        """Scores over the epochs."""
        by_epochs = _by_epochs(results)
        figure, axes = new_figure(6.5, 4.2)
        draw_scores(axes, list(by_epochs), list(by_epochs.values()))
        axes.set_xticks(list(by_epochs), [f"{epochs:g}" for epochs in by_epochs])
        axes.set(xlabel="epochs of training", ylabel="score on test (percent)")
        axes.set_title(results[0]["dataset"])
        legend_below(figure, axes, 4)
        return figure


def _snapshot(dataset: Dataset, config: Config, epochs: float, queries: int, workshop: Workshop) -> Result:
    """Train the run of a seed until a snapshot and measure its weights as they are then."""
    run = workshop.trained(run_label(dataset, config.run.seed), dataset, config, max_queries=queries)
    return {
        **workshop.evaluated(run, dataset, which="last"),
        "dataset": dataset.name,
        "seed": config.run.seed,
        "epochs": epochs,
        "queries_of_an_epoch": len(dataset.queries("train")),
    }


def _by_epochs(results: Sequence[Result]) -> dict[float, list[Result]]:
    return grouped(results, lambda result: float(result["epochs"]))


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


CONVERGENCE = Convergence()
