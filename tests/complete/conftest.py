"""One trained run of the families that the tests of this folder share."""

from pathlib import Path

import pytest
from families import SETTINGS, families

import dpmpn


@pytest.fixture(scope="session")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("families") / "run"
    dpmpn.Reasoner(**SETTINGS).fit(families(with_labels=True), out)
    return out


@pytest.fixture(scope="session")
def reasoner(run_dir: Path) -> dpmpn.Reasoner:
    return dpmpn.Reasoner.load(run_dir)
