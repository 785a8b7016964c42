"""Metrics of a training in TensorBoard and MLflow are those of the run's own file."""

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dpmpn.config import Config
from dpmpn.data.dataset import Dataset
from dpmpn.errors import ConfigError, RunError
from dpmpn.reasoner.reasoner import Reasoner
from dpmpn.train import trackers
from dpmpn.train.run_folder import RunFolder
from dpmpn.train.trainer import train

Points = dict[str, list[tuple[int, float]]]


def in_the_run(run: RunFolder) -> Points:
    """What the run's own file says of loss, speed and validations."""
    found: Points = {"train/loss": [], "train/queries_per_s": [], "validation/mrr": []}
    for line in map(json.loads, run.metrics.read_text().splitlines()):
        for key in ("loss", "queries_per_s", "mrr"):
            if key in line:
                found[f"{line['kind']}/{key}"].append((line["position"], pytest.approx(line[key])))
    return found


def in_tensorboard(run: RunFolder) -> Points:
    """Everything that TensorBoard shows of a run: a session that goes on drops what came after its start."""
    found: Points = {}
    for file in sorted((run.path / trackers.EVENTS).iterdir()):
        for event in _events(file):
            if event.HasField("session_log"):
                found = {name: [p for p in points if p[0] < event.step] for name, points in found.items()}
            for value in event.summary.value:
                found.setdefault(value.tag, []).append((event.step, value.simple_value))
    return found


def _events(file: Path) -> Iterator[Any]:
    """The events of a file: each has its length before it, with a checksum of four bytes, and one behind it."""
    from tensorboardX.proto.event_pb2 import Event

    data = file.read_bytes()
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        yield Event.FromString(data[12 : 12 + length])
        data = data[16 + length :]


def test_tensorboard_gets_what_the_run_has_also_after_a_resume(
    dataset: Dataset, config: Config, tmp_path: Path
) -> None:
    pytest.importorskip("tensorboardX", reason="the extra 'tensorboard' is not installed")
    run = RunFolder.create(tmp_path / "run", dataset, config)
    train(run, dataset, config, max_queries=150, log_to="tensorboard")
    train(run, dataset, config, resume=True, log_to="tensorboard")
    shown, own = in_tensorboard(run), in_the_run(run)
    assert len(own["train/loss"]) > 2 and len(own["validation/mrr"]) > 1
    assert {name: shown[name] for name in own} == own
    assert {"validation/hits_at_1", "validation/hits_at_10", "train/reached"} < shown.keys()


def test_positions_that_a_crash_lost_are_not_shown_twice(
    dataset: Dataset, config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tensorboardX", reason="the extra 'tensorboard' is not installed")
    config = config.replace(checkpoint_every_seconds=3600)
    run = RunFolder.create(tmp_path / "run", dataset, config)
    train(run, dataset, config, max_queries=70, log_to="tensorboard")

    def crash(self: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken, pytest.raises(KeyboardInterrupt):
        broken.setattr("dpmpn.train.trainer._Loop._checkpoint", crash)
        train(run, dataset, config, resume=True, log_to="tensorboard")
    train(run, dataset, config, resume=True, log_to="tensorboard")
    steps = [step for step, _ in in_tensorboard(run)["train/loss"]]
    assert steps == [step for step, _ in in_the_run(run)["train/loss"]]


def test_mlflow_gets_what_the_run_has(
    dataset: Dataset, config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlflow = pytest.importorskip("mlflow", reason="the extra 'mlflow' is not installed: it needs 20 packages")
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/mlflow.db")
    run = RunFolder.create(tmp_path / "tried", dataset, config)
    train(run, dataset, config, log_to="mlflow")
    client = mlflow.MlflowClient()
    (logged,) = client.search_runs(["0"])
    assert (logged.info.run_name, logged.info.status) == ("tried", "FINISHED")
    assert logged.data.params["n_dims"] == "8"
    own = in_the_run(run)
    shown = {
        name: [(m.step, m.value) for m in client.get_metric_history(logged.info.run_id, name)] for name in own
    }
    assert shown == own
    with mlflow.start_run(run_name="of the caller") as outer:
        Reasoner(config).fit(dataset, log_to="mlflow", progress=False)
        assert mlflow.active_run().info.run_id == outer.info.run_id
    assert client.get_run(outer.info.run_id).data.metrics["validation/mrr"] > 0


def test_a_server_that_cannot_be_reached(
    dataset: Dataset, config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlflow = pytest.importorskip("mlflow", reason="the extra 'mlflow' is not installed: it needs 20 packages")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    mlflow.set_tracking_uri("http://127.0.0.1:9")
    run = RunFolder.create(tmp_path / "run", dataset, config)
    with pytest.raises(RunError, match=r"cannot log to MLflow: .*--resume"):
        train(run, dataset, config, log_to="mlflow")
    assert train(run, dataset, config, resume=True, max_queries=7).position == 7


@pytest.mark.parametrize("name", ["tensorboard", "mlflow"])
def test_a_missing_extra_is_named_before_any_work(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(trackers, "find_spec", lambda module: None)
    with pytest.raises(ConfigError, match=rf"pip install 'dpmpn\[{name}\]'"):
        Reasoner().fit(dataset, out=tmp_path / "run", log_to=name)
    assert not (tmp_path / "run").exists()


def test_a_tool_that_is_not_known(dataset: Dataset, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="choose tensorboard or mlflow"):
        Reasoner().fit(dataset, log_to="paper")


def test_tensorboard_needs_a_folder_that_stays(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trackers, "find_spec", lambda module: module)
    with pytest.raises(ConfigError, match=r"out="):
        Reasoner().fit(dataset, log_to="tensorboard")
