"""Who takes part in a comparison, by name: this project's own models first, then the embedding models asked for."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from dpmpn.config import Config, to_dict
from dpmpn.data.dataset import Dataset
from dpmpn.errors import ConfigError
from dpmpn.lab.compare.settings import EMBEDDING_MODELS
from dpmpn.suitable_config import suitable_config

if TYPE_CHECKING:
    from dpmpn.lab.compare.contestant import Contestant


@dataclass(frozen=True)
class Entrant:
    """A model by name: how it is shown, what it is trained with and how it is made."""

    name: str
    label: str
    is_own: bool
    settings: dict[str, Any]
    make: "Callable[[], Contestant]"


OWN_MODELS = {"dpmpn": ("DPMPN", "paper"), "strong": ("dpmpn strong", "strong")}
"""This project's models, which always take part: how each is shown, and the model it is."""


def embedding_label(name: str) -> str:
    """How an embedding model is called in tables."""
    return EMBEDDING_MODELS[name].pykeen_model + ("-N3" if name.endswith("-n3") else "")


def chosen_models(names: Sequence[str]) -> list[str]:
    """The embedding models of a list, each once; refuse unknown names."""
    chosen = list(dict.fromkeys(name.strip().lower() for name in names if name.strip()))
    for name in chosen:
        if name not in EMBEDDING_MODELS and name not in OWN_MODELS:
            known = ", ".join(EMBEDDING_MODELS)
            raise ConfigError(f"unknown model '{name}' in --models; there are {known}")
    return [name for name in chosen if name in EMBEDDING_MODELS]


def entrants(
    dataset: Dataset, names: Sequence[str], seed: int, threads: int, budget_minutes: float
) -> list[Entrant]:
    """All that take part."""
    own = []
    for name, (label, kind) in OWN_MODELS.items():
        config = suitable_config(dataset, kind)[0].replace(seed=seed, threads=threads)
        own.append(_own(name, label, dataset, config, budget_minutes))
    return [*own, *(_embedding(name, dataset, seed, threads) for name in chosen_models(names))]


def _own(name: str, label: str, dataset: Dataset, config: Config, budget_minutes: float) -> Entrant:
    def make() -> "Contestant":
        from dpmpn.lab.compare.own import OwnModel

        return OwnModel(dataset, config, 60 * budget_minutes)

    settings = to_dict(config)
    for key in ("n_epochs", "validate_every_queries", "validation_queries", "patience"):
        del settings["training"][key]  # the budget and its validations stand in their place
    return Entrant(name, label, True, settings, make)


def _embedding(name: str, dataset: Dataset, seed: int, threads: int) -> Entrant:
    settings = EMBEDDING_MODELS[name].suited_to(dataset.name, dataset.graph.n_entities)

    def make() -> "Contestant":
        from dpmpn.lab.compare.embedding import EmbeddingModel

        return EmbeddingModel(dataset, settings, seed, threads)

    told = {key: value for key, value in asdict(settings).items() if key not in ("on_small", "published_n3")}
    return Entrant(name, embedding_label(name), False, told, make)
