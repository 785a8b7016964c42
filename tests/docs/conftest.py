"""The site, built once; and a model of the bundled graph that all snippets share."""

import subprocess
import sys
from pathlib import Path

import pytest

import dpmpn

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs"))  # what is made from the code: _generators


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site, built as `make docs` does it: a warning is an error."""
    folder = tmp_path_factory.mktemp("site")
    options = ["-W", "--keep-going", "-E", "-q", "-b", "html", "-c", "docs", "-d", str(folder / "doctrees")]
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, ".", str(folder / "html")],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return folder / "html"


@pytest.fixture(scope="session")
def countries_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a model that was trained for a moment on the bundled graph."""
    folder = tmp_path_factory.mktemp("runs") / "countries"
    dpmpn.Reasoner("countries", n_epochs=0.2, threads=1).fit(dpmpn.load_dataset("countries"), folder)
    return folder
