"""The run folder that `dpmpn start` keeps for some facts: made when they are first read, found again later."""

from collections.abc import Callable, Sequence
from pathlib import Path

from dpmpn.data.dataset import Dataset, run_name
from dpmpn.data.importer import files_of, load_dataset, read_dataset
from dpmpn.data.sources.base import ReadOptions
from dpmpn.data.sources.formats import is_source, open_sources
from dpmpn.errors import DataError, RunError
from dpmpn.files import put_in_place, read_json, sha256_of
from dpmpn.train.pretrained import shipped
from dpmpn.train.run_folder import SOURCES, RunFolder
from dpmpn.train.tuning import tuned_config

_SUFFIX = ".dpmpn"
Say = Callable[[str], None]


def folder_for(facts: Sequence[str]) -> Path:
    """Where the run of some facts is kept: beside the first file or folder, or here if a dataset is named."""
    first = Path(facts[0])
    return (first.parent if first.exists() else Path()) / f"{run_name(facts[0])}{_SUFFIX}"


def run_of(facts: Sequence[str], folder: Path, say: Say) -> RunFolder:
    """The run of some facts: the one that is there, if it was made of the same; otherwise a new one."""
    sources = _digests(facts)
    run = RunFolder(folder)
    if run.exists():
        if not (folder / SOURCES).exists():
            raise RunError(
                f"{folder} is a run that `dpmpn start` did not make; choose another --out, or open it with "
                f"`dpmpn serve {folder}`"
            )
        if read_json(folder / SOURCES, "choose another --out, or remove the folder") == sources:
            say(f"these facts were read before: continuing with {folder}")
            return RunFolder.open(folder)
        moved = _free_name(folder)
        put_in_place(folder, moved)
        say(f"the facts have changed since {folder} was made: starting over; the old folder is now {moved}")
    dataset = _read(facts, folder.name.removesuffix(_SUFFIX), say)
    config, _ = tuned_config(dataset, shipped(), {})
    return RunFolder.create(folder, dataset, config, shipped(), sources)


def _read(facts: Sequence[str], name: str, say: Say) -> Dataset:
    """The facts, some of them held out for validation and test."""
    if len(facts) == 1:
        return load_dataset(facts[0], say)
    dataset, report = read_dataset({"train": open_sources(list(facts), ReadOptions())}, name=name)
    say(f"{len(facts)} files: {report['split']}")
    return dataset


def _digests(facts: Sequence[str]) -> dict[str, str]:
    """The files that facts stand in, by name, with their SHA-256; of several, each must be a file or an address."""
    for each in facts[1:] and facts:
        if not is_source(each):
            raise DataError(
                f"{each}: with several FACTS each must be a file; give a folder or a dataset alone"
            )
    files = [file for each in facts for file in files_of(each) if file.is_file()]
    return {str(file.absolute()): sha256_of(file) for file in files}


def _free_name(folder: Path) -> Path:
    """The first name of an older folder that is free."""
    number = 1
    while (older := folder.with_name(f"{folder.name}.{number}")).exists():
        number += 1
    return older
