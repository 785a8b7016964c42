"""A dataset: the training graph, the triples of the splits and the queries asked about them; in memory and on disk.

In a single-relation task one relation is asked one way, and few candidates are ranked: those of NELL-995, or any.

A folder holds
dataset.json          format, version, name, directions, counts; size and SHA-256 of the triples
graph/                the training graph with its names and labels (see `storage`)
triples/<split>.npy   train, valid and test: int32, n x 3 (head, relation, tail); candidates.npy for a task
"""

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dpmpn.arguments import typed
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.data.sources.base import encoding_problem, text_chunks
from dpmpn.data.sources.unpack import Unpacked
from dpmpn.data.storage import check_range, open_array, save_array
from dpmpn.data.vocabulary import Vocabulary
from dpmpn.errors import DataError, UnknownName
from dpmpn.files import check_fingerprints, check_version, fingerprints, new_folder, read_json, write_json

SPLITS = ("train", "valid", "test")
UNKNOWN_ENTITY = -1
MANIFEST, GRAPH, TRIPLES = "dataset.json", "graph", "triples"
FORMAT = "dpmpn-dataset"
VERSION = 1
_CANDIDATES = "candidates"
_EDGES = ("offsets", "relations", "tails", "inverse")
_ADVICE = "copy the folder again from an intact copy, or make it again"
CANDIDATES_FILE = "sort_test.pairs"
WRONG_PER_HEAD = 10
"""Wrong candidates of a head; the NELL-995 tasks have 2 to 9 on average."""

_LINE = re.compile(r"thing\$(.+),thing\$(.+): ([+-])")


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

    def in_memory(self) -> "Dataset":
        """The same dataset without its files, which may then be changed or go."""
        train, valid, test = (self.split(name).copy() for name in SPLITS)
        ranked = self.candidates
        if ranked is not None:
            columns = (ranked.heads, ranked.tails, ranked.positive)
            ranked = Candidates(ranked.relation, *(column.copy() for column in columns))
        graph = self.graph.in_memory()
        return replace(self, graph=graph, train=train, valid=valid, test=test, candidates=ranked)

    @typed
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


def name_of_folder(folder: Path) -> str:
    """What a dataset in a folder is called; bytes that are not UTF-8 are spelled out, since names are shown."""
    return os.fsencode(folder.resolve().name).decode("utf-8", "backslashreplace")


def run_name(facts: str) -> str:
    """What the run of some facts is called, which are named by a file, a folder or a dataset: facts.csv is facts."""
    path = Path(facts)
    return path.name.split(".")[0] or path.name or path.resolve().name


def write_dataset(dataset: Dataset, folder: Path) -> None:
    """Write the files of a dataset into a folder."""
    for name in (GRAPH, TRIPLES):
        new_folder(folder / name)
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


def difference(before: Dataset, now: Dataset) -> str:
    """What is not the same in two datasets, in words: entities, relations, edges, facts of a split or candidates."""
    graphs = before.graph, now.graph
    for names, what in (("entities", "entities"), ("relation_names", "relations")):
        one, other = (getattr(graph, names) for graph in graphs)
        if len(one) != len(other):
            return f"{len(one):,} {what} then, {len(other):,} now"
        if not np.array_equal(one.packed.text, other.packed.text):
            pairs = zip(one.packed, other.packed, strict=True)
            return f"{what} '%s' then, '%s' now" % next(pair for pair in pairs if pair[0] != pair[1])
    for split in SPLITS:
        rows = before.split(split), now.split(split)
        if len(rows[0]) != len(rows[1]):
            return f"{len(rows[0]):,} {split} facts then, {len(rows[1]):,} now"
        if not _same_rows(*rows):
            return f"other {split} facts"
    if any(not np.array_equal(*(getattr(graph, name) for graph in graphs)) for name in _EDGES):
        return "other edges of the graph"
    if before.both_directions != now.both_directions or not _same_candidates(
        before.candidates, now.candidates
    ):
        return "another task"
    return ""


