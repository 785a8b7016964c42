"""A model for any graph on disk: weights.safetensors, and weights.json with its settings and what it was trained on.

One comes with the package, by the name of `any-graph`.
"""

import json
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import IO, Any

from torch import Tensor

from dpmpn.config import Config, from_dict, to_dict
from dpmpn.engine.model import Model
from dpmpn.errors import ConfigError, RunError
from dpmpn.files import check_version, encoded, read_json, sha256_of, write_together
from dpmpn.models import build_model
from dpmpn.models.any_graph.settings import AnyGraphSettings
from dpmpn.train.tensors import read_tensors, write_tensors

ANY_GRAPH = AnyGraphSettings.name
WEIGHTS, ABOUT = "weights.safetensors", "weights.json"
FORMAT, VERSION = "dpmpn-any-graph", 1
_NETWORK = "network."
_ADVICE = "make it again with `dpmpn pretrain`, or reinstall the package if it came with it"


@dataclass(frozen=True, eq=False)
class Pretrained:
    """A model that belongs to no graph, the configuration it is asked with, and what is known of its making."""

    name: str
    model: Model
    config: Config
    card: dict[str, Any]
    sha256: str  # of the weights


def is_pretrained(folder: Path) -> bool:
    """Whether a folder holds such a model."""
    return (folder / ABOUT).is_file()


@cache
def shipped() -> Pretrained:
    """The model that comes with the package."""
    with resources.as_file(resources.files("dpmpn.models.any_graph")) as folder:
        return replace(load_pretrained(folder), name=ANY_GRAPH)


def load_pretrained(folder: Path) -> Pretrained:
    """The model of a folder; it is refused unless the weights are those that its card was written for."""
    path = folder / ABOUT
    values = read_json(path, _ADVICE)
    check_version(path, values, FORMAT, VERSION, _ADVICE, RunError)
    try:
        config = from_dict(values["config"])
    except (KeyError, TypeError, ConfigError) as error:
        raise RunError(f"{path}: {error}; {_ADVICE}") from error
    if config.model.name != ANY_GRAPH:
        raise RunError(f"{path}: the model is '{config.model.name}', which belongs to one graph; {_ADVICE}")
    if sha256_of(folder / WEIGHTS) != values.get("sha256"):
        raise RunError(f"{folder / WEIGHTS} is not the file that {path} was written for; {_ADVICE}")
    model = build_model(0, 0, config.model, config.run.seed)
    tensors = read_tensors(folder / WEIGHTS, _named(model), _ADVICE)
    model.load_state_dict({name.removeprefix(_NETWORK): x for name, x in tensors.items()})
    return Pretrained(folder.name, model, config, dict(values.get("card", {})), values["sha256"])


def write_pretrained(folder: Path, model: Model, config: Config, card: dict[str, Any]) -> None:
    """Write a model into a folder that is there, in the place of an older one; a folder with a card is whole."""
    about = {"format": FORMAT, "version": VERSION, "config": to_dict(config), "card": card}

    def write_weights(file: IO[bytes]) -> None:
        about["sha256"] = write_tensors(file, _named(model))

    def write_card(file: IO[bytes]) -> None:
        file.write(encoded(json.dumps(about, indent=2, ensure_ascii=False, allow_nan=False) + "\n"))

    files = {folder / WEIGHTS: write_weights, folder / ABOUT: write_card}
    write_together(files, instead_of=[folder / ABOUT])


def _named(model: Model) -> dict[str, Tensor]:
    return {_NETWORK + name: x for name, x in model.state_dict().items()}
