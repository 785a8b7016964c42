"""The folder of a run: configuration, graph, triples, versions, metrics and weights, complete in itself.

config.json      the resolved configuration; written last, so a folder that has it is a run
graph/           the training graph with its names, memory-mapped when opened
triples/         train.npy, valid.npy, test.npy: int32, n x 3; candidates.npy for a task
dataset.json     name, directions and counts
versions.json    what wrote the run
metrics.jsonl    one line per stretch of training and per validation
checkpoint.json  the last checkpoint, with its checkpoint-*.safetensors
best.json        the best model, with its best-*.safetensors
"""

import platform
import shutil
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from dpmpn.config import Config, from_dict, to_dict
from dpmpn.data.candidates import Candidates
from dpmpn.data.dataset import SPLITS, Dataset
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.errors import ConfigError, DataError, RunError
from dpmpn.model.network import Network, build_network
from dpmpn.train.checkpoint import has_checkpoint, load_network
from dpmpn.train.files import read_json, sync, write_json, write_whole

CONFIG, DATASET, VERSIONS, METRICS = "config.json", "dataset.json", "versions.json", "metrics.jsonl"
_GRAPH, _TRIPLES, _CANDIDATES = "graph", "triples", "candidates"
_BEGUN = ".creating"  # there while a run folder is made; says that what lies here is ours
_COPY_AGAIN = "copy the run folder again, or train anew with another --out"


