"""Which settings suit a dataset: its preset, or what its graph's statistics say."""

import numpy as np

from dpmpn.config import Config, load_preset, preset_names
from dpmpn.data.dataset import Dataset
from dpmpn.data.graph import sorted_unique
from dpmpn.data.leakage import joined_pairs
from dpmpn.data.registry import find_dataset
from dpmpn.derived_config import derived_defaults


def suitable_config(dataset: Dataset, model: str | None = None) -> tuple[Config, list[str]]:
    """The preset of a known dataset, else settings derived from the graph; and sentences that say why.

    With a model, "paper" or "strong", the settings are for that one; the strong presets are named `<preset>-strong`.
    Without one, a dataset of the paper has the paper's model, and any other graph the strong one.
    """
    preset = _preset_of(dataset, "-strong" if model == "strong" else "")
    if preset is not None:
        return load_preset(preset), [f"preset {preset}"]
    model = model or "strong"
    graph = dataset.graph
    max_degree = int(np.diff(graph.offsets).max(initial=0))
    return derived_defaults(
        graph.n_entities,
        graph.n_edges,
        len(dataset.train),
        max_degree,
        joined_pairs(dataset),
        model,
        _tails_per_question(dataset) if model == "strong" else 1.0,
        graph.n_relations,
    )


def _preset_of(dataset: Dataset, ending: str) -> str | None:
    """Preset of a dataset of the registry; a folder that only shares its name does not count."""
    entry = find_dataset(dataset.name)
    folder = entry.folder() if entry is not None else None
    if entry is None or folder is None or dataset.folder is None or not folder.is_dir():
        return None
    if not dataset.folder.samefile(folder):
        return None
    name = (entry.preset or entry.name) + ending
    return name if name in preset_names() else None


def _tails_per_question(dataset: Dataset) -> float:
    """How many answers training states to one of its questions, on average."""
    heads, relations, _ = sorted_unique(
        dataset.queries("train"), dataset.graph.n_entities, dataset.graph.n_relations
    )
    is_new = (heads[1:] != heads[:-1]) | (relations[1:] != relations[:-1])
    return len(heads) / (1 + int(is_new.sum())) if len(heads) else 1.0
