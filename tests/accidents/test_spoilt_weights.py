"""Weights that are not numbers, or too large: every command says so in one line; none shows what is no probability."""

import json
import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from accident_data import FACTS
from forked_cli import ForkedCli
from one_line import Call, caller, is_refused
from safetensors.torch import load_file
from torch import Tensor

from dpmpn.data.importer import dataset_from_tuples
from dpmpn.engine.engine import Engine
from dpmpn.engine.settings import STRATEGIES
from dpmpn.errors import Diverged, DpmpnError, RunError
from dpmpn.reasoner.reasoner import Reasoner
from dpmpn.train.run_folder import RunFolder
from dpmpn.train.tensors import write_tensors
from dpmpn.train.trainer import train

HELD_OUT = [("child6", "father", "father6")], [("child7", "father", "father7")]
QUESTION = "child7", "father"
COMMANDS = {
    "predict": ["predict", "RUN", *QUESTION],
    "predict why": ["predict", "RUN", *QUESTION, "--why"],
    "predict file": ["predict", "RUN", "--queries", "QUESTIONS", "--out", "ANSWERS"],
    "explain": ["explain", "RUN", *QUESTION],
    "explain why not": ["explain", "RUN", *QUESTION, "--why-not", "mother3"],
    "evaluate": ["evaluate", "RUN"],
    "explain-eval": ["explain-eval", "RUN"],
    "patterns": ["patterns", "RUN"],
    "complete": ["complete", "RUN"],
}


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    return caller(capsys)


