"""A dataset: the training graph, the triples of the splits and the queries asked about them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from dpmpn.data.candidates import CANDIDATES_FILE, Candidates, read_candidates
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.data.readers import COLUMNS, read_triples
from dpmpn.data.registry import find_dataset, known_dataset
from dpmpn.data.vocabulary import Vocabulary
from dpmpn.errors import DataError, UnknownName

SPLITS = ("train", "valid", "test")
_SPLIT_FILES = {"train": ("train",), "valid": ("valid", "dev"), "test": ("test",)}
_GRAPH = "graph"
_NO_TRIPLES = pl.DataFrame(schema={column: pl.String for column in COLUMNS})


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


def load_dataset(name_or_folder: str | Path) -> Dataset:
    """Load a dataset from a folder (imported, or with train.txt), or by a name of the registry."""
    from dpmpn.data.dataset_folder import MANIFEST, open_dataset

    folder = Path(name_or_folder)
    if (folder / MANIFEST).is_file():
        return open_dataset(folder)
    if _find_file(folder, "train") is not None:
        return _load_folder(folder, folder.resolve().name)
    if folder.is_dir() and find_dataset(str(name_or_folder)) is None:
        raise DataError(
            f"{folder}: has no train.txt or train.txt.gz; put the training triples there, or make a dataset of "
            "your files with `dpmpn import`"
        )
    entry = known_dataset(str(name_or_folder))
    return _load_folder(entry.existing_folder(), entry.name)


def dataset_from_tuples(
    train: Iterable[tuple[str, str, str]],
    valid: Iterable[tuple[str, str, str]] = (),
    test: Iterable[tuple[str, str, str]] = (),
    name: str = "mine",
) -> Dataset:
    """Make a dataset of (head, relation, tail) names."""
    given = {"train": train, "valid": valid, "test": test}
    frames = {split: _frame(split, triples) for split, triples in given.items()}
    if frames["train"].is_empty():
        raise DataError("train has no triples; give at least one")
    return _build(name, frames)


def _load_folder(folder: Path, name: str) -> Dataset:
    files = {split: _find_split(folder, split) for split in SPLITS}
    if files["train"] is None:
        raise DataError(f"{folder}: has no train.txt or train.txt.gz; put the training triples there")
    frames = {split: read_triples(file) if file else _NO_TRIPLES for split, file in files.items()}
    graph_file = _find_file(folder, _GRAPH)
    if graph_file is None or not (folder / CANDIDATES_FILE).is_file():
        return _build(name, frames, folder)
    return _build_task(name, frames | {_GRAPH: read_triples(graph_file)}, folder)


def _find_split(folder: Path, split: str) -> Path | None:
    found = (_find_file(folder, stem) for stem in _SPLIT_FILES[split])
    return next((file for file in found if file is not None), None)


def _find_file(folder: Path, stem: str) -> Path | None:
    files = (folder / f"{stem}.txt", folder / f"{stem}.txt.gz")
    return next((file for file in files if file.is_file()), None)


def _build(name: str, frames: Mapping[str, pl.DataFrame], folder: Path | None = None) -> Dataset:
    """A dataset whose graph is the training triples and their inverses."""
    entities, relations, triples = _encode(frames)
    graph = KnowledgeGraph.from_ids(triples["train"], entities, relations)
    train, valid, test = (triples[split] for split in SPLITS)
    return Dataset(name, graph, train, valid, test, both_directions=True, folder=folder)


def _build_task(name: str, frames: Mapping[str, pl.DataFrame], folder: Path) -> Dataset:
    """A NELL-995 task: the graph is its own file, inverses included, and one relation is asked one way."""
    asked = frames["train"]["relation"].unique().sort()
    if len(asked) != 1:
        raise DataError(
            f"{folder}: a task with {CANDIDATES_FILE} asks one relation, but its training file has "
            f"{len(asked)}, such as '{asked[0]}'; remove {CANDIDATES_FILE} to load it as a plain dataset"
        )
    entities, relations, triples = _encode(frames)
    graph = KnowledgeGraph.from_ids(triples[_GRAPH], entities, relations, add_inverses=False)
    relation = relations.id(asked[0], "relation")
    candidates = read_candidates(folder / CANDIDATES_FILE, entities, relation)
    train, valid, test = (triples[split] for split in SPLITS)
    return Dataset(name, graph, train, valid, test, False, candidates, folder)


def _encode(
    frames: Mapping[str, pl.DataFrame],
) -> tuple[Vocabulary, Vocabulary, dict[str, np.ndarray]]:
    """Sorted entity and relation names of all frames, and each frame as ids without duplicates."""
    entities = _sorted_names([f[column] for f in frames.values() for column in ("head", "tail")])
    relations = _sorted_names([f["relation"] for f in frames.values()])
    types = {"head": pl.Enum(entities), "relation": pl.Enum(relations), "tail": pl.Enum(entities)}
    triples = {name: _ids(frame, types) for name, frame in frames.items()}
    return Vocabulary(entities.to_list()), Vocabulary(relations.to_list()), triples


def _sorted_names(columns: list[pl.Series]) -> pl.Series:
    return pl.concat([column.rename("name") for column in columns]).unique().sort()


def _ids(frame: pl.DataFrame, types: dict[str, pl.Enum]) -> np.ndarray:
    ids = frame.select(pl.col(c).cast(types[c]).to_physical().cast(pl.Int32) for c in COLUMNS)
    return np.ascontiguousarray(ids.unique(maintain_order=True).to_numpy())  # n x 3


def _frame(split: str, triples: Iterable[tuple[str, str, str]]) -> pl.DataFrame:
    rows = list(triples)
    for i, row in enumerate(rows):
        if len(row) != 3 or not all(isinstance(field, str) and field for field in row):
            raise DataError(f"{split}, triple {i}: {row!r} is not (head, relation, tail) of non-empty names")
    return pl.DataFrame(rows, schema=_NO_TRIPLES.schema, orient="row")
