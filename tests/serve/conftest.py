"""One tiny trained run, and a server of it that most tests share."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pages import browser, explorer, family, opened  # noqa: F401  # fixtures
from serving import Server, serving

import dpmpn

FACTS = [
    *((f"child{i}", "mother", f"mother{i}") for i in range(8)),
    *((f"mother{i}", "husband", f"father{i}") for i in range(8)),
    *((f"child{i}", "father", f"father{i}") for i in range(6)),
    ("a/b c", "mother", "<i>Zoë</i>"),
]
TINY = {
    "model": "paper",
    "n_dims": 6,
    "n_dims_att": 4,
    "n_steps_in_agnn": 3,
    "n_steps_in_ignn": 1,
    "batch_size": 10,
    "threads": 1,
}


@pytest.fixture(scope="session")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a trained run; a held-out test fact, no validation."""
    folder = tmp_path_factory.mktemp("served") / "run"
    dataset = dpmpn.dataset_from_tuples(FACTS, test=[("child7", "father", "father7")], name="family")
    dpmpn.Reasoner(**TINY, n_epochs=1).fit(dataset, folder)
    return folder


@pytest.fixture(scope="session")
def server(run_dir: Path) -> Iterator[Server]:
    with serving(run_dir) as running:
        yield running