@pytest.fixture(scope="module", params=["paper", "strong"])
def once(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained run; not to be changed."""
    path = tmp_path_factory.mktemp("spoilt") / "run"
    settings = {"n_dims": 6, "n_steps_in_agnn": 2, "threads": 1, "batch_size": 20, "weight_average": 0.9}
    dataset = dataset_from_tuples(FACTS, *HELD_OUT, "family")
    Reasoner(model=request.param, **settings).fit(dataset, path)
    return path


@pytest.fixture
def run(once: Path, tmp_path: Path) -> Path:
    return shutil.copytree(once, tmp_path / "run")


def rewrite(run: Path, kind: str, change: Callable[[dict[str, Tensor]], None]) -> None:
    """Change the tensors of a checkpoint, whose digest stays right."""
    manifest = json.loads((run / f"{kind}.json").read_text())
    path = run / manifest["file"]
    tensors = {name: tensor.clone() for name, tensor in load_file(path).items()}
    change(tensors)
    with path.open("wb") as file:
        manifest["sha256"] = write_tensors(file, tensors)
    manifest["bytes"] = path.stat().st_size
    (run / f"{kind}.json").write_text(json.dumps(manifest))


def spoil(run: Path, kind: str, value: float, prefix: str = "network.") -> str:
    """Put a value into the largest tensor of a checkpoint; the tensor's name."""
    name = ""

    def change(tensors: dict[str, Tensor]) -> None:
        nonlocal name
        name = max((n for n in tensors if n.startswith(prefix)), key=lambda n: tensors[n].numel())
        tensors[name].view(-1)[-1] = value

    rewrite(run, kind, change)
    return name


def scale(run: Path, kind: str, factor: float) -> None:
    """Make all weights so large."""

    def change(tensors: dict[str, Tensor]) -> None:
        tensors |= {name: x.sign() * factor for name, x in tensors.items() if name.startswith("network.")}

    rewrite(run, kind, change)


def command_line(run: Path, name: str) -> list[str]:
    questions = run.with_name("questions.csv")
    questions.write_text("head,relation\nchild7,father\n")
    places = {"RUN": str(run), "QUESTIONS": str(questions), "ANSWERS": str(run.with_name("answers.csv"))}
    return [places.get(word, word) for word in COMMANDS[name]]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_no_command_takes_weights_that_are_not_finite(run: Path, call: Call, value: float) -> None:
    name = spoil(run, "best", value)
    for command in COMMANDS:
        assert is_refused(call(*command_line(run, command)), run, f"'{name}'", "not finite", "best.json")


def test_a_server_does_not_start_with_them(run: Path, cli: ForkedCli) -> None:
    name = spoil(run, "best", math.nan)
    assert is_refused(cli.run("serve", run, "--port", 0), run, f"'{name}'", "not finite")


@pytest.mark.parametrize(
    "prefix", ["network.", "optimiser.first.", "optimiser.second.", "optimiser.average."]
)
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_no_training_goes_on_from_them(run: Path, prefix: str, value: float) -> None:
    name = spoil(run, "checkpoint", value, prefix)
    folder = RunFolder.open(run)
    with pytest.raises(Diverged, match=f"'{name}' has values that are not finite.*another --out"):
        train(folder, folder.dataset(), folder.config, resume=True)
    assert Reasoner.load(run).predict(*QUESTION)  # the best model is another file


def test_no_training_goes_on_from_weights_that_are_too_large(run: Path) -> None:
    scale(run, "checkpoint", 1e30)
    folder = RunFolder.open(run)
    with pytest.raises(Diverged, match=r"too large to compute with; train again.*lower --learning-rate"):
        train(folder, folder.dataset(), folder.config, resume=True)
    assert Reasoner.load(run).predict(*QUESTION)


@pytest.mark.parametrize(
    ("prefix", "value", "says"),
    [("optimiser.second.", -1.0, "negative"), ("optimiser.step_count", 2**62, "counts .* steps")],
)
def test_no_training_goes_on_from_a_state_that_none_leaves(
    run: Path, prefix: str, value: float, says: str
) -> None:
    spoil(run, "checkpoint", value, prefix)
    folder = RunFolder.open(run)
    with pytest.raises(RunError, match=says):
        train(folder, folder.dataset(), folder.config, resume=True)


@pytest.mark.parametrize("factor", [1e10, 1e20, 1e30, 3e38])
def test_huge_weights_give_probabilities_or_one_line(run: Path, call: Call, factor: float) -> None:
    scale(run, "best", factor)
    for command in COMMANDS:
        ended = call(*command_line(run, command))
        if ended.code:
            assert is_refused(ended, "weights are too large", "--learning-rate")
        assert "nan" not in ended.out.lower()


def test_probabilities_that_come_to_more_than_one_are_refused(run: Path) -> None:
    """Of logits of 1e30 the logarithm of their sum is 1e30, too, so that each has the probability 1."""
    engine = Reasoner.load(run).engine
    answer = engine.answer(engine.asking_batch([0, 1, 2], [0, 1, 0]))
    assert len(answer.nodes) > 3
    with pytest.raises(Diverged, match="weights are too large"):
        engine._checked(replace(answer, attention=torch.ones_like(answer.attention)))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("factor", [1e12, 1e38, math.inf, math.nan])
def test_both_paths_give_numbers_or_refuse(run: Path, strategy: str, factor: float) -> None:
    """Alone, traced, or by its definition: a number or a refusal."""
    reasoner = Reasoner.load(run)
    with torch.no_grad():
        for parameter in reasoner.engine.model.parameters():
            parameter.mul_(factor)
    config = reasoner.config.replace(strategy=strategy, threads=1, max_attending_to_per_step=2)
    heads, relations = [0, 1, 2], [0, 1, 0]
    for reference in (False, True):
        engine = Engine(reasoner.engine.model, reasoner.graph, config, reference)
        batch = engine.asking_batch(heads, relations)
        for ask in (engine.answer, lambda batch, engine=engine: engine.trace(batch)[0]):
            try:
                answer = ask(batch)
            except DpmpnError as error:
                assert isinstance(error, Diverged) and "lower --learning-rate" in str(error)
            else:
                assert torch.isfinite(answer.attention).all()


def test_workers_say_the_same(run: Path) -> None:
    reasoner = Reasoner.load(run, threads=2)
    with torch.no_grad():
        for parameter in reasoner.engine.model.parameters():
            parameter.fill_(math.nan)
    engine = reasoner.engine
    try:
        batch = engine.asking_batch(list(range(8)), [0] * 8)
        with pytest.raises(Diverged):
            engine.answer(batch)
    finally:
        engine.close()
