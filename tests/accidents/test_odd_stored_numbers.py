"""Numbers in the files of a run: whatever one of them is changed to, it is refused in a sentence or does no harm."""

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from accident_data import write_family

from dpmpn.data.importer import load_dataset
from dpmpn.errors import DpmpnError, RunError
from dpmpn.files import read_json, write_json
from dpmpn.reasoner.reasoner import Reasoner
from dpmpn.train.run_folder import RunFolder, run_path
from dpmpn.train.trainer import train

ODD = ["1" + 23 * "0", "NaN", "-1", "1e308", "Infinity", 5000 * "9", "1e999", "0.5", "-Infinity"]
MARK = '"the number to change"'


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with all its files."""
    path = tmp_path_factory.mktemp("stored") / "run"
    settings = {"model": "strong", "n_dims": 4, "n_steps_in_agnn": 2, "threads": 1, "batch_size": 20}
    dataset = load_dataset(write_family(path.with_name("family")))
    Reasoner(**settings).fit(dataset, path)
    return path


def numbers(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the numbers of a JSON value stand."""
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from numbers(each, (*place, key))
    elif type(value) in (int, float):
        yield place


def changed(text: str, place: tuple[Any, ...], number: str) -> str:
    """A JSON text with another number in one place."""
    values = json.loads(text)
    holder = values
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = json.loads(MARK)
    return json.dumps(values).replace(MARK, number)


def use(path: Path) -> None:
    """Ask, and go on training."""
    reasoner = Reasoner.load(path)
    assert 0 <= reasoner.predict("child7", "father")[0].score <= 1
    run = RunFolder.open(path)
    train(run, run.dataset(), run.config, resume=True, max_queries=1)


FILES = [
    "config.json",
    "dataset.json",
    "best.json",
    "checkpoint.json",
    "graph/manifest.json",
    "versions.json",
]


@pytest.mark.parametrize("name", FILES)
def test_one_number_is_another(once: Path, tmp_path: Path, name: str) -> None:
    path = shutil.copytree(once, tmp_path / "run")
    text = (path / name).read_text()
    for number, place in enumerate(numbers(json.loads(text))):
        if place[-1] in ("threads", "n_dims", "n_epochs"):
            continue  # what is allowed of them takes its time
        for odd in (ODD[number % len(ODD)], ODD[(number + 4) % len(ODD)]):
            shutil.rmtree(path)
            shutil.copytree(once, path)
            (path / name).write_text(changed(text, place, odd))
            with contextlib.suppress(DpmpnError):
                try:
                    use(path)
                except DpmpnError as error:
                    assert str(path) in str(error), (place, odd)
                    assert len(str(error)) < 500
                    raise
                except Exception as error:
                    pytest.fail(f"{name} {place} {odd:.30}: {error!r:.300}")


def test_calibrations_with_other_numbers_are_not_believed(tmp_path: Path) -> None:
    path = shutil.copytree(run_path("demo"), tmp_path / "run")
    file = path / "calibration.json"
    text = file.read_text()
    assert Reasoner.load(path).calibration is not None
    for number, place in list(enumerate(numbers(json.loads(text))))[::97]:
        file.write_text(changed(text, place, ODD[number % len(ODD)]))
        assert Reasoner.load(path).calibration is None


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_json_holds_numbers_that_are_finite(tmp_path: Path, number: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(f'{{"a": [{number}]}}')
    with pytest.raises(RunError, match=r"x\.json cannot be read .*not a finite number.*; copy it again"):
        read_json(path, "copy it again")
    with pytest.raises(ValueError, match="JSON compliant"):
        write_json(path, {"a": float(number)})
