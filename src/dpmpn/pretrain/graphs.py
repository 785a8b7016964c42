"""The graphs of a pre-training: read from names, folders and files."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpmpn.data.dataset import MANIFEST, Dataset
from dpmpn.data.importer import SplitChoice, dataset_from, load_dataset
from dpmpn.data.leakage import known_facts
from dpmpn.data.sources.formats import split_files
from dpmpn.errors import DataError
from dpmpn.files import sha256_of
from dpmpn.pretrain.splits import FEWEST_FACTS, Facts, renumbered
from dpmpn.suitable_config import graph_facts
from dpmpn.wording import counted


@dataclass(frozen=True, eq=False)
class NamedGraph:
    """The training facts of a dataset, and where they came from."""

    name: str
    facts: Facts
    files: tuple[dict[str, str], ...]  # "name" and "sha256" of each

    def described(self) -> dict[str, Any]:
        """What is kept of a graph: enough to tell it from another."""
        return {
            "name": self.name,
            "facts": len(self.facts.triples),
            "entities": self.facts.n_entities,
            "relations": self.facts.n_relations,
            "apart": self.facts.are_apart,
            "files": list(self.files),
        }


def read_graphs(
    training: Sequence[str], validation: Sequence[str]
) -> tuple[list[NamedGraph], list[NamedGraph]]:
    """The graphs to train on, and those to validate on, which are others."""
    graphs = [_read_graph(name) for name in training]
    others = [_read_graph(name) for name in validation]
    of_files = Counter(digest for graph in (*graphs, *others) for digest in _digests(graph))
    for name, graph in zip((*training, *validation), (*graphs, *others), strict=True):
        if any(of_files[digest] > 1 for digest in _digests(graph)):
            raise DataError(
                f"'{name}': its facts are given twice; name each graph once, and validate on graphs that are not "
                "trained on"
            )
    return graphs, others


def _digests(graph: NamedGraph) -> list[str]:
    return [file["sha256"] for file in graph.files]


def _read_graph(name: str) -> NamedGraph:
    path = Path(name)
    if path.is_file():
        dataset = dataset_from(path, split=SplitChoice("none"), name=path.name)
        files = [path]
    else:
        dataset = load_dataset(name)
        files = _files(name, dataset)
    facts = renumbered(known_facts(dataset.graph).astype(np.int64))
    if len(facts.triples) < FEWEST_FACTS:
        raise DataError(
            f"'{name}' has {counted(len(facts.triples), 'fact')}; a graph needs {FEWEST_FACTS} so that some can be "
            "hidden: leave it out"
        )
    facts = facts._replace(are_apart=graph_facts(dataset).are_apart)
    described = tuple({"name": file.name, "sha256": sha256_of(file)} for file in files)
    return NamedGraph(dataset.name, facts, described)


def _files(name: str, dataset: Dataset) -> list[Path]:
    """The files that hold a dataset's training facts; of an imported one, the manifest, which has their checksums."""
    folder = dataset.folder or Path(name)
    if (folder / MANIFEST).is_file():
        return [folder / MANIFEST]
    found = split_files(folder)
    return [Path(file) for file in (found["graph"] if dataset.candidates is not None else found["train"])]
