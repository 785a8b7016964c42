"""Every number a user can give has a smallest and a largest value: beyond them one line, within them an answer."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from one_line import Call, caller, is_refused
from typer.main import get_command

from dpmpn.cli.main import app
from dpmpn.config import Config, all_settings, from_dict, load_preset, to_dict
from dpmpn.errors import ConfigError, RunError
from dpmpn.models import MODELS
from dpmpn.reasoner.reasoner import Reasoner
from dpmpn.settings import MOST, Setting

NUMBERS = {"INT", "NUMBER", "P", "MINUTES"}  # what options that take one are shown with
IMPOSSIBLE = ["-1", "1" + 23 * "0", "1e308", "nan", "inf", 5000 * "9"]
HELD = [setting for setting in all_settings() if setting.bounds and setting.choices is None]
NUMERIC = [setting for setting in HELD if setting.type not in (str, str | None)]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    return caller(capsys)


def commands(command: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """Every command, and its options that take a number."""
    command = command or get_command(app)
    for name, sub in getattr(command, "commands", {}).items():
        yield from commands(sub, (*path, name))
    if not hasattr(command, "commands"):
        yield path, [option.opts[0] for option in command.params if option.metavar in NUMBERS]


WITH_NUMBERS = {path: options for path, options in commands() if options}


def arguments(path: tuple[str, ...], family: Path, trained: Path, out: Path) -> list[object]:
    """What a command needs besides its options."""
    question = {"predict": ["child0", "mother"], "explain": ["child0", "mother"]}
    if path[0] == "ask":
        return [family, "child0", "mother"]
    if path[0] in ("train", "pretrain", "inductive", "compare", "import", "start"):
        return [family, "--out", out]
    if path[0] == "reproduce":
        return ["growth", "--out", out]
    return [family if path[0] == "bench" else trained, *question.get(path[0], [])]


@pytest.mark.parametrize("path", WITH_NUMBERS, ids=" ".join)
def test_no_command_takes_a_number_beyond_all_bounds(
    call: Call, family: Path, trained_once: Path, tmp_path: Path, path: tuple[str, ...]
) -> None:
    given = arguments(path, family, trained_once, tmp_path / "out")
    for option in WITH_NUMBERS[path]:
        for value in IMPOSSIBLE:
            ended = call(*path, *given, f"{option}={value}")
            assert is_refused(ended, "must be a") and len(ended.err) < 300
            assert option in ended.err or option[2:].replace("-", "_") in ended.err
    assert not (tmp_path / "out").exists()


def test_every_command_that_takes_numbers_was_found() -> None:
    found = {" ".join(path): len(options) for path, options in WITH_NUMBERS.items()}
    assert set(found) == {
        *("train", "evaluate", "predict", "explain", "patterns", "complete", "serve", "explain-eval"),
        *("bench", "compare", "reproduce", "import", "inductive", "ask", "pretrain", "calibrate", "start"),
    }
    assert found["train"] > len(NUMERIC)


ASKING = ["--ask-attending-from-per-step", "--ask-sampling-per-node", "--ask-attending-to-per-step"]
LARGEST = [part for option in ASKING for part in (option, MOST)]
LARGEST += ["--ask-sampling-per-relation", MOST]
OF_MACHINE = ["--memory-budget-mb", MOST, "--seed", 2**63 - 1]


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("predict", ["child0", "mother", "--top", MOST, *OF_MACHINE]),
        ("explain", ["child0", "mother", *OF_MACHINE]),
        ("evaluate", ["--limit", MOST, *OF_MACHINE]),
        ("complete", ["--top", MOST, "--max-questions", MOST, *OF_MACHINE]),
        ("patterns", ["--sample", MOST, "--top", MOST, *OF_MACHINE]),
        ("explain-eval", ["--sample", MOST, "--kept-paths", MOST, "--seed", 2**63 - 1]),
    ],
)
def test_the_largest_numbers_are_answered(
    call: Call, trained: Path, command: str, options: list[object]
) -> None:
    ended = call(command, trained, *options, *LARGEST)
    assert ended.code == 0 and ended.err == "", ended


def owner_of(setting: Setting) -> str | None:
    """The model that alone has a setting, as its help says."""
    return next((model for model in MODELS if setting.help.startswith(f"{model}: ")), None)


@pytest.mark.parametrize("model", ["paper", "strong"])
def test_the_largest_settings_are_trained_with(call: Call, family: Path, tmp_path: Path, model: str) -> None:
    left_out = {"n_dims", "n_dims_att", "threads", "n_steps_in_agnn", "n_steps_in_ignn", "learning_rate"}
    of_other = {setting.key for setting in NUMERIC if owner_of(setting) not in (None, model)}
    given: list[object] = ["--model", model, "--n-dims", 4, "--threads", 1, "--n-steps-in-agnn", 3]
    for setting in NUMERIC:
        if setting.key not in left_out | of_other:
            given += ["--" + setting.key.replace("_", "-"), setting.bounds["at_most"]]
    given = [str(value) for value in given]
    ended = call("train", family, "--out", tmp_path / "run", *given, "--max-queries", 20)
    assert ended.code == 0, ended


def test_the_most_steps_take_a_moment(call: Call, family: Path, tmp_path: Path) -> None:
    given = ["--model", "paper", "--n-dims", 4, "--n-dims-att", 4, "--threads", 1]
    steps = ["--n-steps-in-agnn", 100, "--n-steps-in-ignn", 100]
    assert call("train", family, "--out", tmp_path / "run", *given, *steps, "--max-queries", 5).code == 0


def test_every_numeric_setting_has_both_ends() -> None:
    for setting in NUMERIC:
        bounds = setting.bounds
        assert bounds["at_most"] is not None, setting.key
        assert (bounds["at_least"] is None) != (bounds["above"] is None), setting.key


@pytest.mark.parametrize("number", range(9))
def test_settings_are_checked_wherever_they_come_from(number: int) -> None:
    value: Any = (10**23, -1, 10**5000, math.nan, math.inf, True, "x", [1], np.float64("nan"))[number]
    for setting in NUMERIC:
        model = owner_of(setting)
        owner = {} if model in (None, "paper") else {"model": model}
        with pytest.raises(ConfigError, match=f"'{setting.key}' must be a") as caught:
            Config().replace(**owner, **{setting.key: value})
        assert len(str(caught.value)) < 200
        if owner:
            continue
        values = to_dict(Config())
        values[setting.section][setting.key] = value
        with pytest.raises(ConfigError, match=f"'{setting.key}' must be a"):
            from_dict(values)
        with pytest.raises(ConfigError, match=f"'{setting.key}' must be a"):
            Reasoner(**{setting.key: value})


def test_a_file_of_settings_is_named(tmp_path: Path, trained: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(f"[model]\nn_steps_in_agnn = {10**9}\n")
    with pytest.raises(
        ConfigError, match=r"mine\.toml: 'n_steps_in_agnn' must be .* from 1 to 100, not 10{9}"
    ):
        load_preset(file)
    stored = json.loads((trained / "config.json").read_text())
    stored["model"]["n_steps_in_agnn"] = 10**9
    (trained / "config.json").write_text(json.dumps(stored))
    with pytest.raises(
        RunError, match=r"config\.json: 'n_steps_in_agnn' must be .* from 1 to 100, not 10{9}"
    ):
        Reasoner.load(trained)
    (trained / "config.json").write_text(json.dumps(stored).replace(str(10**9), 5000 * "9"))
    with pytest.raises(RunError, match=r"config\.json") as caught:
        Reasoner.load(trained)
    assert len(str(caught.value)) < 500
