"""The stronger model beside the paper's, trained for the same time; and asked about entities that it never saw."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from dpmpn.config import Config
from dpmpn.data.dataset import Dataset
from dpmpn.evaluate.metrics import TITLES
from dpmpn.lab.figures import mean_std, published_rows, table
from dpmpn.lab.reproduce.exhibit import (
    Exhibit,
    Piece,
    length_note,
    mean_of,
    row_of,
    run_label,
    score_cells,
    seeds_note,
)
from dpmpn.lab.reproduce.workshop import (
    BOTH_DATASETS,
    QUICK_DATASET,
    Request,
    Result,
    Workshop,
    config_for,
    dataset_named,
    planned_seconds,
)
from dpmpn.wording import listed, percentage

if TYPE_CHECKING:
    from dpmpn.data.inductive import InductiveSplit

MODEL_TITLES = {"paper": "the paper's model", "strong": "the stronger model"}
_TIES_AGAINST = ("NBFNet", "ComplEx-N3")  # systems that place the answer behind all that tie with it
_PRESET_OF_TASKS = "NELL-995"  # whose preset is for questions about one relation, not for the whole graph
_EFFORT = ("epochs", "training_seconds", "cpu_seconds", "queries_per_s")
_GRAPHS = {"train": "trained on", "ask": "never seen"}
_SIZES = ("entities", "relations", "facts", "mean_degree", "train", "test")
_NOT_COMPARABLE = (
    "Published inductive scores, such as those of NBFNet and AdaProp, are of other splits, and not all of them rank "
    "the answer among all entities: they do not compare one to one with these.\n"
)


def model_label(dataset: Dataset, seed: int, model: str) -> str:
    """The name of a run's folder; that of the paper's model is as in other exhibits."""
    return run_label(dataset, seed, "" if model == "paper" else model)


def model_config(request: Request, dataset: Dataset, seed: int, model: str) -> Config:
    """The settings of either model on a dataset."""
    if model == "paper" and dataset.name == _PRESET_OF_TASKS:
        dataset = replace(dataset, folder=None)  # as of any graph without a preset
    return config_for(request, dataset, seed, model=model)


class Strong(Exhibit):
    """Both models on the same engine."""

    name = "strong"
    title = "The stronger model beside the paper's"
    place = "Not in the paper"
    claim = "Both models on the same engine, trained for the same time."
    datasets = (
        *("WN18RR", "FB15K-237", "WN18", "FB15K", "NELL-995"),
        *("UMLS", "Kinship", "Family", QUICK_DATASET),
    )
    in_paper = False
    fields = (
        *("dataset", "model", "seed", *TITLES, "coverage", "queries", *_EFFORT, "asked_per_s", "parameters"),
    )

    def pieces(self, request: Request) -> list[Piece]:
        """A training of each model and seed."""
        dataset, pieces = self.dataset(request), []
        for seed in request.seeds:
            for model in MODEL_TITLES:
                config = model_config(request, dataset, seed, model)
                seconds = planned_seconds(request, dataset, config, len(dataset.queries("test")))
                name = f"{dataset.name.lower()}-{model}-seed{seed}"
                pieces.append(Piece(name, seconds, partial(_trained, dataset, config, model)))
        return pieces

    def rows(self, request: Request, results: Sequence[Result]) -> list[dict[str, Any]]:
        """A row for each run."""
        return [
            row_of({**result, "asked_per_s": result["scores"].get("queries_per_s")}, self.fields)
            for result in results
        ]

    def text(self, request: Request, results: Sequence[Result]) -> list[str]:
        """Ours among the published ones."""
        by_model = {
            model: [result for result in results if result["model"] == model] for model in MODEL_TITLES
        }
        dataset = results[0]["dataset"]
        paragraphs = [
            _model_table(dataset, by_model),
            _points_note(by_model),
            f"Scores in percent on all test questions of {dataset}, filtered; entities that tie share the mean of "
            f"their places. {length_note(request, results)} {seeds_note(request, with_paper=False)} "
            "The weights that were best on validation are tested, asked with the horizon that their settings have for "
            "asking. Training seconds are without validations, CPU "
            f"seconds with them.{_joint_note(by_model['strong'][0]['joint_targets'])}\n",
        ]
        if published := published_rows(dataset):
            against = [name for name in _TIES_AGAINST if any(row.system == name for row in published)]
            note = f"; in those of {listed(against)} they count against the answer" if against else ""
            paragraphs.append(
                "Published figures are as their sources print them, the best MRR first. They were made with far more "
                f"computing, and do not all place ties as we do{note}.\n"
            )
        return paragraphs


def _trained(dataset: Dataset, config: Config, model: str, workshop: Workshop) -> Result:
    label = model_label(dataset, config.run.seed, model)
    run, length = workshop.trained_in_time(label, dataset, config)
    return {
        "dataset": dataset.name,
        "model": model,
        **length,
        "joint_targets": config.training.joint_targets,
        **workshop.evaluated(run, dataset, horizon=config.asking_horizon()),
    }


def _model_table(dataset: str, by_model: dict[str, list[Result]]) -> str:
    """Ours among the published ones, the best MRR first; those without one last."""
    ranked = [
        (100 * mean_of(results, "mrr"), _own_cells(model, results)) for model, results in by_model.items()
    ]
    for row in published_rows(dataset):
        cells = [row.system, *(row.shown(metric) for metric in TITLES), *["-"] * 5, row.source]
        ranked.append((row.score("mrr", -1.0), cells))
    columns = [
        *("model", *TITLES.values(), "epochs", "training seconds", "CPU seconds", "queries/s"),
        *("parameters", "figures"),
    ]
    ranked.sort(key=lambda each: -each[0])
    return table(columns, [cells for _, cells in ranked], words=("figures",))


def _own_cells(model: str, results: Sequence[Result]) -> list[str]:
    return [
        f"**{MODEL_TITLES[model]}, here**",
        *score_cells(results, TITLES),
        f"{mean_of(results, 'epochs'):.3g}",
        *(f"{mean_of(results, name):,.0f}" for name in _EFFORT[1:]),
        f"{results[0]['parameters']:,}",
        "trained here",
    ]


def _points_note(by_model: dict[str, list[Result]]) -> str:
    """By how many points the stronger model differs from the paper's."""
    strong, paper = by_model["strong"], by_model["paper"]
    points = [
        f"{title} {100 * (mean_of(strong, metric) - mean_of(paper, metric)):+.1f}"
        for metric, title in TITLES.items()
    ]
    return (
        f"The stronger model less the paper's, in points: {', '.join(points)}. It reached "
        f"{percentage(mean_of(strong, 'coverage'))} % of the answers, the paper's "
        f"{percentage(mean_of(paper, 'coverage'))} %.\n"
    )


