"""A model for any graph, tuned to one: it keeps its maps, gets tables of the graph's relations, and is trained on."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dpmpn.config import Config, with_overrides
from dpmpn.data.dataset import Dataset
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.model import Model
from dpmpn.engine.settings import ModelSettings
from dpmpn.errors import ConfigError
from dpmpn.models import check_memory, on_device
from dpmpn.models.any_graph.network import AnyGraphNetwork
from dpmpn.models.any_graph.settings import AnyGraphSettings
from dpmpn.suitable_config import suitable_config
from dpmpn.train.pretrained import ABOUT, ANY_GRAPH, Pretrained, is_pretrained, load_pretrained, shipped
from dpmpn.train.run_folder import RunFolder

_OF_WEIGHTS = ("n_dims", "n_steps_in_agnn", "n_relation_layers", "profiles", "gates")
"""Settings that the weights were trained for: the graph has no say in them."""
_LEARNING_RATE = 0.002


def start_named(name: str) -> Pretrained:
    """What training begins from: the model of the package, or one that `dpmpn pretrain` left in a folder."""
    folder = Path(name)
    if name == ANY_GRAPH:
        return shipped()
    if is_pretrained(folder):
        return load_pretrained(folder)
    advice = f"--from takes {ANY_GRAPH}, the model of the package, or a folder that `dpmpn pretrain` made"
    if RunFolder(folder).exists():
        raise ConfigError(f"{name} is a run, whose model belongs to its graph; {advice}")
    what = f"has no {ABOUT}" if folder.is_dir() else "is no folder" if folder.exists() else "is not there"
    raise ConfigError(f"{name} {what}; {advice}")


def tuned_config(
    dataset: Dataset, start: Pretrained, settings: Mapping[str, Any]
) -> tuple[Config, list[str]]:
    """What suits a dataset, at the sizes of the weights that training begins from, with settings that were given.

    And sentences that say why.
    """
    config, reasons = suitable_config(dataset, ANY_GRAPH)
    sizes = sizes_of(start)
    changed = {**sizes, "relation_network": "kept", "learning_rate": _LEARNING_RATE}
    config = with_overrides(with_overrides(config, changed), settings)
    check_sizes(start, config.model)
    others = [reason for reason in reasons if reason.split(" = ")[0] not in changed]
    own = [f"{key} = {value}: as in {start.name}, which training begins from" for key, value in sizes.items()]
    own.append("relation_network = kept: it knows what relations are, so that each is looked at once")
    own.append(
        f"learning_rate = {_LEARNING_RATE}: lower than from random numbers, so that what is known stays"
    )
    return config, own + others


def first_model(start: Pretrained, graph: KnowledgeGraph, config: Config) -> Model:
    """The model as training begins: it answers as the one for any graph does.

    In training, facts of a batch are hidden from edges and profiles, as from the stronger model, but not from the
    statistics of relations, which are of the whole graph: counting them anew for each batch would cost more than the
    batch, and one fact of many changes them little.
    """
    settings = config.model
    check_sizes(start, settings)
    check_memory(graph, settings)
    assert isinstance(start.model, AnyGraphNetwork) and isinstance(settings, AnyGraphSettings)
    return on_device(start.model.tuned_to(graph, settings), config.run.device)


def sizes_of(start: Pretrained) -> dict[str, Any]:
    """The settings that its weights were trained for."""
    return {key: value for key, value in asdict(start.config.model).items() if key in _OF_WEIGHTS}


def check_sizes(start: Pretrained, settings: ModelSettings) -> None:
    """Refuse settings that the weights do not fit."""
    if settings.name != ANY_GRAPH:
        raise ConfigError(
            f"training begins from a model '{ANY_GRAPH}', not '{settings.name}'; leave out --model"
        )
    before, now = asdict(start.config.model), asdict(settings)
    for key in _OF_WEIGHTS:
        if before[key] != now[key]:
            raise ConfigError(
                f"'{key}' is {before[key]} in the model that training begins from ({start.name}), and cannot become "
                f"{now[key]}; leave it out"
            )
    if "plain" in (before["relation_vectors"], now["relation_vectors"]):
        raise ConfigError(
            "'relation_vectors' cannot be 'plain' where training begins from a model: it has no such maps"
        )
