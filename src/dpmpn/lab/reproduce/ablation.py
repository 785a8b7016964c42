"""What each part of the stronger model brings: all of it, and with one change at a time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from statistics import mean
from typing import Any

from dpmpn.config import AskingConfig, Config, with_overrides
from dpmpn.data.dataset import Dataset
from dpmpn.lab.figures import mean_std, table
from dpmpn.lab.reproduce.exhibit import Exhibit, Piece, length_note, row_of, run_label, seeds_note, value_of
from dpmpn.lab.reproduce.strong import model_label
from dpmpn.lab.reproduce.workshop import (
    BOTH_DATASETS,
    Request,
    Result,
    Workshop,
    config_for,
    planned_seconds,
    setting,
    training_seconds,
)

WHOLE = "whole"
_N1, _ASK_N1 = "max_attending_from_per_step", "ask_attending_from_per_step"
_N3, _ASK_N3, _EVERYONE = "max_attending_to_per_step", "ask_attending_to_per_step", 100_000
_AVERAGE = 0.998  # of weights, where the whole model has none
_ASKED = 1_500  # validation facts: what to keep of a model is not chosen on test facts

Settings = Callable[[Config], dict[str, Any]]
"""What becomes of the whole model's settings."""


@dataclass(frozen=True)
class Change:
    """The whole model with something changed, and why one would want to know."""

    name: str
    settings: Settings
    model: str = "strong"  # the model whose settings are changed
    is_trained: bool = True  # or the whole model's weights, asked in another way
    reason: str = field(kw_only=True)


def _fixed(**settings: Any) -> Settings:
    return lambda _: settings


def _switched(key: str, off: Any, on: Any) -> Settings:
    """On where the whole model has it off, else off."""
    return lambda whole: {key: on if setting(whole, key) == off else off}


def _scaled(key: str, factor: float) -> Settings:
    return lambda whole: {key: max(1, int(factor * setting(whole, key)))}


def _in_training(key: str, factor: float, asking: str) -> Settings:
    """A horizon of training alone: asking stays as it is, also where it followed from the training."""
    return lambda whole: {
        **_scaled(key, factor)(whole),
        **({} if setting(whole, asking) else {asking: setting(whole, key)}),
    }


def _steps(more: int) -> Settings:
    return lambda whole: {"n_steps_in_agnn": max(1, setting(whole, "n_steps_in_agnn") + more)}


def _as_trained(whole: Config) -> dict[str, Any]:
    set_apart = [option.name for option in fields(AskingConfig) if getattr(whole.asking, option.name)]
    return {key: None for key in set_apart or [_ASK_N1]}


def _trained_alike(whole: Config) -> dict[str, Any]:
    return {"schedule": "linear", "weight_average": setting(whole, "weight_average") or _AVERAGE}


def _with_its_rate(whole: Config) -> dict[str, Any]:
    return {**_trained_alike(whole), "learning_rate": setting(whole, "learning_rate")}


