"""The folder of a run: configuration, graph, triples, versions, metrics and weights, complete in itself.

config.json      the resolved configuration; a folder that has it is a run
dataset.json     with graph/ and triples/: the dataset (see `data.dataset`)
versions.json    what wrote the run, and what it began from
start/           the model for any graph that training begins from, where it does (see `train.pretrained`)
sources.json     the files that `dpmpn start` read, with their SHA-256
metrics.jsonl    one line per stretch of training and per validation
checkpoint.json  the last checkpoint, with its checkpoint-*.safetensors
best.json        the best model, with its best-*.safetensors
"""

import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from dpmpn.config import Config, from_dict, to_dict
from dpmpn.data import storage
from dpmpn.data.dataset import GRAPH, MANIFEST, TRIPLES, Dataset, open_dataset, write_dataset
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.model import Model
from dpmpn.errors import ConfigError, DataError, RunError
from dpmpn.files import (
    append,
    new_file,
    new_folder,
    open_file,
    read_json,
    sha256_of,
    sync,
    whole_folder,
    write_json,
    write_whole,
)
from dpmpn.files.held import is_own
from dpmpn.models import build_model
from dpmpn.provenance import versions
from dpmpn.train.checkpoint import check_size, has_checkpoint, load_network
from dpmpn.train.pretrained import ABOUT, Pretrained, load_pretrained, write_pretrained

CONFIG, VERSIONS, METRICS, START = "config.json", "versions.json", "metrics.jsonl", "start"
SOURCES = "sources.json"
DEMO = "demo"
"""The run that comes with the package, of the stronger model on the bundled graph; `./demo` is a folder."""
_SHIPPED = Path(__file__).parent.parent / DEMO
_COPY_AGAIN = "copy the run folder again, or train again with another --out"


def run_path(name: str | Path) -> Path:
    """The folder that a person means: the one of that name or, where there is none, the shipped run's for `demo`."""
    return _SHIPPED if name == DEMO and not Path(name).exists() else Path(name)


