"""Training from Python: facts of any kind, a run folder that may be temporary, and progress where somebody watches."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmpn.config import Config
from dpmpn.data.dataset import Dataset
from dpmpn.data.importer import dataset_from, load_dataset
from dpmpn.errors import ConfigError
from dpmpn.files.held import temporary_folder
from dpmpn.progress import meter_for_python
from dpmpn.train.trackers import EVENTS, check_tracker

if TYPE_CHECKING:
    from dpmpn.train.pretrained import Pretrained
    from dpmpn.train.run_folder import RunFolder
    from dpmpn.train.trainer import Progress


def dataset_of(facts: Any) -> Dataset:
    """The dataset that facts of any kind stand for."""
    if isinstance(facts, Dataset):
        return facts
    return load_dataset(facts) if isinstance(facts, str | Path) else dataset_from(facts)


def check_log(log_to: str | None, out: str | Path | None) -> None:
    """Refuse before any work a tool that cannot log, and one that would write into a folder that goes."""
    check_tracker(log_to)
    if log_to == EVENTS and out is None:
        raise ConfigError(
            f"log_to='{EVENTS}' writes into the run folder; name one: fit(facts, out='runs/mine')"
        )


def trained_run(
    dataset: Dataset,
    config: Config,
    start: "Pretrained | None",
    out: str | Path | None,
    progress: "Callable[[Progress], None] | bool | None",
    log_to: str | None,
) -> "tuple[RunFolder, tempfile.TemporaryDirectory[str] | None]":
    """A trained run, and the temporary folder that holds it where no folder is named."""
    from dpmpn.train.run_folder import RunFolder
    from dpmpn.train.trainer import train

    temporary = temporary_folder() if out is None else None
    run = RunFolder.create(
        Path(temporary.name, "run") if temporary else Path(str(out)), dataset, config, start
    )
    with meter_for_python("trained", shown=progress is True) as meter:
        told = progress if callable(progress) else meter.show_training
        train(run, dataset, config, progress=told, log_to=log_to)
    return run, temporary