def _same_rows(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two arrays hold the same rows; their order is that of files, which may be read another way."""
    return np.array_equal(one, other) or np.array_equal(one[np.lexsort(one.T)], other[np.lexsort(other.T)])


def _same_candidates(one: Candidates | None, other: Candidates | None) -> bool:
    if one is None or other is None:
        return one is other
    rows, others = (np.stack([it.heads, it.tails, it.positive], 1) for it in (one, other))
    return one.relation == other.relation and np.array_equal(rows, others)


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


def single_relation_task(dataset: Dataset, relation: str, seed: int = 0) -> Dataset:
    """The queries of one relation, with candidates: each test head's answers, and wrong ones drawn by the seed.

    A wrong candidate is an answer of the relation to other heads, so that what it is alone does not give it away.
    """
    asked = dataset.graph.relation_names.id(relation, "relation")
    train, valid, test = (rows[rows[:, 1] == asked] for rows in map(dataset.split, SPLITS))
    for name, facts in (("train", train), ("test", test)):
        if not len(facts):
            raise DataError(
                f"dataset '{dataset.name}' has no {name} facts of '{relation}'; choose another relation"
            )
    return replace(
        dataset,
        name=f"{dataset.name}/{relation}",
        train=train,
        valid=valid,
        test=test,
        both_directions=False,
        candidates=_candidates(test, np.concatenate([train, valid, test]), np.random.default_rng(seed)),
        folder=None,
    )


def _candidates(test: np.ndarray, known: np.ndarray, draw: np.random.Generator) -> Candidates:
    """Candidates of the test heads; what is known of a head is never drawn as wrong."""
    answers = np.unique(known[:, 2])
    rows: list[tuple[int, int, bool]] = []
    for head in np.unique(test[:, 0]):
        right = test[test[:, 0] == head, 2]
        others = np.setdiff1d(answers, known[known[:, 0] == head, 2])
        wrong = draw.choice(others, min(WRONG_PER_HEAD, len(others)), replace=False)
        rows.extend((head, tail, True) for tail in right)
        rows.extend((head, tail, False) for tail in wrong)
    heads, tails, positive = (np.array(column) for column in zip(*rows, strict=True))
    return Candidates(int(test[0, 1]), heads.astype(np.int32), tails.astype(np.int32), positive)


def read_candidates(path: Path, entities: Vocabulary, relation: int) -> Candidates:
    """Read lines `thing$head,thing$tail: +` (or `-`).

    Four of the tasks list some right answers a second time as wrong ones, where a head has several: an answer that is
    right is not wrong, and the second line is left out.
    """
    with Unpacked(path) as stream:
        content = b"".join(chunk.content for chunk in text_chunks(stream))
    lines = content.replace(b"\r\n", b"\n").rstrip(b"\n").split(b"\n")
    rows = [_read_line(f"{path}, line {number:,}", line) for number, line in enumerate(lines, start=1)]
    right = {(head, tail) for head, tail, sign in rows if sign == "+"}
    rows = [row for row in rows if row[2] == "+" or row[:2] not in right]
    heads, tails, signs = zip(*rows, strict=True)
    return Candidates(
        relation=relation,
        heads=_ids(heads, entities),
        tails=_ids(tails, entities),
        positive=np.array([sign == "+" for sign in signs]),
    )


def _read_line(where: str, line: bytes) -> tuple[str, str, str]:
    if problem := encoding_problem(line):
        raise DataError(f"{where}: {problem.text}; {problem.advice}")
    text = line.decode("utf-8")
    match = _LINE.fullmatch(text)
    if match is None:
        raise DataError(f"{where}: '{text}' is not a candidate; write 'thing$head,thing$tail: +' or ': -'")
    return match[1], match[2], match[3]


def _ids(names: tuple[str, ...], entities: Vocabulary) -> np.ndarray:
    ids = (entities.id(name) if name in entities else UNKNOWN_ENTITY for name in names)
    return np.fromiter(ids, np.int32, len(names))
