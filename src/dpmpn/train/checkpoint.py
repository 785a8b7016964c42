"""Checkpoints: tensors in a safetensors file, and a JSON manifest that names it once it is safely there.

`checkpoint.json` names `checkpoint-<position>.safetensors`: network, optimiser and the state of the loop.
`best.json` names `best-<position>.safetensors`: the network of the best validation alone. A manifest is
replaced only after its tensors are on the disk, and the older tensors go last: a run killed at any moment
keeps a whole checkpoint.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from dpmpn.errors import RunError
from dpmpn.train.files import TEMPORARY_SUFFIX, read_json, sha256_of, write_json, write_whole
from dpmpn.train.optimiser import Adam

FORMAT = "dpmpn-checkpoint"
VERSION = 1
LAST, BEST = "checkpoint", "best"
_NETWORK, _OPTIMISER = "network.", "optimiser."


@dataclass
class LossWindow:
    """Sums over the batches since the last line of metrics."""

    queries: int = 0
    loss: float = 0.0  # sum over queries
    reached: int = 0
    seconds: float = 0.0


@dataclass
class Validation:
    """One validation: where it was made and what came out."""

    position: int
    mrr: float  # realistic and filtered
    summary: dict[str, Any]


@dataclass
class LoopState:
    """All that the training loop knows besides tensors."""

    position: int = 0  # queries seen since the run began
    elapsed_seconds: float = 0.0
    cpu_seconds: float = 0.0
    best: Validation | None = None
    validations_without_improvement: int = 0
    validated_position: int | None = None
    validation_due: bool = False
    lines: int = 0  # of metrics written so far
    window: LossWindow = field(default_factory=LossWindow)


def save_checkpoint(folder: Path, network: nn.Module, optimiser: Adam, state: LoopState) -> None:
    """Save everything needed to go on."""
    tensors = _named(_NETWORK, network.state_dict()) | _named(_OPTIMISER, optimiser.state())
    _save(folder, LAST, state.position, tensors, asdict(state))


def load_checkpoint(folder: Path, network: nn.Module, optimiser: Adam) -> LoopState:
    """Put network and optimiser back where the last checkpoint left them; its loop state."""
    manifest = _read_manifest(folder, LAST)
    expected = _named(_NETWORK, network.state_dict()) | _named(_OPTIMISER, optimiser.state())
    tensors = _load(folder, LAST, manifest, expected)
    _load_network(network, tensors)
    optimiser.load_state(_unnamed(_OPTIMISER, tensors))
    return _loop_state(folder, manifest)


def has_checkpoint(folder: Path) -> bool:
    """Whether a checkpoint was written."""
    return _manifest_path(folder, LAST).exists()


def save_best(folder: Path, network: nn.Module, position: int, validation: Validation | None) -> None:
    """Save the network alone, with the validation that chose it (None without validation triples)."""
    values = {"position": position, "validation": asdict(validation) if validation else None}
    _save(folder, BEST, position, _named(_NETWORK, network.state_dict()), values)


def load_network(folder: Path, network: nn.Module, which: str) -> int:
    """Load the "best" or the "last" weights, return their position; before any validation, best is last."""
    kind = BEST if which == "best" and _manifest_path(folder, BEST).exists() else LAST
    manifest = _read_manifest(folder, kind)
    _load_network(network, _load(folder, kind, manifest, _named(_NETWORK, network.state_dict())))
    return int(manifest["position"])


def _named(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {prefix + name: tensor.detach() for name, tensor in tensors.items()}


def _unnamed(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): x for name, x in tensors.items() if name.startswith(prefix)}


def _manifest_path(folder: Path, kind: str) -> Path:
    return folder / f"{kind}.json"


def _save(folder: Path, kind: str, position: int, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
    path = folder / f"{kind}-{position:012d}.safetensors"
    on_cpu = {name: tensor.cpu().contiguous() for name, tensor in tensors.items()}
    digest = ""

    def write(temporary: Path) -> None:
        nonlocal digest
        save_file(on_cpu, temporary)
        temporary.chmod(0o644)  # as the other files of the run; safetensors lets only the owner read
        digest = sha256_of(temporary)

    write_whole(path, write)
    file = {"file": path.name, "bytes": path.stat().st_size, "sha256": digest}
    write_json(_manifest_path(folder, kind), {"format": FORMAT, "version": VERSION, **file, **values})
    _remove_older(folder, kind, path.name)


def _remove_older(folder: Path, kind: str, kept: str) -> None:
    for file in folder.glob(f"{kind}-*.safetensors"):
        if file.name != kept:
            file.unlink(missing_ok=True)
    for file in folder.glob(f".{kind}-*{TEMPORARY_SUFFIX}"):  # a killed run's
        file.unlink(missing_ok=True)


def _advice(kind: str) -> str:
    if kind == BEST:
        return "copy the run folder again, or remove best.json to use the last checkpoint"
    return "copy the run folder again, or train anew with another --out"


def _read_manifest(folder: Path, kind: str) -> dict[str, Any]:
    path = _manifest_path(folder, kind)
    manifest = read_json(path, "no checkpoint was written yet: train this run with --resume")
    if manifest.get("format") != FORMAT or manifest.get("version") != VERSION:
        raise RunError(
            f"{path} is of format {manifest.get('format')!r}, version {manifest.get('version')!r}; this "
            f"program reads {FORMAT!r}, version {VERSION}: use the program that wrote it, or train anew"
        )
    name, position = manifest.get("file"), manifest.get("position")
    if not isinstance(name, str) or Path(name).name != name or not isinstance(position, int):
        raise RunError(f"{path} does not name its file and position; {_advice(kind)}")
    return manifest


def _load(
    folder: Path, kind: str, manifest: dict[str, Any], expected: dict[str, Tensor]
) -> dict[str, Tensor]:
    """The tensors of a manifest, after its file proved to be the one that was written."""
    path = folder / manifest["file"]
    if not path.is_file():
        raise RunError(f"{path} is missing, but {kind}.json names it; {_advice(kind)}")
    size = path.stat().st_size
    if size != manifest.get("bytes"):
        raise RunError(f"{path} has {size} bytes instead of {manifest.get('bytes')}; {_advice(kind)}")
    if sha256_of(path) != manifest.get("sha256"):
        raise RunError(f"{path} was changed: its SHA-256 is not that of {kind}.json; {_advice(kind)}")
    prefixes = tuple({name.split(".")[0] + "." for name in expected})
    try:
        with safe_open(path, "pt") as file:  # the optimiser's tensors stay on the disk when not wanted
            names = filter(lambda name: name.startswith(prefixes), file.keys())
            tensors = {name: file.get_tensor(name) for name in names}
    except (SafetensorError, OSError) as error:
        raise RunError(f"{path} cannot be read ({error}); {_advice(kind)}") from error
    _check_tensors(path, tensors, expected)
    return tensors


def _check_tensors(path: Path, tensors: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    advice = "it belongs to another configuration or graph: use the config.json and graph it was trained with"
    for name, wanted in expected.items():
        if name not in tensors:
            raise RunError(f"{path} has no tensor '{name}'; {advice}")
        found = tensors[name]
        if found.shape != wanted.shape or found.dtype != wanted.dtype:
            shapes = f"{found.dtype} {tuple(found.shape)} instead of {wanted.dtype} {tuple(wanted.shape)}"
            raise RunError(f"{path}: tensor '{name}' is {shapes}; {advice}")
    unknown = sorted(tensors.keys() - expected.keys())
    if unknown:
        raise RunError(f"{path} has a tensor '{unknown[0]}' too many; {advice}")


@torch.no_grad()
def _load_network(network: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    network.load_state_dict(_unnamed(_NETWORK, tensors))


def _loop_state(folder: Path, manifest: dict[str, Any]) -> LoopState:
    try:
        values = {f.name: manifest[f.name] for f in fields(LoopState)}
        values["window"] = LossWindow(**values["window"])
        values["best"] = Validation(**values["best"]) if values["best"] else None
        return LoopState(**values)
    except (KeyError, TypeError) as error:
        raise RunError(f"{_manifest_path(folder, LAST)} lacks {error}; {_advice(LAST)}") from error