class RunFolder:
    """A run on disk; make one with `create`, or `open` an existing one."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @classmethod
    def create(cls, path: str | Path, dataset: Dataset, config: Config) -> "RunFolder":
        """Make the folder of a new run; refuse one that holds a run or anything else."""
        run = cls(path)
        run._claim()
        _save_graph(dataset.graph, run.path / _GRAPH)
        _save_triples(dataset, run.path / _TRIPLES)
        write_json(run.path / DATASET, _description(dataset))
        write_json(run.path / VERSIONS, _versions())
        run.metrics.touch()
        run.save_config(config)
        (run.path / _BEGUN).unlink()
        return run

    @classmethod
    def open(cls, path: str | Path) -> "RunFolder":
        """Open the folder of a run, whatever machine made it."""
        run = cls(path)
        if not run.path.is_dir():
            raise RunError(f"{run.path} is not a folder; `dpmpn train DATASET --out {run.path}` makes a run")
        if not run.exists():
            begun = (run.path / _BEGUN).exists()
            why = "making it was interrupted" if begun else "it is not the folder of a run"
            raise RunError(f"{run.path} has no {CONFIG}: {why}; train without --resume to make one")
        for name in (DATASET, _GRAPH, _TRIPLES):
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
        path = self.path / DATASET
        values = read_json(path, _COPY_AGAIN)
        try:
            name, both, relation = str(values["name"]), bool(values["both_directions"]), values["relation"]
        except KeyError as error:
            raise RunError(f"{path} lacks {error}; {_COPY_AGAIN}") from error
        graph = self._graph()
        train, valid, test = (_open_triples(self.path / _TRIPLES / f"{split}.npy", graph) for split in SPLITS)
        candidates = None if relation is None else _open_candidates(self.path / _TRIPLES, int(relation))
        return Dataset(name, graph, train, valid, test, both, candidates)

    def has_weights(self) -> bool:
        """Whether a checkpoint was written."""
        return has_checkpoint(self.path)

    def network(self, which: str = "best") -> Network:
        """The network with its "best" or its "last" weights; before any validation, the best are the last."""
        if which not in ("best", "last"):
            raise RunError(f"there are 'best' and 'last' weights, not '{which}'")
        graph = self._graph()
        network = build_network(graph.n_entities, graph.n_relations, self.config.model, self.config.run.seed)
        load_network(self.path, network, which)
        return network

    def _graph(self) -> KnowledgeGraph:
        try:
            return KnowledgeGraph.open(self.path / _GRAPH)
        except DataError as error:
            raise RunError(f"{error}: the run's graph is broken; {_COPY_AGAIN}") from error

    def _claim(self) -> None:
        """Take an empty or new folder, or one in which making a run was interrupted."""
        if self.exists():
            raise RunError(f"{self.path} already holds a run; go on with --resume or choose another --out")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            begun = (self.path / _BEGUN).exists()
            if not begun and any(self.path.iterdir()):
                raise RunError(f"{self.path} is not empty and holds no run; choose another --out")
            (self.path / _BEGUN).touch()
            for leftover in (_GRAPH, _TRIPLES):
                shutil.rmtree(self.path / leftover, ignore_errors=True)
            for unfinished in self.path.glob(f".{_GRAPH}.*"):
                shutil.rmtree(unfinished, ignore_errors=True)
        except OSError as error:
            raise RunError(f"{self.path} cannot be made: {error.strerror}; choose another --out") from error


def _versions() -> dict[str, str]:
    packages = {name: metadata.version(name) for name in ("dpmpn", "torch", "numpy", "numba", "safetensors")}
    return packages | {"python": platform.python_version(), "platform": platform.platform()}


def _description(dataset: Dataset) -> dict[str, Any]:
    return {
        "name": dataset.name,
        "both_directions": dataset.both_directions,
        "relation": dataset.candidates.relation if dataset.candidates else None,  # what a task asks
        "folder": dataset.folder.name if dataset.folder else None,
        "entities": dataset.graph.n_entities,
        "relations": dataset.graph.n_forward,
        "edges": dataset.graph.n_edges,
        **{split: len(dataset.split(split)) for split in SPLITS},
    }


def _save_graph(graph: KnowledgeGraph, folder: Path) -> None:
    graph.save(folder)
    for file in folder.iterdir():
        sync(file)
    sync(folder)


def _save_triples(dataset: Dataset, folder: Path) -> None:
    folder.mkdir()
    arrays = {split: dataset.split(split) for split in SPLITS}
    if dataset.candidates is not None:
        asked = dataset.candidates
        arrays[_CANDIDATES] = np.stack([asked.heads, asked.tails, asked.positive], 1)  # n x 3
    for name, array in arrays.items():
        _save_array(folder / f"{name}.npy", np.ascontiguousarray(array, np.int32))


def _save_array(path: Path, array: np.ndarray) -> None:
    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:  # given a path, numpy would change its suffix
            np.save(file, array, allow_pickle=False)

    write_whole(path, write)


def _open_array(path: Path) -> np.ndarray:
    """An int32 array of three columns, memory-mapped."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError as error:
        raise RunError(f"{path} is missing; {_COPY_AGAIN}") from error
    except (OSError, ValueError, EOFError) as error:
        array = _open_empty(path, error)
    if array.ndim != 2 or array.shape[1] != 3 or array.dtype != np.int32:
        raise RunError(f"{path} holds {array.dtype} {array.shape}, not int32 triples; {_COPY_AGAIN}")
    return array.view(np.ndarray)


def _open_empty(path: Path, error: Exception) -> np.ndarray:
    """An array without elements, which cannot be mapped."""
    try:
        array = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        raise RunError(f"{path} cannot be read ({error}); {_COPY_AGAIN}") from error
    return array


def _open_triples(path: Path, graph: KnowledgeGraph) -> np.ndarray:
    triples = _open_array(path)
    limits = (graph.n_entities, graph.n_relations, graph.n_entities)
    if len(triples) and (triples.min() < 0 or (triples.max(axis=0) >= limits).any()):
        raise RunError(f"{path} names entities or relations the graph does not have; {_COPY_AGAIN}")
    return triples


def _open_candidates(folder: Path, relation: int) -> Candidates:
    heads, tails, positive = np.ascontiguousarray(_open_array(folder / f"{_CANDIDATES}.npy").T)
    return Candidates(relation, heads, tails, positive.astype(bool))
