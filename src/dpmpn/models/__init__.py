"""The models, by name: a folder each, whose `settings` say what it can be told and whose `model` holds the rest."""

from importlib import import_module
from typing import TYPE_CHECKING

from dpmpn.engine.settings import ModelSettings
from dpmpn.models.paper.settings import PaperSettings
from dpmpn.models.strong.settings import StrongSettings

if TYPE_CHECKING:
    from dpmpn.engine.model import Model

MODELS: dict[str, type[ModelSettings]] = {
    "paper": PaperSettings,
    "strong": StrongSettings,
}
"""Adding a model is adding its folder, and a line here."""


def build_model(n_entities: int, n_relations: int, settings: ModelSettings, seed: int) -> "Model":
    """A model with initial values that depend on the seed alone."""
    import torch

    # The model stands beside its settings. Loaded here and not above: help texts need no torch, which takes a second.
    folder = type(settings).__module__.rpartition(".")[0]
    definition = import_module(f"{folder}.model").MODEL
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: Model = definition(n_entities, n_relations, settings)
        return model
