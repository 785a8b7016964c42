"""Arrays and graphs on disk: one .npy per array, names as text and a manifest with checksums; opened memory-mapped.

The folder of a graph holds `offsets.npy`, `relations.npy`, `tails.npy` and `inverse.npy`; `entities.txt` and
`relations.txt` (UTF-8, a line break after each name, in the order of the ids) with `entities.npy` and
`relation_names.npy`, where each name begins; `entity_labels.parquet` and `relation_labels.parquet`, a row per id,
where there are labels; `provenance.txt` (objects of JSON) with `provenance_facts.npy` and `provenance_spans.npy`, where
something was said of facts; and `manifest.json`: format, version, counts, and size and SHA-256 of each file.
"""

import io
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import polars as pl
from numpy.lib import format as npy

from dpmpn.data.fact_provenance import Provenance
from dpmpn.data.sources.base import LABELS
from dpmpn.data.sources.parquet import READ_ERRORS
from dpmpn.data.vocabulary import Names, Vocabulary
from dpmpn.errors import DataError
from dpmpn.files import (
    check_fingerprints,
    check_version,
    fingerprints,
    new_file,
    open_file,
    read_json,
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
_SAID, _SAID_FACTS, _SAID_SPANS = "provenance.txt", "provenance_facts.npy", "provenance_spans.npy"
_COUNTS = ("n_entities", "n_relations", "n_edges")
_ADVICE = "save the graph again, or copy it again from where it is whole"


class GraphParts(NamedTuple):
    """What a graph is made of, as `KnowledgeGraph` documents it."""

    offsets: np.ndarray
    relations: np.ndarray
    tails: np.ndarray
    inverse: np.ndarray
    entities: Vocabulary
    relation_names: Vocabulary
    provenance: Provenance | None = None


def write_parts(parts: GraphParts, folder: Path) -> None:
    """Write the files of a graph into a folder."""
    for name in _TYPES:
        save_array(folder / f"{name}.npy", getattr(parts, name))
    vocabularies: dict[str, Vocabulary] = {name: getattr(parts, name) for name in _NAMES}
    for name, (text, offsets) in _NAMES.items():
        packed = vocabularies[name].packed
        with new_file(folder / text) as file:
            file.write(packed.text.data)
        save_array(folder / offsets, packed.offsets)
    files = list(_FILES)
    for name, vocabulary in vocabularies.items():
        if vocabulary.labels is not None:
            files.append(_LABELS[name])
            # Polars does not take a path that is not UTF-8, but a file.
            with new_file(folder / _LABELS[name]) as file:
                vocabulary.labels.write_parquet(file)
    if parts.provenance is not None:
        files += _write_provenance(parts.provenance, folder)
    counts = zip(_COUNTS, (len(parts.offsets) - 1, len(parts.inverse), len(parts.tails)), strict=True)
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        **dict(counts),
        "ascending": {name: vocabulary.ascending for name, vocabulary in vocabularies.items()},
        "files": fingerprints(folder, files),
    }
    write_json(folder / MANIFEST, manifest)


def open_parts(folder: Path) -> GraphParts:
    """Open the files of a graph, mapped, after they proved to be those that were written."""
    manifest = _read_manifest(folder)
    labels = [file for file in _LABELS.values() if file in manifest["files"]]
    said = [_SAID, _SAID_FACTS, _SAID_SPANS] if _SAID in manifest["files"] else []
    check_fingerprints(folder, manifest["files"], [*_FILES, *labels, *said], _ADVICE, DataError)
    n_entities, n_relations, n_edges = (manifest[key] for key in _COUNTS)
    lengths = {"offsets": n_entities + 1, "relations": n_edges, "tails": n_edges, "inverse": n_relations}
    arrays = {
        name: open_array(folder / f"{name}.npy", _TYPES[name], (length,), _ADVICE)
        for name, length in lengths.items()
    }
    _check_offsets(folder / "offsets.npy", arrays["offsets"], n_edges)
    bounds = {"relations": (0, n_relations), "tails": (0, n_entities), "inverse": (-1, n_relations)}
    for name, (low, high) in bounds.items():
        check_range(folder / f"{name}.npy", arrays[name], low, high, _ADVICE)
    entities = _open_names(folder, "entities", n_entities, manifest)
    relation_names = _open_names(folder, "relation_names", n_relations, manifest)
    provenance = _open_provenance(folder) if said else None
    return GraphParts(**arrays, entities=entities, relation_names=relation_names, provenance=provenance)


