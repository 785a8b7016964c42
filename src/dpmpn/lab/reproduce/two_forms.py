"""Scores of one dataset in two forms of the model, side by side: Figure 4 (B), and what is like it.

With and without the inattentive GNN; with a question's own fact hidden or all between its two entities; asked with one
draw of the IGNN's edges or a new one in each batch.
"""

from abc import abstractmethod
from collections.abc import Sequence
from functools import partial
from statistics import mean
from typing import TYPE_CHECKING, Any, ClassVar

from dpmpn.config import Config
from dpmpn.data.dataset import Dataset
from dpmpn.lab.figures import COLOURS, new_figure, table
from dpmpn.lab.reproduce.exhibit import (
    METRICS,
    Exhibit,
    Piece,
    horizon_note,
    legend_below,
    run_label,
    score_cells,
    scores_of,
    seeds_note,
    spread_of,
    training_note,
)
from dpmpn.lab.reproduce.workshop import (
    BOTH_DATASETS,
    Request,
    Result,
    Workshop,
    config_for,
    piece_seconds,
    training_seconds,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_QUICK_EDGES = 500


class TwoForms(Exhibit):
    """Two forms, each measured on all test questions with every seed."""

    forms: ClassVar[dict[str, str]]  # their titles
    shown: str = ""  # a key of the results that stands beside each title

    @abstractmethod
    def note(self, dataset: str) -> str:
        """What the two forms are."""

    def text(self, request: Request, results: Sequence[Result]) -> list[str]:
        """Scores of each form."""
        rows = [
            [self.forms[form], *([str(found[0][self.shown])] if self.shown else []), *score_cells(found)]
            for form, found in self._by_form(results).items()
        ]
        dataset = results[0]["dataset"]
        return [
            table(["", *([self.shown] if self.shown else []), *METRICS.values()], rows),
            f"Scores in percent on the test questions of {dataset}; {self.note(dataset)} "
            f"{training_note(request, results)} {self._runs_note(request)} {horizon_note(results)}",
        ]

    def _runs_note(self, request: Request) -> str:
        """What stands behind a score."""
        return seeds_note(request)

    def plot(self, results: Sequence[Result]) -> "Figure":
        """Bars side by side."""
        figure, axes = new_figure(6.5, 4.2)
        width, by_form = 0.38, self._by_form(results)
        for form, shift, colour in zip(self.forms, (-width / 2, width / 2), COLOURS, strict=False):
            points = [[100 * scores_of(result)[metric] for result in by_form[form]] for metric in METRICS]
            bars = axes.bar(
                [at + shift for at in range(len(METRICS))],
                [mean(values) for values in points],
                width * 0.95,
                yerr=spread_of(points),
                capsize=2.5,
                color=colour,
                label=self.forms[form],
            )
            axes.bar_label(bars, fmt="%.1f", padding=2)
        axes.set_xticks(range(len(METRICS)), list(METRICS.values()))
        axes.set(ylabel="score on test (percent)", title=results[0]["dataset"])
        axes.grid(visible=False, axis="x")
        legend_below(figure, axes, 2)
        return figure

    def _by_form(self, results: Sequence[Result]) -> dict[str, list[Result]]:
        return {form: [result for result in results if result["form"] == form] for form in self.forms}


class TwoTrainings(TwoForms):
    """Forms that are trained: they differ in settings."""

    @abstractmethod
    def settings(self, form: str) -> dict[str, Any]:
        """What is set for a form, beside the preset."""

    @abstractmethod
    def suffix(self, form: str) -> str:
        """What is added to the name of a form's piece."""

    def pieces(self, request: Request) -> list[Piece]:
        """A training of each form and seed."""
        dataset, pieces = self.dataset(request), []
        for seed in request.seeds:
            for form in self.forms:
                config = config_for(request, dataset, seed, **self.settings(form))
                seconds = piece_seconds(request, dataset, config, len(dataset.queries("test")))
                name = run_label(dataset, seed, self.suffix(form))
                pieces.append(Piece(name, seconds, partial(self._work, dataset, config, form)))
        return pieces

    def _work(self, dataset: Dataset, config: Config, form: str, workshop: Workshop) -> Result:
        # The form of the preset is the run of that name in other exhibits, too.
        as_preset = config == config_for(workshop.request, dataset, config.run.seed)
        label = run_label(dataset, config.run.seed, "" if as_preset else self.suffix(form))
        run = workshop.trained(label, dataset, config)
        return {
            **workshop.evaluated(run, dataset),
            "dataset": dataset.name,
            "seed": config.run.seed,
            "form": form,
            "n_steps_in_ignn": config.model.ignn_draws[0],
            "leak_removal": config.training.leak_removal,
            "queries_of_an_epoch": len(dataset.queries("train")),
        }


class Ignn(TwoTrainings):
    """With and without the IGNN."""

    name = "ignn"
    title = "With and without the inattentive GNN"
    place = "Figure 4 (B)"
    places = (("FB15K-237", "Figure 7 (B)"),)
    claim = (
        "Node states from message passing over the full graph help the pruned message passing: "
        "every score is higher with the IGNN."
    )
    datasets = BOTH_DATASETS
    forms: ClassVar = {"with": "with IGNN", "without": "without IGNN"}
    shown = "n_steps_in_ignn"
    fields = ("dataset", "seed", "n_steps_in_ignn", *METRICS, "queries", "training_seconds")

    def settings(self, form: str) -> dict[str, Any]:
        """No step without it."""
        return {"n_steps_in_ignn": 0} if form == "without" else {}

    def suffix(self, form: str) -> str:
        """With or without."""
        return f"{form}-ignn"

    def note(self, dataset: str) -> str:
        """What takes its place."""
        return "without the IGNN, the AGNN reads the embeddings of the nodes themselves."


class LeakRemoval(TwoTrainings):
    """All facts between a question's two entities hidden, or its own alone."""

    name = "leak-removal"
    title = "What a batch must not see of the graph"
    place = "Section 4, Datasets"
    claim = (
        "On FB15K-237, where no fact of validation or test joins two entities that a training fact joins, hiding all "
        "facts between the two entities of a training question gains about 2 % of H@1."
    )
    datasets = ("FB15K-237", "WN18RR")
    forms: ClassVar = {
        "pairs": "all facts between its two entities",
        "triples": "its own fact and the inverse",
    }
    shown = "leak_removal"
    fields = ("dataset", "seed", "leak_removal", *METRICS, "coverage", "queries", "training_seconds")

    def settings(self, form: str) -> dict[str, Any]:
        """The form is the setting."""
        return {"leak_removal": form}

    def suffix(self, form: str) -> str:
        """What is hidden."""
        return f"{form}-hidden"

    def note(self, dataset: str) -> str:
        """What is hidden, and when."""
        return "what is hidden while a batch is trained on; when asking, nothing is."


class IgnnDraws(TwoForms):
    """One model, asked with the IGNN's edges drawn once or anew for each batch."""

    name = "ignn-draws"
    title = "Edges of the inattentive GNN when asking"
    place = "Section 3.1"
    claim = (
        "The IGNN samples edges of the full graph at random in each of its steps. The authors' program draws new ones "
        "for each batch of test questions; here one draw serves all, so that a question has one answer."
    )
    datasets = ("WN18", *BOTH_DATASETS)
    forms: ClassVar = {"once": "drawn once", "anew": "drawn anew for each batch"}
    fields = ("dataset", "seed", "form", "draw", *METRICS, "coverage", "queries")
    n_draws = 3  # of each form

    def pieces(self, request: Request) -> list[Piece]:
        """Every seed's model is trained once, and asked with each draw of each form."""
        dataset, pieces = self.dataset(request), []
        n_asked = len(dataset.queries("test"))
        # The bundled graph has fewer edges than are drawn.
        fewer: dict[str, Any] = {"max_sampling_per_step": _QUICK_EDGES} if request.quick else {}
        for seed in request.seeds:
            config = config_for(request, dataset, seed, **fewer)
            seconds = piece_seconds(request, dataset, config, n_asked)
            for draw in range(self.n_draws):
                for form in self.forms:
                    name = run_label(dataset, seed, f"{form}-{draw}")
                    work = partial(self._work, dataset, config, form, draw)
                    pieces.append(Piece(name, seconds, work))
                    seconds = training_seconds(request, dataset.name, 0, n_asked)  # the model is there
        return pieces

    def _work(self, dataset: Dataset, config: Config, form: str, draw: int, workshop: Workshop) -> Result:
        run = workshop.trained(run_label(dataset, config.run.seed), dataset, config)
        from dpmpn.lab.reproduce.drawn_engine import DrawnEngine  # needs torch

        return {
            **workshop.evaluated(run, dataset, engine=partial(DrawnEngine, draw=draw, anew=form == "anew")),
            "dataset": dataset.name,
            "seed": config.run.seed,
            "form": form,
            "draw": draw,
            "queries_of_an_epoch": len(dataset.queries("train")),
        }

    def _runs_note(self, request: Request) -> str:
        models = "one model" if len(request.seeds) == 1 else f"{len(request.seeds)} models"
        return f"Scores are means (standard deviations) of {self.n_draws} draws for {models}."

    def note(self, dataset: str) -> str:
        """How much of the graph a draw is."""
        return "the same model each time, and other edges drawn for its IGNN."


IGNN, LEAK_REMOVAL, IGNN_DRAWS = Ignn(), LeakRemoval(), IgnnDraws()
