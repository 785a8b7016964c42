"""A tiny dataset in which one entity and one relation direction are never trained on."""

import pytest

from dpmpn.data.dataset import Dataset
from dpmpn.data.importer import dataset_from_tuples

PEOPLE = 12


@pytest.fixture(scope="session")
def families() -> Dataset:
    train = [(f"child{i}", "mother", f"mother{i}") for i in range(PEOPLE)]
    train += [(f"mother{i}", "husband", f"father{i}") for i in range(PEOPLE)]
    train += [(f"child{i}", "father", f"father{i}") for i in range(PEOPLE - 4)]
    held_out = [(f"child{i}", "father", f"father{i}") for i in range(PEOPLE - 4, PEOPLE)]
    return dataset_from_tuples(
        train, held_out[:2], [*held_out[2:], ("child0", "father", "nobody knows")], "families"
    )