# fmt: off
CHANGES = (
    Change("one-map", _switched("relation_vectors", "each_step", "turned"),
        reason="does each relation need a map of the relation asked for each step, or one for all?"),
    Change("shared-relations", _fixed(relation_vectors="query"),
        reason="does each pair of a relation and the relation asked need parameters of its own?"),
    Change("plain-relations", _fixed(relation_vectors="plain"),
        reason="does it matter that a message depends on the relation asked?"),
    Change("prior-profiles", _fixed(profiles="prior"),
        reason="should states begin with the relations that an entity has, or only its probability?"),
    Change("no-profiles", _fixed(profiles="off"),
        reason="how much do the relations that an entity has tell, wherever it is?"),
    Change("node-gates", _fixed(gates="nodes"),
        reason="does attention that flows along edges differ from attention of nodes?"),
    Change("no-gates", _fixed(gates="off"),
        reason="is attention part of the reasoning, or only of the pruning?"),
    Change("weight-average", _switched("weight_average", 0.0, _AVERAGE),
        reason="is an average of the weights better than the last ones?"),
    Change("schedule", _switched("schedule", "constant", "linear"),
        reason="does a learning rate that falls help?"),
    Change("joint-targets", _switched("joint_targets", 1, 8),
        reason="are answers of a question better learnt together or one by one?"),
    Change("per-relation", _switched("max_sampling_per_relation", None, 10),
        reason="should a busy node's edges be drawn evenly, or some of each relation?"),
    Change("fewer-attended", _in_training(_N3, 1 / 4, _ASK_N3),
        reason="do so many nodes need messages in a step of training?"),
    Change("all-attended", _fixed(**{_N3: _EVERYONE, _ASK_N3: _EVERYONE}),
        reason="are those that most attention flows to enough, or should every node that is led to get messages?"),
    Change("joined", _switched("joined_share", 1.0, 0.1),
        reason="are facts worth learning whose entities another fact joins, or are they easy?"),
    Change("dropout", _switched("fact_dropout", 0.0, 0.3),
        reason="does it help to hide up to 30 % of all facts from a batch?"),
    Change("half-dims", _scaled("n_dims", 1 / 2),
        reason="are states larger than they need be?"),
    Change("double-dims", _scaled("n_dims", 2),
        reason="are states too small?"),
    Change("fewer-steps", _steps(-2),
        reason="do answers lie nearer than the steps reach?"),
    Change("more-steps", _steps(2),
        reason="do answers lie further than the steps reach?"),
    Change("half-n1", _in_training(_N1, 1 / 2, _ASK_N1),
        reason="does training need to look at so much? Asked as the whole model is"),
    Change("double-n1", _in_training(_N1, 2, _ASK_N1),
        reason="does training see too little? Asked as the whole model is"),
    Change("asked-as-trained", _as_trained, is_trained=False,
        reason="what does a wider horizon bring when asking? The same weights"),
    Change("paper", _fixed(), model="paper",
        reason="control: the paper's model as it is"),
    Change("paper-schedule", _trained_alike, model="paper",
        reason="control: the paper's model, trained as the stronger one but for the learning rate"),
    Change("paper-schedule-rate", _with_its_rate, model="paper",
        reason="control: the same with the stronger model's learning rate"),
)
# fmt: on
_ALL = Change(WHOLE, _fixed(), reason="what the others are compared with")


def chosen(request: Request) -> list[Change]:
    """The whole model, and the changes that were asked for."""
    return [_ALL, *(change for change in CHANGES if not request.only or change.name in request.only)]


class Ablation(Exhibit):
    """The stronger model with one change at a time, asked on validation facts."""

    name = "ablation"
    title = "What each part of the stronger model brings"
    place = "Not in the paper"
    claim = "The stronger model with one change at a time, and the paper's model as control."
    datasets = BOTH_DATASETS
    in_paper = False
    parts = tuple(change.name for change in CHANGES)
    fields = (
        *("dataset", "change", "seed", "settings", "mrr", "queries", "epochs", "training_seconds"),
        *("cpu_seconds", "queries_per_s", "parameters", "difference"),
    )

    def pieces(self, request: Request) -> list[Piece]:
        """A training for each change and seed; one that only asks otherwise has none of its own."""
        dataset = self.dataset(request)
        return [
            _piece(request, dataset, seed, change) for seed in request.seeds for change in chosen(request)
        ]

    def rows(self, request: Request, results: Sequence[Result]) -> list[dict[str, Any]]:
        """A row for each run, with what it differs by from the whole model of its seed."""
        whole = {result["seed"]: value_of(result, "mrr") for result in results if result["change"] == WHOLE}
        rows = []
        for result in results:
            changed = ((key, "none" if value is None else value) for key, value in result["settings"].items())
            settings = ", ".join(f"{key} = {value}" for key, value in changed)
            difference = value_of(result, "mrr") - whole[result["seed"]]
            rows.append(row_of({**result, "settings": settings, "difference": difference}, self.fields))
        return rows

    def text(self, request: Request, results: Sequence[Result]) -> list[str]:
        """A line for each change, and how far apart runs are that differ by nothing but the seed."""
        rows = self.rows(request, results)
        columns = [
            "change",
            "settings",
            "MRR",
            "less the whole",
            "CPU minutes",
            "queries/s",
            "parameters",
            "why",
        ]
        lines = [
            _change_cells(change, [row for row in rows if row["change"] == change.name])
            for change in chosen(request)
        ]
        one, whole = results[0], [row["mrr"] for row in rows if row["change"] == WHOLE]
        return [
            table(columns, lines, words=("settings", "why")),
            f"MRR in percent on {one['scores']['queries']:,} validation questions of {one['dataset']}, the same for "
            "all, filtered; entities that tie share the mean of their places. Weights were chosen on validation, too, "
            "so that scores compare with each other alone. One thing is changed at a time, and all else is as in the "
            "whole model. "
            f"{length_note(request, results)} {seeds_note(request, with_paper=False)} {_spread_note(whole)} "
            "CPU minutes are of training with its validations.\n",
        ]