class RunFolder:
    """A run on disk; make one with `create`, or `open` an existing one."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @classmethod
    def create(
        cls,
        path: str | Path,
        dataset: Dataset,
        config: Config,
        start: Pretrained | None = None,
        sources: Mapping[str, str] | None = None,
    ) -> "RunFolder":
        """Make the folder of a new run, and keep in it what it begins from; refuse one that holds anything.

        `sources` are the files its facts were read from, with their SHA-256.
        """
        run = cls(path)
        if run.exists():
            raise RunError(f"{run.path} already holds a run; continue with --resume or choose another --out")
        with whole_folder(run.path) as folder:
            write_dataset(dataset, folder)
            began = {} if start is None else {"start": start.name, "start_sha256": start.sha256}
            write_json(folder / VERSIONS, versions() | began)
            if start is not None:
                write_pretrained(new_folder(folder / START), start.model, start.config, start.card)
            if sources is not None:
                write_json(folder / SOURCES, dict(sources))
            write_json(folder / CONFIG, to_dict(config))
            with new_file(folder / METRICS):
                pass  # no lines yet
        return run

    @classmethod
    def open(cls, path: str | Path) -> "RunFolder":
        """Open the folder of a run, whatever machine made it."""
        run = cls(path)
        if run.path.is_file():
            raise RunError(
                f"{run.path} is a file, not the folder of a run; if it holds facts, `dpmpn train {run.path}` or "
                f"Reasoner().fit('{run.path}') trains on them"
            )
        if not run.path.is_dir():
            raise RunError(f"{run.path} is not a folder; `dpmpn train DATASET --out {run.path}` makes a run")
        if not run.exists():
            raise RunError(f"{run.path} has no {CONFIG}: it is not the folder of a run; name one, or train")
        for name in (MANIFEST, GRAPH, TRIPLES):
            if not (run.path / name).exists():
                raise RunError(f"{run.path / name} is missing; {_COPY_AGAIN}")
        _ = run.config
        return run

    def exists(self) -> bool:
        """Whether the folder holds a run."""
        return (self.path / CONFIG).is_file()

    @property
    def metrics(self) -> Path:
        """The file of metrics, one JSON object a line."""
        return self.path / METRICS

    @cached_property
    def config(self) -> Config:
        """The configuration the run was made with, or resumed with last."""
        path = self.path / CONFIG
        try:
            return from_dict(read_json(path, _COPY_AGAIN))
        except ConfigError as error:
            raise RunError(f"{path}: {error}; another version may have written it") from error

    def save_config(self, config: Config) -> None:
        """Write the configuration."""
        write_json(self.path / CONFIG, to_dict(config))
        self.__dict__["config"] = config

    def dataset(self) -> Dataset:
        """The dataset, from this folder alone; graph and triples are memory-mapped."""
        try:
            return open_dataset(self.path)
        except DataError as error:
            raise RunError(f"the run's data is broken: {error}") from error

    def start(self) -> Pretrained | None:
        """The model for any graph that training begins from; None where it begins from random numbers."""
        versions = self.path / VERSIONS
        if not versions.exists() or START not in read_json(versions, _COPY_AGAIN):
            return None
        return load_pretrained(self.path / START)

    def has_weights(self) -> bool:
        """Whether a checkpoint was written."""
        return has_checkpoint(self.path)

    def model(self, which: str = "best") -> Model:
        """The model with its "best" or its "last" weights; before any validation, the best are the last."""
        if which not in ("best", "last"):
            raise RunError(f"there are 'best' and 'last' weights, not '{which}'")
        graph = self._graph()
        check_size(self.path, which, self.config.model.least_values(graph))
        model = build_model(graph.n_entities, graph.n_relations, self.config.model, self.config.run.seed)
        load_network(self.path, model, which)
        return model

    def identity(self) -> str:
        """A digest of all that is asked: of the configuration and the manifests, which have checksums of the rest."""
        weights = next(
            (name for name in ("best.json", "checkpoint.json") if (self.path / name).exists()),
            f"{START}/{ABOUT}",  # of the model that training begins from
        )
        files = [self.path / name for name in (CONFIG, MANIFEST, f"{GRAPH}/{storage.MANIFEST}", weights)]
        try:
            return " ".join(sha256_of(file) for file in files)
        except OSError as error:
            raise RunError(f"{self.path} cannot be read ({error}); {_COPY_AGAIN}") from error

    def _graph(self) -> KnowledgeGraph:
        try:
            return KnowledgeGraph.open(self.path / GRAPH)
        except DataError as error:
            raise RunError(f"the run's graph is broken: {error}") from error


# Metrics, one JSON object a line: appended one by one, taken back when a run goes on.


def append_line(path: Path, values: dict[str, Any]) -> None:
    """Add a whole line or, where the disk is full, nothing; a killed run leaves at most one broken line, the last."""
    append(path, json.dumps(values, allow_nan=False).encode() + b"\n")


def sync_lines(path: Path) -> None:
    """Make the lines written so far survive a power cut."""
    try:
        sync(path)
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror or error}") from error


def read_lines(path: Path) -> list[dict[str, Any]]:
    """All whole lines."""
    found = []
    for number, line in enumerate(_whole_lines(path), start=1):
        try:
            values = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise RunError(f"{path}, line {number} is broken ({error}); remove that line") from error
        if not isinstance(values, dict):
            raise RunError(f"{path}, line {number} does not hold a JSON object; remove that line")
        found.append(values)
    return found


def rewind_lines(path: Path, count: int) -> None:
    """Keep the first lines only: drop what a killed run wrote after its last checkpoint.

    Lines in a file of several names, such as a link, are copied: what is added later is for this run alone.
    """
    kept = b"".join(line + b"\n" for line in _whole_lines(path)[:count])
    if not is_own(path) or path.stat().st_size != len(kept):
        write_whole(path, lambda file: file.write(kept))


def _whole_lines(path: Path) -> list[bytes]:
    """The lines without the last one of a killed run, if it was cut off before its line break."""
    try:
        with open_file(path) as file:
            return file.read().split(b"\n")[:-1]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror or error}; move it away") from error
