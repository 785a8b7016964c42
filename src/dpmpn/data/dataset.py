"""A dataset: the training graph, the triples of the splits and the queries asked about them; in memory and on disk.

A folder holds
dataset.json          format, version, name, directions, counts; size and SHA-256 of the triples
graph/                the training graph with its names and labels (see `storage`)
triples/<split>.npy   train, valid and test: int32, n x 3 (head, relation, tail); candidates.npy for a task
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.data.storage import check_range, open_array, save_array
from dpmpn.errors import DataError, UnknownName
from dpmpn.files import check_fingerprints, check_version, fingerprints, read_json, write_json

SPLITS = ("train", "valid", "test")
UNKNOWN_ENTITY = -1
MANIFEST, GRAPH, TRIPLES = "dataset.json", "graph", "triples"
FORMAT = "dpmpn-dataset"
VERSION = 1
_CANDIDATES = "candidates"
_ADVICE = "copy the folder again from where it is whole, or make it anew"


@dataclass(frozen=True, eq=False)
class Candidates:
    """Pairs asked about one relation, one row a candidate, in the order of the file."""

    relation: int  # the task's relation
    heads: np.ndarray  # int32, n_candidates; -1 for an entity the graph does not have, which scores 0
    tails: np.ndarray  # int32, n_candidates; likewise
    positive: np.ndarray  # bool, n_candidates

    def __len__(self) -> int:
        return len(self.heads)


@dataclass(frozen=True, eq=False)
class Dataset:
    """A training graph and three splits of triples in the file's direction, duplicates removed."""

    name: str
    graph: KnowledgeGraph
    train: np.ndarray  # int32, n x 3 (head, relation, tail)
    valid: np.ndarray  # int32, n x 3
    test: np.ndarray  # int32, n x 3
    both_directions: bool  # inverse queries are asked too
    candidates: Candidates | None = None  # what a NELL-995 task ranks
    folder: Path | None = None

    def __repr__(self) -> str:
        sizes = ", ".join(f"{len(self.split(name))} {name}" for name in SPLITS)
        return f"Dataset('{self.name}', {self.graph!r}, {sizes})"

    def split(self, name: str) -> np.ndarray:
        """Triples of a split."""
        if name not in SPLITS:
            raise UnknownName("split", name, list(SPLITS))
        return {"train": self.train, "valid": self.valid, "test": self.test}[name]

    def queries(self, split: str) -> np.ndarray:
        """Triples of a split, followed by their inverses where both directions are asked."""
        triples = self.split(split)
        if not self.both_directions:
            return triples
        backward = triples[:, ::-1].copy()  # (tail, relation, head)
        backward[:, 1] = self.graph.inverse[backward[:, 1]]
        return np.concatenate([triples, backward])  # 2n x 3


def write_dataset(dataset: Dataset, folder: Path) -> None:
    """Write the files of a dataset into a folder."""
    for name in (GRAPH, TRIPLES):
        (folder / name).mkdir()
    dataset.graph.write(folder / GRAPH)
    arrays = {split: dataset.split(split) for split in SPLITS}
    if dataset.candidates is not None:
        ranked = dataset.candidates
        arrays[_CANDIDATES] = np.stack([ranked.heads, ranked.tails, ranked.positive], 1)  # n x 3
    for name, array in arrays.items():
        save_array(folder / _file(name), np.asarray(array, np.int32))
    files = fingerprints(folder, [_file(name) for name in arrays])
    write_json(folder / MANIFEST, _description(dataset) | {"files": files})


def open_dataset(folder: str | Path) -> Dataset:
    """Open a dataset from its folder alone, after its files proved to be those that were written."""
    folder = Path(folder)
    path = folder / MANIFEST
    values = read_json(path, _ADVICE, DataError)
    check_version(path, values, FORMAT, VERSION, _ADVICE, DataError)
    relation = values.get("relation")
    arrays = [*SPLITS, *([_CANDIDATES] if relation is not None else [])]
    check_fingerprints(folder, values.get("files"), [_file(name) for name in arrays], _ADVICE, DataError)
    graph = KnowledgeGraph.open(folder / GRAPH)
    train, valid, test = (_open_triples(folder / _file(split), graph, values.get(split)) for split in SPLITS)
    if not isinstance(values.get("name"), str) or not isinstance(values.get("both_directions"), bool):
        raise DataError(f"{path} does not say the dataset's name and directions; {_ADVICE}")
    candidates = None if relation is None else _open_candidates(folder, graph, values)
    return Dataset(values["name"], graph, train, valid, test, values["both_directions"], candidates, folder)


def _file(name: str) -> str:
    return f"{TRIPLES}/{name}.npy"


def _description(dataset: Dataset) -> dict[str, Any]:
    candidates = dataset.candidates
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": dataset.name,
        "both_directions": dataset.both_directions,
        "relation": candidates.relation if candidates else None,  # of a task
        "candidates": len(candidates) if candidates else None,
        "entities": dataset.graph.n_entities,
        "relations": dataset.graph.n_forward,
        "edges": dataset.graph.n_edges,
        **{split: len(dataset.split(split)) for split in SPLITS},
    }


def _open_rows(path: Path, count: Any) -> np.ndarray:
    if type(count) is not int or not 0 <= count < 2**48:
        raise DataError(f"{MANIFEST} says that {path} has {count!r:.60} rows; {_ADVICE}")
    return open_array(path, (np.int32,), (count, 3), _ADVICE)


def _open_triples(path: Path, graph: KnowledgeGraph, count: Any) -> np.ndarray:
    triples = _open_rows(path, count)
    for column, limit in enumerate((graph.n_entities, graph.n_relations, graph.n_entities)):
        check_range(path, triples[:, column], 0, limit, _ADVICE)
    return triples


def _open_candidates(folder: Path, graph: KnowledgeGraph, values: dict[str, Any]) -> Candidates:
    relation, path = values["relation"], folder / _file(_CANDIDATES)
    if type(relation) is not int or not 0 <= relation < graph.n_relations:
        raise DataError(f"{folder / MANIFEST} names no relation of the graph; {_ADVICE}")
    heads, tails, positive = np.ascontiguousarray(_open_rows(path, values.get("candidates")).T)
    for column in (heads, tails):
        check_range(path, column, UNKNOWN_ENTITY, graph.n_entities, _ADVICE)
    return Candidates(relation, heads, tails, positive.astype(bool))
