"""The stronger model beside the paper's, trained for the same time on the same dataset."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from statistics import mean
from typing import TYPE_CHECKING, Any

from dpmpn.config import Config
from dpmpn.data.dataset import Dataset
from dpmpn.evaluate.metrics import TITLES
from dpmpn.lab.figures import mean_std, table
from dpmpn.lab.published import published_rows
from dpmpn.lab.reproduce.analysis import run_label, scores_of, training_rate
from dpmpn.lab.reproduce.exhibit import Exhibit, Exhibited, Piece, Request, Result
from dpmpn.lab.reproduce.planning import (
    length_told,
    n_parameters,
    piece_seconds,
    planned,
    planned_queries,
    queries_of_an_epoch,
    runs_told,
)
from dpmpn.lab.reproduce.settings import QUICK_DATASET, config_for, dataset_named
from dpmpn.wording import listed, percentage

if TYPE_CHECKING:
    from dpmpn.lab.reproduce.workshop import Workshop

KINDS = {"paper": "the paper's model", "strong": "the stronger model"}
_DATASETS = (
    *("WN18RR", "FB15K-237", "WN18", "FB15K", "NELL-995"),
    *("UMLS", "Kinship", "Family", QUICK_DATASET),
)
_TIES_AGAINST = ("NBFNet", "ComplEx-N3")  # systems that place the answer behind all that tie with it
_PRESET_OF_TASKS = "NELL-995"  # whose preset is for questions about one relation, not for the whole graph


def _pieces(request: Request) -> list[Piece]:
    dataset = dataset_named(QUICK_DATASET if request.quick else request.dataset or _DATASETS[0])
    return [_piece(request, dataset, seed, kind) for seed in request.seeds for kind in KINDS]


def _piece(request: Request, dataset: Dataset, seed: int, kind: str) -> Piece:
    config = _config(request, dataset, seed, kind)
    return Piece(
        f"{dataset.name.lower()}-{kind}-seed{seed}",
        piece_seconds(request, dataset, config, len(dataset.queries("test"))),
        partial(_measured, dataset, config, kind),
    )


def _config(request: Request, dataset: Dataset, seed: int, kind: str) -> Config:
    if kind == "paper" and dataset.name == _PRESET_OF_TASKS:
        dataset = replace(dataset, folder=None)  # as of any graph without a preset
    return config_for(request, dataset, seed, kind=kind)


def _measured(dataset: Dataset, config: Config, kind: str, workshop: "Workshop") -> Result:
    label = model_label(dataset, config.run.seed, kind)
    run = workshop.trained(label, dataset, planned(workshop, label, dataset, config))
    return {
        "dataset": dataset.name,
        "model": kind,
        "seed": config.run.seed,
        "parameters": n_parameters(run),
        "queries_of_an_epoch": queries_of_an_epoch(dataset, run.config),
        "planned_queries": planned_queries(run, dataset),
        "joint_targets": config.training.joint_targets,
        **workshop.evaluated(run, dataset, horizon=config.asking_horizon()),
    }


def model_label(dataset: Dataset, seed: int, kind: str) -> str:
    """The name of a run's folder; that of the paper's model is as in other exhibits."""
    return run_label(dataset, seed, "" if kind == "paper" else kind)


def _show(request: Request, results: dict[str, Result]) -> Exhibited:
    found = {kind: [r for r in results.values() if r["model"] == kind] for kind in KINDS}
    dataset = found["strong"][0]["dataset"]
    parts = [
        table(_COLUMNS, _rows(dataset, found), words=("figures",)),
        _compared(found),
        f"Scores in percent on all test questions of {dataset}, filtered; entities that tie share the mean of their "
        f"places. {length_told(request, results.values())} {runs_told(request)} "
        "The weights that were best on validation are tested, "
        "asked with the horizon that their settings have for asking. Training seconds are without validations, CPU "
        f"seconds with them.{_joint_told(found)}\n",
    ]
    if published := published_rows(dataset):
        against = [name for name in _TIES_AGAINST if any(row.system == name for row in published)]
        told = f"; in those of {listed(against)} they count against the answer" if against else ""
        parts.append(
            "Published figures are as their sources print them, the best MRR first. They were made with far more "
            f"computing, and do not all place ties as we do{told}.\n"
        )
    return Exhibited([_row(result) for result in results.values()], "\n".join(parts))


_COLUMNS = [
    *("model", *TITLES.values(), "epochs", "training seconds", "CPU seconds", "queries/s"),
    *("parameters", "figures"),
]


def _rows(dataset: str, found: dict[str, list[Result]]) -> list[list[str]]:
    """Ours among the published ones, the best MRR first; those without one last."""
    ranked = [
        (100 * mean(scores_of(result)["mrr"] for result in results), _own_cells(kind, results))
        for kind, results in found.items()
    ]
    ranked += [
        (
            row.score("mrr", -1.0),
            [row.system, *(row.shown(metric) for metric in TITLES), *["-"] * 5, row.source],
        )
        for row in published_rows(dataset)
    ]
    return [cells for _, cells in sorted(ranked, key=lambda each: -each[0])]


def _own_cells(kind: str, results: Sequence[Result]) -> list[str]:
    rows = [_row(result) for result in results]
    return [
        f"**{KINDS[kind]}, here**",
        *(mean_std([row[metric] for row in rows]) for metric in TITLES),
        f"{mean(row['epochs'] for row in rows):.3g}",
        *(f"{mean(row[key] for row in rows):,.0f}" for key in ("training_seconds", "cpu_seconds")),
        f"{mean(row['queries_per_s'] for row in rows):,.0f}",
        f"{rows[0]['parameters']:,}",
        "trained here",
    ]


def _compared(found: dict[str, list[Result]]) -> str:
    """By how many points the stronger model differs from the paper's."""
    means = {
        kind: {metric: mean(scores_of(result)[metric] for result in results) for metric in TITLES}
        for kind, results in found.items()
    }
    told = [
        f"{label} {100 * (means['strong'][metric] - means['paper'][metric]):+.1f}"
        for metric, label in TITLES.items()
    ]
    reached = {
        kind: percentage(mean(result["scores"]["both"]["coverage"] for result in results))
        for kind, results in found.items()
    }
    return (
        f"The stronger model less the paper's, in points: {', '.join(told)}. It reached {reached['strong']} % of the "
        f"answers, the paper's {reached['paper']} %.\n"
    )


def _joint_told(found: dict[str, list[Result]]) -> str:
    together = found["strong"][0]["joint_targets"]
    if together == 1:
        return ""
    return (
        f" A training query of the stronger model is a question with up to {together} of its answers, so that an "
        "epoch has fewer of them."
    )


def _row(result: Result) -> dict[str, Any]:
    training = result["training"]
    return {
        **{key: result[key] for key in ("dataset", "model", "seed")},
        **{metric: scores_of(result)[metric] for metric in TITLES},
        "coverage": result["scores"]["both"]["coverage"],
        "queries": training["queries"],
        "epochs": training["queries"] / result["queries_of_an_epoch"],
        "training_seconds": training["training_seconds"],
        "cpu_seconds": training["cpu_seconds"],
        "queries_per_s": training_rate(result),
        "asked_per_s": result["scores"].get("queries_per_s"),
        "parameters": result["parameters"],
    }


STRONG = Exhibit(
    name="strong",
    title="The stronger model beside the paper's",
    place="Not in the paper",
    claim="Both models on the same engine, trained for the same time.",
    pieces=_pieces,
    show=_show,
    datasets=_DATASETS,
    in_paper=False,
)
