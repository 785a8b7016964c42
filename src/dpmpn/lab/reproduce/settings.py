"""Which dataset and settings a training of an exhibit has: the paper's, or small ones where it must be quick."""

from functools import lru_cache
from typing import Any

from dpmpn.config import Config, with_overrides
from dpmpn.data.dataset import Dataset
from dpmpn.data.importer import load_dataset
from dpmpn.lab.reproduce.exhibit import Request
from dpmpn.suitable_config import suitable_config

QUICK_DATASET = "countries"
SCALE_DATASET = "YAGO3-10-quarter"
"""A quarter of the training facts of YAGO3-10: shows speed and memory, not quality."""
LIMITS = {
    "max_attending_from_per_step": "N1",
    "max_sampling_per_node": "N2",
    "max_attending_to_per_step": "N3",
}
"""The limits of a horizon, and what the paper calls them."""
_QUICK = {
    "n_dims": 16,
    "n_dims_att": 8,
    "n_steps_in_agnn": 4,
    "n_epochs": 0.3,
    "validation_queries": 100,
    "max_attending_from_per_step": 10,
    "max_sampling_per_node": 20,
    "max_attending_to_per_step": 40,
}
# Training queries a second on two cores with the paper's settings (`dpmpn bench`, and the runs in benchmarks/results).
_RATES = {"WN18RR": 200, "WN18": 150, "FB15K-237": 110, "FB15K": 100, "YAGO3-10": 80, QUICK_DATASET: 800}
# Of graphs without a preset, a guess: only the time that is told depends on it.
_RATES |= {"NELL-995": 100, "UMLS": 100, "Kinship": 100, "Family": 150}
_NELL_RATE = 8
_EVALUATION_SPEED = 2.5  # times as many queries a second as training


@lru_cache(maxsize=2)  # exhibits go through their datasets one after the other
def dataset_named(name: str) -> Dataset:
    """A dataset, read once however many pieces ask for it."""
    return load_dataset(name)


def config_for(
    request: Request, dataset: Dataset, seed: int, *, kind: str = "paper", **settings: Any
) -> Config:
    """The settings of a dataset with those of the request and of an exhibit; quick ones are far smaller.

    `kind` is the model they are for, "paper" or "strong".
    """
    config, _ = suitable_config(dataset, kind)
    if request.quick:
        config = with_overrides(config, _QUICK)
    if request.epochs is not None:
        config = with_overrides(config, {"n_epochs": request.epochs})
    return with_overrides(config, {"seed": seed, **settings})


def training_seconds(request: Request, dataset_name: str, n_queries: float, n_test: int = 0) -> float:
    """About what training on so many queries and asking `n_test` takes on two cores."""
    rate = _RATES.get(dataset_name, _NELL_RATE)
    training = n_queries / rate
    if request.runs is not None:  # trained already
        training = 0.0
    if request.max_minutes is not None:
        training = min(training, 60 * request.max_minutes)
    return training + n_test / (_EVALUATION_SPEED * rate)