def _piece(request: Request, dataset: Dataset, seed: int, change: Change) -> Piece:
    whole = config_for(request, dataset, seed, model="strong")
    own = whole if change.model == "strong" else config_for(request, dataset, seed, model=change.model)
    settings = change.settings(whole)
    changed = with_overrides(own, settings)
    trained = changed if change.is_trained else own
    n_asked = min(2 * _ASKED, len(dataset.queries("valid")))
    seconds = training_seconds(request, dataset.name, 0, n_asked)
    if change.is_trained:
        seconds = planned_seconds(request, dataset, trained, n_asked)
    name = f"{dataset.name.lower()}-{change.name}-seed{seed}-valid"
    return Piece(name, seconds, partial(_train_and_ask, dataset, trained, changed, settings, change))


def _train_and_ask(
    dataset: Dataset,
    config: Config,
    asked: Config,
    settings: dict[str, Any],
    change: Change,
    workshop: Workshop,
) -> Result:
    run, length = workshop.trained_in_time(_run_of(dataset, config.run.seed, change), dataset, config)
    return {
        "dataset": dataset.name,
        "change": change.name,
        "settings": settings,
        **length,
        **workshop.evaluated(run, dataset, split="valid", horizon=asked.asking_horizon(), limit=_ASKED),
    }


def _run_of(dataset: Dataset, seed: int, change: Change) -> str:
    """The whole model and the paper's have the runs they have in the exhibit `strong`."""
    if change.name == "paper":
        return model_label(dataset, seed, "paper")
    if change.name == WHOLE or not change.is_trained:
        return model_label(dataset, seed, "strong")
    return run_label(dataset, seed, change.name)


def _change_cells(change: Change, rows: Sequence[dict[str, Any]]) -> list[str]:
    name = f"**{WHOLE}**" if change.name == WHOLE else change.name
    return [
        name,
        rows[0]["settings"] or "-",
        mean_std([row["mrr"] for row in rows]),
        "-" if change.name == WHOLE else mean_std([row["difference"] for row in rows], sign="+"),
        f"{mean(row['cpu_seconds'] for row in rows) / 60:.1f}",
        f"{mean(row['queries_per_s'] for row in rows):,.0f}",
        f"{rows[0]['parameters']:,}",
        change.reason,
    ]


def _spread_note(scores: Sequence[float]) -> str:
    """How far the whole model's runs are apart: differences below that are noise."""
    if len(scores) == 1:
        return "Without other seeds, differences of half a point say little."
    apart = 100 * (max(scores) - min(scores))
    return f"The runs of the whole model are {apart:.1f} points apart."


ABLATION = Ablation()
