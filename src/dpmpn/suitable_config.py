"""Which settings suit a dataset: its preset, or what its graph's statistics say."""

import numpy as np

from dpmpn.config import Config, derived_defaults, load_preset, preset_names
from dpmpn.data.dataset import Dataset
from dpmpn.data.measures.leakage import joined_pairs
from dpmpn.data.registry import find_dataset


def suitable_config(dataset: Dataset) -> tuple[Config, list[str]]:
    """The preset of a known dataset, else settings derived from the graph; and sentences that say why."""
    preset = _preset_of(dataset)
    if preset is not None:
        return load_preset(preset), [f"preset {preset}"]
    graph = dataset.graph
    max_degree = int(np.diff(graph.offsets).max(initial=0))
    return derived_defaults(
        graph.n_entities, graph.n_edges, len(dataset.train), max_degree, joined_pairs(dataset)
    )


def _preset_of(dataset: Dataset) -> str | None:
    """Preset of a dataset of the registry; a folder that only shares its name does not count."""
    entry = find_dataset(dataset.name)
    folder = entry.folder() if entry is not None else None
    if entry is None or folder is None or dataset.folder is None or not folder.is_dir():
        return None
    if not dataset.folder.samefile(folder):
        return None
    return entry.preset or (entry.name if entry.name in preset_names() else None)
