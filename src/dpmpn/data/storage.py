"""A graph on disk: one .npy per array, names as text and a manifest; opened memory-mapped.

A folder holds `offsets.npy`, `relations.npy`, `tails.npy`, `inverse.npy`, `entities.txt` and `relations.txt`
(UTF-8, one name a line, in the order of the ids) and `manifest.json` (format, version, counts).
"""

import json
import os
import shutil
import tempfile
from pathlib import Path

import numpy as np

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.data.vocabulary import Vocabulary
from dpmpn.errors import DataError

FORMAT = "dpmpn-graph"
VERSION = 1
_TYPES = {
    "offsets": (np.int64,),
    "relations": (np.int16, np.int32),
    "tails": (np.int32,),
    "inverse": (np.int32,),
}


def save_graph(graph: KnowledgeGraph, folder: str | Path) -> None:
    """Write the graph into a new folder: beside it first, then renamed; it is there whole or not at all."""
    folder = Path(folder)
    if folder.exists():
        raise DataError(f"{folder}: exists already; choose another folder or remove this one first")
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        _write_arrays(graph, temporary)
        _write_names(graph.entities, temporary / "entities.txt")
        _write_names(graph.relation_names, temporary / "relations.txt")
        (temporary / "manifest.json").write_text(json.dumps(_manifest(graph), indent=2) + "\n", "utf-8")
        temporary.chmod(0o755)
        os.rename(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def open_graph(folder: str | Path) -> KnowledgeGraph:
    """Open a saved graph: arrays are memory-mapped, names are read when first asked for."""
    folder = Path(folder)
    counts = _read_manifest(folder)
    lengths = {
        "offsets": counts["n_entities"] + 1,
        "relations": counts["n_edges"],
        "tails": counts["n_edges"],
        "inverse": counts["n_relations"],
    }
    return KnowledgeGraph(
        **{name: _open_array(folder, name, length) for name, length in lengths.items()},
        entities=_open_names(folder / "entities.txt", counts["n_entities"]),
        relation_names=_open_names(folder / "relations.txt", counts["n_relations"]),
    )


def _manifest(graph: KnowledgeGraph) -> dict[str, str | int]:
    return {
        "format": FORMAT,
        "version": VERSION,
        "n_entities": graph.n_entities,
        "n_relations": graph.n_relations,
        "n_edges": graph.n_edges,
    }


def _read_manifest(folder: Path) -> dict[str, int]:
    path = folder / "manifest.json"
    try:
        manifest = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: not a readable graph manifest ({error}); save the graph again") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise DataError(f"{path}: is not the manifest of a saved graph; expected format '{FORMAT}'")
    if manifest.get("version") != VERSION:
        raise DataError(
            f"{path}: version {manifest.get('version')} is not version {VERSION}, which this program "
            "reads; save the graph again with this program"
        )
    for key in ("n_entities", "n_relations", "n_edges"):
        if type(manifest.get(key)) is not int or manifest[key] < 0:
            raise DataError(f"{path}: '{key}' is {manifest.get(key)!r}, not a count; save the graph again")
    return manifest


def _write_arrays(graph: KnowledgeGraph, folder: Path) -> None:
    for name in _TYPES:
        np.save(folder / f"{name}.npy", getattr(graph, name), allow_pickle=False)


def _open_array(folder: Path, name: str, length: int) -> np.ndarray:
    path = folder / f"{name}.npy"
    try:
        # A file without elements cannot be mapped.
        array = np.load(path, mmap_mode="r" if length else None, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{path}: cannot be read ({error}); save the graph again") from error
    if array.shape != (length,) or array.dtype not in _TYPES[name]:
        raise DataError(
            f"{path}: holds {array.dtype} of shape {array.shape}, the manifest says {length} elements; "
            "save the graph again"
        )
    return array.view(np.ndarray)  # still mapped, without the indexing cost of np.memmap


def _write_names(names: Vocabulary, path: Path) -> None:
    for name in names:
        if "\n" in name or "\r" in name:
            raise DataError(f"name {name!r} holds a line break and cannot be saved; rename it")
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(name + "\n" for name in names)


def _open_names(path: Path, count: int) -> Vocabulary:
    if not path.is_file():
        raise DataError(f"{path}: is missing; save the graph again")
    return Vocabulary.lazy(count, lambda: _read_names(path))


def _read_names(path: Path) -> list[str]:
    try:
        return path.read_bytes().decode("utf-8").split("\n")[:-1]
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read ({error}); save the graph again") from error
