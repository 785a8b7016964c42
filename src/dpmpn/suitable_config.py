"""Which settings suit a dataset: its preset, or what its graph's statistics say."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from dpmpn.config import Config, load_preset, preset_names, with_overrides
from dpmpn.data.dataset import Dataset
from dpmpn.data.graph import sorted_unique
from dpmpn.data.leakage import joined_pairs
from dpmpn.data.registry import find_dataset
from dpmpn.engine.settings import Choice, GraphFacts
from dpmpn.models import MODELS
from dpmpn.models.paper.settings import PaperSettings
from dpmpn.models.strong.settings import StrongSettings

DEFAULT_MODEL = StrongSettings.name
"""What is trained on any dataset unless another model is named."""


def suitable_config(dataset: Dataset, model: str | None = None) -> tuple[Config, list[str]]:
    """The preset of a known dataset, else settings derived from the graph; and sentences that say why.

    They are for the model of that name, for the stronger one where none is given. Presets of the paper's model have
    the dataset's name, those of another are named `<preset>-<model>`.
    """
    model = model or DEFAULT_MODEL
    preset = _preset_of(dataset, model)
    if preset is not None:
        return load_preset(preset), [f"preset {preset}"]
    return derived_config(graph_facts(dataset), model)


def derived_config(facts: GraphFacts, model: str) -> tuple[Config, list[str]]:
    """Settings of a model for a graph without a preset, each with a sentence that says why."""
    chosen = [*MODELS[model].derived(facts), *_length(facts)]
    config = with_overrides(Config(), {"model": model, **{key: value for key, value, _ in chosen}})
    return config, [f"{key} = {_shown(value)}: {reason}" for key, value, reason in chosen]


def graph_facts(dataset: Dataset) -> GraphFacts:
    """The statistics of a dataset that settings follow from."""
    graph = dataset.graph
    return GraphFacts(
        n_entities=graph.n_entities,
        n_edges=graph.n_edges,
        n_train=len(dataset.train),
        max_degree=int(np.diff(graph.offsets).max(initial=0)),
        pme_valid=joined_pairs(dataset),
        tails_per_question=_tails_per_question(dataset),
        n_relations=graph.n_relations,
    )


def _preset_of(dataset: Dataset, model: str) -> str | None:
    """Preset of a dataset of the registry; a folder that only shares its name does not count."""
    entry = find_dataset(dataset.name)
    folder = entry.folder() if entry is not None else None
    if entry is None or folder is None or dataset.folder is None or not folder.is_dir():
        return None
    if not dataset.folder.samefile(folder):
        return None
    name = (entry.preset or entry.name) + ("" if model == PaperSettings.name else f"-{model}")
    return name if name in preset_names() else None


def _tails_per_question(dataset: Dataset) -> float:
    """How many answers training states to one of its questions, on average."""
    heads, relations, _ = sorted_unique(
        dataset.queries("train"), dataset.graph.n_entities, dataset.graph.n_relations
    )
    is_new = (heads[1:] != heads[:-1]) | (relations[1:] != relations[:-1])
    return len(heads) / (1 + int(is_new.sum())) if len(heads) else 1.0


def _length(facts: GraphFacts) -> Iterator[Choice]:
    """How long any model is trained, what is hidden from it, and when it is validated."""
    epochs = min(max(round(250_000 / max(2 * facts.n_train, 1)), 1), 30)
    shown = f"few, so they are shown {epochs} times" if epochs > 1 else "enough to be shown once"
    yield "n_epochs", epochs, f"{facts.n_train:,} training triples are {shown}"
    yield "leak_removal", "pairs" if facts.are_apart else "triples", _leak(facts)
    if epochs < 5:
        why = "epochs are long, so they are validated in between"
        yield "validate_every_queries", 50_000, why
        return
    yield "validate_every_queries", 0, "at the end of each epoch"
    if facts.pme_valid is not None:
        yield "patience", 5, f"training ends before {epochs} epochs if five in a row bring no improvement"


def _leak(facts: GraphFacts) -> str:
    if facts.pme_valid is None:
        return "there are no validation triples to show whether answers share a pair with other edges"
    joined = f"{facts.pme_valid:.1%} of the validation pairs are joined by a training triple"
    if facts.are_apart:
        return f"{joined}, as in FB15K-237, so such edges must not help in training"
    return f"{joined}, so such edges may help"


def _shown(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
