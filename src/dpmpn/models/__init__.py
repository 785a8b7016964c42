"""The models, by name: a folder each, whose `settings` say what it can be told and whose `model` holds the rest."""

from importlib import import_module
from typing import TYPE_CHECKING

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.memory import memory_budget
from dpmpn.engine.settings import EngineConfig, ModelSettings
from dpmpn.errors import ConfigError
from dpmpn.models.any_graph.settings import AnyGraphSettings
from dpmpn.models.paper.settings import PaperSettings
from dpmpn.models.strong.settings import StrongSettings
from dpmpn.wording import memory

if TYPE_CHECKING:
    from dpmpn.engine.model import Model

MODELS: dict[str, type[ModelSettings]] = {
    "paper": PaperSettings,
    "strong": StrongSettings,
    "any-graph": AnyGraphSettings,
}
"""Adding a model is adding its folder, and a line here."""
_BYTES_TO_TRAIN = 4 * 4  # of each value: itself, two moments and a gradient


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


def initial_model(graph: KnowledgeGraph, config: EngineConfig) -> "Model":
    """A model with its initial values, on the device it is trained on."""
    check_memory(graph, config.model)
    model = build_model(graph.n_entities, graph.n_relations, config.model, config.run.seed)
    return on_device(model, config.run.device)


def on_device(model: "Model", device: str) -> "Model":
    """The model on a device; one that is not there is refused."""
    try:
        return model.to(device)
    except (RuntimeError, AssertionError) as error:  # how PyTorch says that a device is not there
        reason = str(error).splitlines()[0]
        raise ConfigError(f"device '{device}' cannot be used here ({reason}); use --device cpu") from error


def check_memory(graph: KnowledgeGraph, settings: ModelSettings) -> None:
    """Refuse to train a model whose parameters this machine cannot hold."""
    needed, machine = _BYTES_TO_TRAIN * settings.least_values(graph), 2 * memory_budget(0)
    if needed > machine:
        sizes, advice = settings.size_on(graph)
        raise ConfigError(
            f"{sizes} need {memory(needed)} to train, and this machine has {memory(machine)}; {advice}"
        )
