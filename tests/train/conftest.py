"""A small dataset and a small configuration, for runs of a second."""

import numpy as np
import pytest

from dpmpn.config import Config
from dpmpn.data.dataset import Dataset
from dpmpn.data.importer import dataset_from_tuples


def small_dataset(n_valid: int = 20) -> Dataset:
    rng = np.random.default_rng(4)
    facts = {
        (f"e{head}", f"r{relation}", f"e{(head * 3 + relation + jump) % 25}")
        for head in range(25)
        for relation in range(3)
        for jump in rng.integers(0, 6, 2)
    }
    facts = sorted(facts)
    rng.shuffle(facts)
    facts = [tuple(map(str, fact)) for fact in facts]
    return dataset_from_tuples(facts[n_valid + 10 :], facts[:n_valid], facts[n_valid : n_valid + 10], "small")


def small_config(**changes) -> Config:
    return Config().replace(
        **{
            "n_dims": 8,
            "n_dims_att": 4,
            "n_steps_in_agnn": 2,
            "max_sampling_per_step": 50,
            "batch_size": 7,
            "n_epochs": 1.5,
            "validate_every_queries": 100,
            "validation_queries": 12,
            "checkpoint_every_seconds": 0,
            "learning_rate": 0.01,
            "threads": 1,
            **changes,
        }
    )


@pytest.fixture(scope="session")
def dataset() -> Dataset:
    return small_dataset()


@pytest.fixture
def config() -> Config:
    return small_config()
