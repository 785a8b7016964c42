"""Pre-training lowers the loss, leaves weights that can be asked, and comes to the same however it was broken off."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from small_graphs import small_graph, small_settings

from dpmpn.errors import Diverged, RunError
from dpmpn.pretrain import trainer
from dpmpn.pretrain.folder import adopt, begun_with, create
from dpmpn.pretrain.lanes import Lane
from dpmpn.pretrain.trainer import PretrainingResult, pretrain
from dpmpn.pretrain.validation import ValidationGraph
from dpmpn.train.pretrained import is_pretrained, load_pretrained

GRAPHS, HELD = [small_graph(12, 0), small_graph(40, 1)], [small_graph(15, 2)]
_TIMES = {"seconds", "cpu_seconds", "queries_per_s"}


class Killed(BaseException):
    """What nothing cleans up after."""


def run(
    folder: Path, go_on: bool = False, stop: Callable[[], bool] | None = None, **changes: str
) -> PretrainingResult:
    config, settings = small_settings(**changes)
    (adopt if go_on else create)(folder, GRAPHS, HELD, config, settings)
    return pretrain(folder, GRAPHS, HELD, config, settings, stop=stop or (lambda: False))


def log(folder: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key not in _TIMES} for line in lines]


def same(one: Path, other: Path) -> bool:
    tensors = [load_file(folder / "weights.safetensors") for folder in (one, other)]
    return log(one) == log(other) and all(torch.equal(tensors[0][n], tensors[1][n]) for n in tensors[0])


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pretrained") / "unbroken"
    assert run(folder).stopped_because == "complete"
    return folder


def test_the_loss_falls_and_unseen_graphs_are_answered_better(tmp_path: Path) -> None:
    # With seed 0, random weights happen to answer nearly all of these questions.
    form = {"seed": "1", "validation_facts": "30"}
    untrained = run(tmp_path / "untrained", questions="1", learning_rate="1e-9", **form).validation
    result = run(tmp_path / "out", questions="1000", validate_every="250", learning_rate="0.01", **form)
    lines = log(tmp_path / "out")
    losses = [line["loss"] for line in lines if line["kind"] == "train"]
    assert losses[-1] < 0.7 * losses[0]
    mrrs = [line["mean"]["mrr"] for line in lines if line["kind"] == "validation"]
    assert untrained is not None and mrrs[-1] > untrained["mean"]["mrr"] + 0.3 and mrrs[-1] > 0.8
    assert result.validation is not None and result.best is not None
    assert result.validation["mean"]["mrr"] == mrrs[-1]
    assert result.best["mrr"] == max(mrrs)


def test_what_is_left_is_a_model_that_can_be_asked(unbroken: Path) -> None:
    assert is_pretrained(unbroken)
    found = load_pretrained(unbroken)
    assert found.config.model.relation_network == "kept"  # type: ignore[attr-defined]
    made = found.card
    assert made["questions"] >= 200 and made["seed"] == 0 and made["cpu_seconds"] > 0
    assert [(graph["name"], graph["facts"]) for graph in made["graphs"]] == [
        (graph.name, len(graph.facts.triples)) for graph in GRAPHS
    ]
    text = (unbroken / "MODEL_CARD.md").read_text()
    assert all(graph.name in text for graph in (*GRAPHS, *HELD))
    assert f"{made['validation']['mean']['mrr']:.3f}" in text


def test_the_average_is_kept(unbroken: Path) -> None:
    checkpoint = load_file(next(unbroken.glob("checkpoint-*.safetensors")))
    for name, weights in load_file(unbroken / "weights.safetensors").items():
        average = checkpoint["optimiser.average." + name.removeprefix("network.")]
        assert torch.equal(weights, average)


@pytest.mark.parametrize("updates", [1, 4, 9])
def test_interrupted_and_resumed_it_comes_to_the_same(unbroken: Path, tmp_path: Path, updates: int) -> None:
    calls = iter(range(100))
    assert run(tmp_path / "out", stop=lambda: next(calls) == updates).stopped_because == "interrupted"
    assert run(tmp_path / "out", go_on=True).stopped_because == "complete"
    assert same(tmp_path / "out", unbroken)


@pytest.mark.parametrize("saved_every", ["0", "1000"])
def test_killed_at_any_update_it_comes_to_the_same(unbroken: Path, tmp_path: Path, saved_every: str) -> None:
    sessions = 0
    while True:
        calls = iter(range(100))

        def stop(calls: Any = calls) -> bool:
            if next(calls) == 5:
                raise Killed
            return False

        try:
            run(
                tmp_path / "out",
                go_on=sessions > 0,
                stop=stop if saved_every == "0" or sessions < 2 else None,
                checkpoint_every_seconds=saved_every,
            )
            break
        except Killed:
            sessions += 1
    assert sessions >= 2
    assert same(tmp_path / "out", unbroken)


def test_the_number_of_processes_changes_nothing(unbroken: Path, tmp_path: Path) -> None:
    run(tmp_path / "out", threads="2")
    assert same(tmp_path / "out", unbroken)


def test_one_that_has_ended_stays_as_it_is(unbroken: Path, tmp_path: Path) -> None:
    run(tmp_path / "out")
    before = log(tmp_path / "out")
    assert run(tmp_path / "out", go_on=True).stopped_because == "complete"
    assert log(tmp_path / "out") == before and same(tmp_path / "out", unbroken)


def test_minutes_end_it_with_weights(tmp_path: Path) -> None:
    config, settings = small_settings()
    create(tmp_path / "out", GRAPHS, [], config, settings)
    result = pretrain(tmp_path / "out", GRAPHS, [], config, settings, max_minutes=1e-6)
    assert result.stopped_because == "max_minutes" and result.position < 200
    assert load_pretrained(tmp_path / "out").card["questions"] == result.position
    assert "No graph was given to validate on" in (tmp_path / "out" / "MODEL_CARD.md").read_text()


def test_it_begins_with_the_weights_of_another(unbroken: Path, tmp_path: Path) -> None:
    """Also where it was killed before its first checkpoint, and after those are gone."""
    first, out = tmp_path / "first", tmp_path / "out"
    shutil.copytree(unbroken, first)
    config, settings = small_settings(questions="1", learning_rate="1e-9")
    create(out, GRAPHS, HELD, config, settings, load_pretrained(first))
    shutil.rmtree(first)
    pretrain(out, GRAPHS, HELD, config, settings)
    began, ended = (load_pretrained(folder) for folder in (unbroken, out))
    for name, weights in ended.model.state_dict().items():
        torch.testing.assert_close(weights, began.model.state_dict()[name], rtol=0, atol=1e-6)
    assert ended.card["start"]["sha256"] == began.sha256
    assert ended.card["start"]["card"]["questions"] == began.card["questions"]
    text = (out / "MODEL_CARD.md").read_text()
    assert f"had seen {began.card['questions']:,} questions on families-0, families-1" in text


def test_begun_with_others_and_resumed_it_comes_to_the_same(unbroken: Path, tmp_path: Path) -> None:
    config, settings = small_settings(seed="3")
    results = []
    for name, stops_at in (("whole", 100), ("broken", 3)):
        folder, calls = tmp_path / name, iter(range(1000))
        create(folder, GRAPHS, HELD, config, settings, load_pretrained(unbroken))
        pretrain(folder, GRAPHS, HELD, config, settings, stop=lambda c=calls, n=stops_at: next(c) == n)
        adopt(folder, GRAPHS, HELD, config, settings)
        pretrain(folder, GRAPHS, HELD, config, settings)
        results.append(folder)
    assert same(*results)


def test_a_folder_is_not_begun_twice(unbroken: Path) -> None:
    with pytest.raises(RunError, match="--resume"):
        create(unbroken, GRAPHS, HELD, *small_settings())


def test_other_graphs_and_settings_are_refused(unbroken: Path) -> None:
    config, settings = begun_with(unbroken)
    assert (config, settings) == small_settings()
    with pytest.raises(RunError, match="families-0, families-1 then, families-1 now"):
        adopt(unbroken, GRAPHS[1:], HELD, config, settings)
    with pytest.raises(RunError, match="validated on other graphs"):
        adopt(unbroken, GRAPHS, [], config, settings)
    with pytest.raises(RunError, match="seed = 0, which cannot become 4"):
        adopt(unbroken, GRAPHS, HELD, config.replace(seed=4), settings)
    with pytest.raises(RunError, match=r"hide_pairs = 0\.05, which cannot become 0\.5"):
        adopt(unbroken, GRAPHS, HELD, *small_settings(hide_pairs="0.5"))


def test_what_may_change_is_written_down(tmp_path: Path) -> None:
    create(tmp_path / "out", GRAPHS, HELD, *small_settings())
    changed = small_settings(questions="300", threads="2")
    adopt(tmp_path / "out", GRAPHS, HELD, *changed)
    assert begun_with(tmp_path / "out") == changed


def test_a_loss_that_is_no_number_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(trainer.Team):
        def update(self, step: int) -> list[Any]:
            results = super().update(step)
            if step == 3:
                results[0].gradients.shared[0] = torch.nan
            return results

    monkeypatch.setattr(trainer, "Team", Broken)
    with pytest.raises(Diverged, match=r"families-\d.*last checkpoint is intact.*--learning-rate"):
        run(tmp_path / "out")
    monkeypatch.undo()
    run(tmp_path / "out", go_on=True, learning_rate="0.001")
    assert is_pretrained(tmp_path / "out")


@pytest.mark.parametrize("where", [Lane, ValidationGraph])
def test_weights_that_are_too_large_end_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: type
) -> None:
    def softmax_of_nothing(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(where, "gradients" if where is Lane else "summary", softmax_of_nothing)
    with pytest.raises(Diverged, match=r"after \d+ questions.*too large to compute with.*--learning-rate"):
        run(tmp_path / "out")


@pytest.mark.parametrize(
    ("key", "value"), [("places", [[[0, 0]]]), ("places", None), ("position", -1), ("lines", "3")]
)
def test_a_broken_checkpoint_is_refused(tmp_path: Path, key: str, value: Any) -> None:
    config, settings = small_settings()
    create(tmp_path / "out", GRAPHS, HELD, config, settings)
    pretrain(tmp_path / "out", GRAPHS, HELD, config, settings, max_minutes=1e-6)
    path = tmp_path / "out" / "checkpoint.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))
    with pytest.raises(RunError, match=f"{path}.*'{key}'"):
        run(tmp_path / "out", go_on=True)
