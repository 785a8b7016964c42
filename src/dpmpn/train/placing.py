"""The model a run trains: refused where this machine cannot hold it, then made on the device of the run."""

from dpmpn.config import Config
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.memory import memory_budget
from dpmpn.engine.model import Model
from dpmpn.engine.settings import ModelSettings
from dpmpn.errors import ConfigError
from dpmpn.models import build_model

_BYTES_TO_TRAIN = 4 * 4  # of each value: itself, two moments and a gradient


def initial_model(graph: KnowledgeGraph, config: Config) -> Model:
    """A model with its initial values, on the device it is trained on."""
    _check_memory(graph, config.model)
    model = build_model(graph.n_entities, graph.n_relations, config.model, config.run.seed)
    return on_device(model, config.run.device)


def on_device(model: Model, device: str) -> Model:
    """The model on a device; one that is not there is refused."""
    try:
        return model.to(device)
    except (RuntimeError, AssertionError) as error:  # how PyTorch says that a device is not there
        reason = str(error).splitlines()[0]
        raise ConfigError(f"device '{device}' cannot be used here ({reason}); use --device cpu") from error


def _check_memory(graph: KnowledgeGraph, settings: ModelSettings) -> None:
    needed, machine = _BYTES_TO_TRAIN * settings.least_values(graph), 2 * memory_budget(0)
    if needed > machine:
        sizes, advice = settings.size_on(graph)
        raise ConfigError(
            f"{sizes} need {needed >> 30:,} GB to train, and this machine has {machine >> 30:,} GB; {advice}"
        )
