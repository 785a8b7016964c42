"""A graph on disk: one .npy per array, names as text and a manifest with checksums; opened memory-mapped.

A folder holds `offsets.npy`, `relations.npy`, `tails.npy` and `inverse.npy`; `entities.txt` and `relations.txt`
(UTF-8, a line break after each name, in the order of the ids) with `entities.npy` and `relation_names.npy`, where
each name begins; `entity_labels.parquet` and `relation_labels.parquet`, a row per id, where there are labels; and
`manifest.json`: format, version, counts, and size and SHA-256 of each file.
"""

import io
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from dpmpn.data.arrays import check_range, open_array, save_array
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.data.labels import Labels
from dpmpn.data.sources.base import LABELS
from dpmpn.data.vocabulary import Names, Vocabulary
from dpmpn.errors import DataError
from dpmpn.files import (
    check_fingerprints,
    check_version,
    disk_errors,
    fingerprints,
    read_json,
    whole_folder,
    write_json,
)

FORMAT = "dpmpn-graph"
VERSION = 2
MANIFEST = "manifest.json"
_TYPES = {
    "offsets": (np.int64,),
    "relations": (np.int16, np.int32),
    "tails": (np.int32,),
    "inverse": (np.int32,),
}
_NAMES = {
    "entities": ("entities.txt", "entities.npy"),
    "relation_names": ("relations.txt", "relation_names.npy"),
}
_FILES = [*(f"{name}.npy" for name in _TYPES), *(file for files in _NAMES.values() for file in files)]
_LABELS = {"entities": "entity_labels.parquet", "relation_names": "relation_labels.parquet"}
_ADVICE = "save the graph again, or copy it again from where it is whole"


def save_graph(graph: KnowledgeGraph, folder: str | Path) -> None:
    """Write the graph into a new folder, which is there whole or not at all."""
    with whole_folder(Path(folder)) as temporary:
        write_graph(graph, temporary)


def write_graph(graph: KnowledgeGraph, folder: Path) -> None:
    """Write the files of a graph into a folder."""
    for name in _TYPES:
        save_array(folder / f"{name}.npy", getattr(graph, name))
    for name, (text, offsets) in _NAMES.items():
        packed: Names = getattr(graph, name).packed
        (folder / text).write_bytes(packed.text.data)
        save_array(folder / offsets, packed.offsets)
    labelled = [name for name in _LABELS if getattr(graph, name).labels is not None]
    for name in labelled:
        # Polars does not take a path that is not UTF-8, but a file.
        with disk_errors(), (folder / _LABELS[name]).open("wb") as file:
            getattr(graph, name).labels.frame().write_parquet(file)
    files = [*_FILES, *(_LABELS[name] for name in labelled)]
    write_json(folder / MANIFEST, _manifest(graph) | {"files": fingerprints(folder, files)})


def open_graph(folder: str | Path) -> KnowledgeGraph:
    """Open a saved graph, mapped, after its files proved to be those that were written."""
    folder = Path(folder)
    manifest = _read_manifest(folder)
    labels = [file for file in _LABELS.values() if file in manifest["files"]]
    check_fingerprints(folder, manifest["files"], [*_FILES, *labels], _ADVICE, DataError)
    n_entities, n_relations, n_edges = (manifest[key] for key in _COUNTS)
    lengths = {"offsets": n_entities + 1, "relations": n_edges, "tails": n_edges, "inverse": n_relations}
    arrays = {
        name: open_array(folder / f"{name}.npy", _TYPES[name], (length,), _ADVICE)
        for name, length in lengths.items()
    }
    _check_offsets(folder / "offsets.npy", arrays["offsets"], n_edges)
    for name, low, high in (
        ("relations", 0, n_relations),
        ("tails", 0, n_entities),
        ("inverse", -1, n_relations),
    ):
        check_range(folder / f"{name}.npy", arrays[name], low, high, _ADVICE)
    counts = {"entities": n_entities, "relation_names": n_relations}
    names = {name: _open_names(folder, name, counts[name], manifest) for name in _NAMES}
    return KnowledgeGraph(**arrays, entities=names["entities"], relation_names=names["relation_names"])


_COUNTS = ("n_entities", "n_relations", "n_edges")


def _manifest(graph: KnowledgeGraph) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": VERSION,
        **{count: getattr(graph, count) for count in _COUNTS},
        "ascending": {name: getattr(graph, name).ascending for name in _NAMES},
    }


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    manifest = read_json(path, _ADVICE, DataError)
    check_version(path, manifest, FORMAT, VERSION, _ADVICE, DataError)
    for key in _COUNTS:
        if type(manifest.get(key)) is not int or not 0 <= manifest[key] < 2**48:
            raise DataError(f"{path}: '{key}' is {manifest.get(key)!r:.60}, not a count; {_ADVICE}")
    if not isinstance(manifest.get("files"), dict):
        raise DataError(f"{path} does not list its files; {_ADVICE}")
    return manifest


def _open_names(folder: Path, name: str, count: int, manifest: dict[str, Any]) -> Vocabulary:
    text_file, offsets_file = (folder / file for file in _NAMES[name])
    size = text_file.stat().st_size
    text = np.memmap(text_file, np.uint8, "r").view(np.ndarray) if size else np.empty(0, np.uint8)
    offsets = open_array(offsets_file, (np.int64,), (count + 1,), _ADVICE)
    _check_offsets(offsets_file, offsets, size, least=1)
    ascending = manifest.get("ascending")
    known = isinstance(ascending, dict) and ascending.get(name) is True
    vocabulary = Vocabulary.opened(Names(text, offsets), known)
    if _LABELS[name] in manifest["files"]:
        vocabulary = vocabulary.labelled(_read_labels(folder / _LABELS[name], count))
    return vocabulary


def _read_labels(path: Path, count: int) -> Labels:
    columns = {column: kind for column, kind in LABELS.items() if column != "id"}
    try:
        table = pl.scan_parquet(io.BytesIO(path.read_bytes()))  # polars takes no path that is not UTF-8
        # Before anything is unpacked: a small file may claim any number of rows.
        fits = dict(table.collect_schema()) == columns and table.select(pl.len()).collect().item() == count
        frame = table.collect() if fits else None
    except (
        OSError,
        ValueError,
        OverflowError,
        pl.exceptions.PolarsError,
        pl.exceptions.PanicException,
    ) as error:
        raise DataError(f"{path} cannot be read ({str(error)[:200]}); {_ADVICE}") from error
    if frame is None:
        raise DataError(f"{path} does not hold the labels of {count} names; {_ADVICE}")
    return Labels(*frame)


def _check_offsets(path: Path, offsets: np.ndarray, end: int, least: int = 0) -> None:
    """Refuse offsets that do not go from 0 to the end in steps of at least so much."""
    if offsets[0] != 0 or offsets[-1] != end or (len(offsets) > 1 and np.diff(offsets).min() < least):
        raise DataError(f"{path} does not lead from 0 to {end}; {_ADVICE}")
