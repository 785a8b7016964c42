"""A process to fork commands from, a tiny folder of triples and a run trained on it."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from accident_data import SETTINGS, write_family
from forked_cli import ForkedCli


@pytest.fixture(scope="session")
def cli() -> Iterator[ForkedCli]:
    with ForkedCli() as forked:
        yield forked


@pytest.fixture(scope="session")
def family(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_family(tmp_path_factory.mktemp("accidents") / "family")


@pytest.fixture(scope="session")
def trained_once(cli: ForkedCli, family: Path) -> Path:
    """A run of 20 of 44 queries; not to be changed."""
    out = family.parent / "trained"
    ended = cli.run("train", family, "--out", out, *SETTINGS, "--max-queries", 20)
    assert ended.code == 0, ended
    return out


@pytest.fixture
def trained(trained_once: Path, tmp_path: Path) -> Path:
    """A run of its own for each test."""
    return shutil.copytree(trained_once, tmp_path / "run")