def _write_provenance(provenance: Provenance, folder: Path) -> list[str]:
    """Write what was said of facts; the names of the files."""
    with new_file(folder / _SAID) as file:
        file.write(provenance.text.data)
    save_array(folder / _SAID_FACTS, provenance.facts)
    save_array(folder / _SAID_SPANS, provenance.spans)
    return [_SAID, _SAID_FACTS, _SAID_SPANS]


def _open_provenance(folder: Path) -> Provenance:
    """What was said of facts, mapped; positions outside of the text are refused."""
    text = np.memmap(folder / _SAID, np.uint8, "r").view(np.ndarray)
    with open_file(folder / _SAID_SPANS) as file:
        try:
            count = _read_header(file)[0][0]
        except (ValueError, IndexError, EOFError) as error:
            raise DataError(
                f"{folder / _SAID_SPANS} cannot be read ({str(error)[:200]}); {_ADVICE}"
            ) from error
    facts = open_array(folder / _SAID_FACTS, (np.int32,), (3, count), _ADVICE)
    spans = open_array(folder / _SAID_SPANS, (np.int64,), (count, 2), _ADVICE)
    check_range(folder / _SAID_SPANS, spans, 0, len(text) + 1, _ADVICE)
    return Provenance(facts, spans, text)


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
    labels = _read_labels(folder / _LABELS[name], count) if _LABELS[name] in manifest["files"] else None
    return Vocabulary.opened(Names(text, offsets), known, labels)


def _read_labels(path: Path, count: int) -> pl.DataFrame:
    columns = {column: dtype for column, dtype in LABELS.items() if column != "id"}
    try:
        table = pl.scan_parquet(io.BytesIO(path.read_bytes()))  # polars takes no path that is not UTF-8
        # Before anything is unpacked: a small file may claim any number of rows.
        fits = dict(table.collect_schema()) == columns and table.select(pl.len()).collect().item() == count
        frame = table.collect() if fits else None
    except READ_ERRORS as error:
        raise DataError(f"{path} cannot be read ({str(error)[:200]}); {_ADVICE}") from error
    if frame is None:
        raise DataError(f"{path} does not hold the labels of {count} names; {_ADVICE}")
    return frame


def _check_offsets(path: Path, offsets: np.ndarray, end: int, least: int = 0) -> None:
    """Refuse offsets that do not go from 0 to the end in steps of at least so much."""
    if offsets[0] != 0 or offsets[-1] != end or (len(offsets) > 1 and np.diff(offsets).min() < least):
        raise DataError(f"{path} does not lead from 0 to {end}; {_ADVICE}")


def save_array(path: Path, array: np.ndarray) -> None:
    """Write an array."""
    array = np.ascontiguousarray(array)
    with new_file(path) as file:
        npy.write_array_header_1_0(file, npy.header_data_from_array_1_0(array))
        # numpy's own writing does not say why it failed, such as that the disk is full.
        file.write(array.data)


def open_array(path: Path, dtypes: tuple[type, ...], shape: tuple[int, ...], advice: str) -> np.ndarray:
    """Map an array, read-only; a file that is not just this array is refused before memory is taken for it."""
    try:
        with open_file(path) as file:
            found, fortran, dtype = _read_header(file)
            start, size = file.tell(), path.stat().st_size
    except FileNotFoundError as error:
        raise DataError(f"{path} is missing; {advice}") from error
    except (OSError, ValueError, EOFError, RecursionError, MemoryError) as error:
        raise DataError(f"{path} cannot be read ({str(error)[:200]}); {advice}") from error
    if found != shape or dtype not in dtypes or (fortran and len(shape) > 1):
        raise DataError(
            f"{path} holds {dtype} of shape {found}, where {dtypes[0].__name__} of shape {shape} was expected; "
            f"{advice}"
        )
    n_bytes = int(np.prod(shape, dtype=object)) * dtype.itemsize
    if start + n_bytes != size:
        raise DataError(f"{path} has {size} bytes instead of {start + n_bytes}; {advice}")
    if not n_bytes:  # nothing cannot be mapped
        return np.empty(shape, dtype)
    mapped = np.memmap(path, dtype, "r", start, shape)
    return mapped.view(np.ndarray)  # still mapped, without the indexing cost of np.memmap


def check_range(path: Path, array: np.ndarray, low: int, high: int, advice: str) -> None:
    """Refuse values outside low..high - 1: compiled kernels index with them unchecked."""
    if array.size and (array.min() < low or array.max() >= high):
        raise DataError(f"{path} holds numbers outside {low}..{high - 1}; {advice}")


def _read_header(file: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype]:
    version = npy.read_magic(file)
    if version == (1, 0):
        return npy.read_array_header_1_0(file)
    if version == (2, 0):
        return npy.read_array_header_2_0(file)
    raise ValueError(f"version {version} of the .npy format")
