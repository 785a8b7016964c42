"""Metrics of a training, as it goes, in a tool that draws them: TensorBoard or MLflow."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from dpmpn.config import to_dict
from dpmpn.errors import ConfigError, RunError

if TYPE_CHECKING:
    from dpmpn.train.run_folder import RunFolder

EVENTS = "tensorboard"
"""The folder in a run's for what TensorBoard reads."""
_SECONDS_UNTIL_WRITTEN = 10

Track = Callable[[str, int, Mapping[str, Any]], None]
"""Takes the kind of a line of metrics, the position in the run and the line's values."""


def check_tracker(name: str | None) -> None:
    """Refuse before any work a tool that is not known or not installed."""
    if name is None:
        return
    if name not in _TRACKERS:
        raise ConfigError(f"metrics cannot be logged to {name!r}; choose {' or '.join(_TRACKERS)}")
    module, _ = _TRACKERS[name]
    if find_spec(module) is None:
        raise ConfigError(f"logging to {name} needs the extra '{name}': pip install 'dpmpn[{name}]'")


def tracked(name: str | None, run: "RunFolder", position: int) -> AbstractContextManager[Track]:
    """What takes the metrics of a training from a position on: the named tool, or nobody."""
    if name is None:
        return nullcontext(lambda kind, position, values: None)
    check_tracker(name)
    return _TRACKERS[name][1](run, position)


@contextmanager
def _tensorboard(run: "RunFolder", start: int) -> Iterator[Track]:
    writer_of = import_module("tensorboardX").SummaryWriter
    # A run that goes on from a checkpoint comes to some positions once more: what was written for them is dropped.
    # A file's name has the second it was begun in, which is not enough for sessions that follow at once.
    with writer_of(
        str(run.path / EVENTS),
        purge_step=start + 1,
        flush_secs=_SECONDS_UNTIL_WRITTEN,
        filename_suffix=f".{time.time_ns()}",
    ) as writer:

        def track(kind: str, position: int, values: Mapping[str, Any]) -> None:
            for name, value in _scalars(kind, values).items():
                writer.add_scalar(name, value, position)

        yield track


@contextmanager
def _mlflow(run: "RunFolder", start: int) -> Iterator[Track]:
    mlflow = import_module("mlflow")
    begun = mlflow.active_run()  # of the caller, who ends it
    try:
        with nullcontext(begun) if begun else mlflow.start_run(run_name=run.path.name) as active:
            if not begun and not active.data.params:  # MLFLOW_RUN_ID names one that has them already
                mlflow.log_params(
                    {key: value for s in to_dict(run.config).values() for key, value in s.items()}
                )
            yield lambda kind, position, values: mlflow.log_metrics(_scalars(kind, values), position)
    except mlflow.exceptions.MlflowException as error:
        raise RunError(
            f"cannot log to MLflow: {error}; what was trained is kept, go on with --resume"
        ) from error


_TRACKERS = {"tensorboard": ("tensorboardX", _tensorboard), "mlflow": ("mlflow", _mlflow)}


def _scalars(kind: str, values: Mapping[str, Any]) -> dict[str, float]:
    """The figures of a line by name, such as train/loss; ranks are the realistic ones."""
    flat = {**values, **values.get("realistic", {})}
    return {
        f"{kind}/{key}": value
        for key, value in flat.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