def _joint_note(together: int) -> str:
    if together == 1:
        return ""
    return (
        f" A training query of the stronger model is a question with up to {together} of its answers, so that an "
        "epoch has fewer of them."
    )


class Unseen(Exhibit):
    """Trained on one graph, asked on another one."""

    name = "unseen"
    title = "Asked about entities never seen"
    place = "Not in the paper"
    claim = "The stronger model trained on one graph, asked on another one without a common entity."
    datasets = BOTH_DATASETS
    in_paper = False
    fields = (
        *("dataset", "seed", "graph", *_SIZES, *TITLES, "coverage"),
        *("queries", "training_seconds", "cpu_seconds"),
    )

    def pieces(self, request: Request) -> list[Piece]:
        """A training for each seed."""
        dataset, pieces = self.dataset(request), []
        for seed in request.seeds:
            # The settings of the whole graph suit its parts.
            config = config_for(request, dataset, seed, model="strong")
            seconds = planned_seconds(request, dataset, config, len(dataset.queries("test")))
            name = f"{dataset.name.lower()}-seed{seed}"
            pieces.append(Piece(name, seconds, partial(_asked_on_both, dataset, config)))
        return pieces

    def rows(self, request: Request, results: Sequence[Result]) -> list[dict[str, Any]]:
        """A row for each run and graph."""
        return [
            row_of({**result, **result["split"][graph], "graph": graph, "scores": scores}, self.fields)
            for result in results
            for graph, scores in result["asked"].items()
        ]

    def text(self, request: Request, results: Sequence[Result]) -> list[str]:
        """Both graphs and the scores on them."""
        split, rows = results[0]["split"], self.rows(request, results)
        columns = ["graph asked about", "entities", "relations", "facts", "facts of an entity"]
        columns += ["to reason on", "test", *TITLES.values(), "reached"]
        lines = []
        for graph, label in _GRAPHS.items():
            sizes = [f"{n:.1f}" if isinstance(n, float) else f"{n:,}" for n in map(split[graph].get, _SIZES)]
            of_graph = [row for row in rows if row["graph"] == graph]
            scores = [mean_std([row[name] for row in of_graph]) for name in (*TITLES, "coverage")]
            lines.append([label, *sizes, *scores])
        return [
            table(columns, lines),
            f"Both graphs are parts of {results[0]['dataset']}, with the same relations and no common entity. "
            f"{split['facts_between']:,} of its {split['whole']['facts']:,} facts are between the parts, and in "
            f"neither{_others_note(split)}. The model learnt relations alone: it was trained on the facts of the first "
            "graph, and asked about held-out facts of that one and of the second, in both directions, with the "
            "facts to reason on as its graph.\n",
            "Scores in percent, filtered, among all entities of the graph asked about; entities that tie share the "
            "mean of their places. The graphs differ in size and in their facts, so that equal scores are not "
            f"to be expected. {length_note(request, results)} Training took "
            f"{mean_of(results, 'training_seconds') / 60:.1f} minutes without validations. "
            f"{seeds_note(request, with_paper=False)} {_NOT_COMPARABLE}",
        ]


@lru_cache(maxsize=1)
def _parted(name: str) -> "InductiveSplit":
    """The two graphs of a dataset; the same for all seeds of the trainings."""
    from dpmpn.data.inductive import inductive_split

    return inductive_split(dataset_named(name))


def _asked_on_both(dataset: Dataset, config: Config, workshop: Workshop) -> Result:
    from dpmpn.data.inductive import with_relations_of

    parted = _parted(dataset.name)
    label = model_label(parted.train, config.run.seed, "strong")
    run, length = workshop.trained_in_time(label, parted.train, config)
    other = with_relations_of(parted.ask, parted.train.graph)
    asked = {"train": workshop.evaluated(run, parted.train), "ask": workshop.evaluated(run, other)}
    return {
        "dataset": dataset.name,
        "split": parted.report,
        **length,
        "training": asked["train"]["training"],
        "asked": {graph: found["scores"] for graph, found in asked.items()},
    }


def _others_note(split: dict[str, Any]) -> str:
    left_out = split["facts_of_other_relations"]
    return f"; {left_out:,} to ask about have a relation that no fact to train on has" if left_out else ""


STRONG, UNSEEN = Strong(), Unseen()
