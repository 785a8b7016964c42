"""Checkpoints: tensors in a safetensors file, and a JSON manifest that names it once it is safely there.

`checkpoint.json` names `checkpoint-<position>.safetensors`: network, optimiser and the state of the loop.
`best.json` names `best-<position>.safetensors`: the network of the best validation alone. A manifest is
replaced only after its tensors are on the disk, and the older tensors go last: a run killed at any moment
keeps a whole checkpoint. Tensors that a manifest names are never overwritten: others may be reading them.
"""

import math
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, ClassVar, Protocol, TypeVar

import torch
from torch import Tensor, nn

from dpmpn.errors import RunError
from dpmpn.files import check_version, read_json, remove, sha256_of, write_json, write_whole
from dpmpn.train.optimiser import Adam, impossible
from dpmpn.train.tensors import read_tensors, write_tensors

FORMAT = "dpmpn-checkpoint"
VERSION = 1
LAST, BEST = "checkpoint", "best"
_NETWORK, _OPTIMISER = "network.", "optimiser."
_LEAST_BYTES = 4  # of a weight
_TRIES = 20  # to read what a training process keeps replacing


@dataclass
class LossWindow:
    """Sums over the batches since the last line of metrics."""

    queries: int = 0
    loss: float = 0.0  # sum over targets
    reached: int = 0  # targets
    seconds: float = 0.0
    targets: int = 0


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


class _Positioned(Protocol):
    """The state of a loop: a dataclass of plain values."""

    __dataclass_fields__: ClassVar[dict[str, Any]]
    position: int


_State = TypeVar("_State", bound=_Positioned)


def save_checkpoint(folder: Path, network: nn.Module, optimiser: Adam, state: _Positioned) -> None:
    """Save everything needed to go on."""
    tensors = named_tensors(network) | _named(_OPTIMISER, optimiser.state())
    _save(folder, LAST, state.position, tensors, asdict(state))


def load_checkpoint(
    folder: Path, network: nn.Module, optimiser: Adam, read: Callable[[Path, dict[str, Any]], _State]
) -> _State:
    """Put network and optimiser back where the last checkpoint left them; its loop state, which `read` checks."""
    expected = named_tensors(network) | _named(_OPTIMISER, optimiser.state())
    manifest, tensors = _load(folder, LAST, expected)
    state = read(_manifest_path(folder, LAST), manifest)
    moments = _unnamed(_OPTIMISER, tensors)
    if (wrong := impossible(moments, state.position)) is not None:
        raise RunError(f"{folder / manifest['file']}: {wrong}; {_advice(LAST)}")
    _load_network(network, tensors)
    optimiser.load_state(moments)
    return state


def has_checkpoint(folder: Path) -> bool:
    """Whether a checkpoint was written."""
    return _manifest_path(folder, LAST).exists()


def save_best(folder: Path, network: nn.Module, position: int, validation: Validation | None) -> None:
    """Save the network alone, with the validation that chose it (None without validation triples).

    A better one that is there stays: without validations, the one that was trained longer.
    """
    if _manifest_path(folder, BEST).exists():
        kept = best_kept(folder)
        if kept is None or validation is None:
            stays = _read_manifest(folder, BEST)["position"] > position
        else:
            stays = kept.mrr > validation.mrr
        if stays:
            return
    values = {"position": position, "validation": asdict(validation) if validation else None}
    _save(folder, BEST, position, named_tensors(network), values)


def best_kept(folder: Path) -> Validation | None:
    """The validation of the best model on the disk; None where there is no model, or none was made."""
    path = _manifest_path(folder, BEST)
    if not path.exists():
        return None
    found = _read_manifest(folder, BEST).get("validation")
    return None if found is None else _validation(path, found)


def has_best(folder: Path) -> bool:
    """Whether there are weights of a best model, with or without the manifest that says how good it is."""
    return _manifest_path(folder, BEST).exists() or any(folder.glob(f"{BEST}-*.safetensors"))


def check_best(folder: Path, state: LoopState) -> None:
    """Refuse a best model that cannot be told from a worse one, before training goes on and replaces it."""
    path, kept = _manifest_path(folder, BEST), best_kept(folder)
    if path.exists():
        _check_file(folder, BEST, _read_manifest(folder, BEST))
    elif state.best is not None and has_best(folder):
        raise RunError(
            f"{path} is missing, but not its {BEST}-*.safetensors; copy the run folder again, or remove that "
            "file to continue without the best model so far"
        )
    if state.best is not None and (kept is None or kept.mrr < state.best.mrr):
        state.best = (
            kept  # the one that the checkpoint knew is gone: models are to surpass the one that is there
        )


def load_network(folder: Path, network: nn.Module, which: str) -> int:
    """Load the "best" or the "last" weights, return their position; before any validation, best is last."""
    manifest, tensors = _load(folder, _kind(folder, which), named_tensors(network))
    _load_network(network, tensors)
    return int(manifest["position"])


def check_size(folder: Path, which: str, values: int) -> None:
    """Refuse weights that cannot hold so many values, before memory is taken for a network that does."""
    kind = _kind(folder, which)
    path = folder / _read_manifest(folder, kind)["file"]
    with suppress(FileNotFoundError):  # said when it is loaded, or replaced in the meantime
        if values > path.stat().st_size // _LEAST_BYTES:
            raise RunError(f"{path} is smaller than a network of this configuration; {_advice(kind)}")


def _kind(folder: Path, which: str) -> str:
    return BEST if which == "best" and _manifest_path(folder, BEST).exists() else LAST


def named_tensors(network: nn.Module) -> dict[str, Tensor]:
    """The tensors of a network by their names in a file."""
    return _named(_NETWORK, network.state_dict())


def _named(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {prefix + name: tensor.detach() for name, tensor in tensors.items()}


def _unnamed(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): x for name, x in tensors.items() if name.startswith(prefix)}


def _manifest_path(folder: Path, kind: str) -> Path:
    return folder / f"{kind}.json"


def _save(folder: Path, kind: str, position: int, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
    path = folder / _free_name(folder, kind, position)
    digest = ""

    def write(file: IO[bytes]) -> None:
        nonlocal digest
        digest = write_tensors(file, tensors)

    write_whole(path, write)
    file = {"file": path.name, "bytes": path.stat().st_size, "sha256": digest}
    write_json(_manifest_path(folder, kind), {"format": FORMAT, "version": VERSION, **file, **values})
    _remove_older(folder, kind, path.name)


def _free_name(folder: Path, kind: str, position: int) -> str:
    """A file for this position that the manifest does not name: a run may come to a position twice."""
    name = f"{kind}-{position:012d}.safetensors"
    with suppress(RunError):  # a manifest that cannot be read keeps nothing
        if _read_manifest(folder, kind)["file"] == name:
            return f"{kind}-{position:012d}b.safetensors"
    return name


def _remove_older(folder: Path, kind: str, kept: str) -> None:
    for file in folder.glob(f"{kind}-*.safetensors"):
        if file.name != kept:
            remove(file)


def _advice(kind: str) -> str:
    if kind == BEST:
        return (
            "copy the run folder again, or remove best.json and best-*.safetensors to use the last checkpoint"
        )
    return "copy the run folder again, or train again with another --out"


def _read_manifest(folder: Path, kind: str) -> dict[str, Any]:
    path = _manifest_path(folder, kind)
    if not path.exists():
        raise RunError(f"{path} is missing; no checkpoint was written yet: train this run with --resume")
    manifest = read_json(path, _advice(kind))
    check_version(path, manifest, FORMAT, VERSION, _advice(kind), RunError)
    name = manifest.get("file")
    if not isinstance(name, str) or not re.fullmatch(rf"{kind}-[0-9]{{12,20}}b?\.safetensors", name):
        raise RunError(f"{path} does not name its file; {_advice(kind)}")
    check_values(path, manifest, {"position": is_count})
    return manifest


def _load(folder: Path, kind: str, expected: dict[str, Tensor]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """A manifest and its tensors; read again where a process that trains replaced them in between."""
    for _ in range(_TRIES):
        manifest = _read_manifest(folder, kind)
        try:
            return manifest, _load_tensors(folder, kind, manifest, expected)
        except RunError:
            if _read_manifest(folder, kind) == manifest:
                raise
    raise RunError(f"{folder} changes faster than it can be read; try again when its training has ended")


def _load_tensors(
    folder: Path, kind: str, manifest: dict[str, Any], expected: dict[str, Tensor]
) -> dict[str, Tensor]:
    """The tensors of a manifest, after its file proved to be the one that was written."""
    path = _check_file(folder, kind, manifest)
    return read_tensors(path, expected, _advice(kind))


def _check_file(folder: Path, kind: str, manifest: dict[str, Any]) -> Path:
    """The file of tensors that a manifest names, if it is the one that was written."""
    path = folder / str(manifest["file"])
    try:
        size, digest = path.stat().st_size, sha256_of(path)
    except FileNotFoundError:
        raise RunError(f"{path} is missing, but {kind}.json names it; {_advice(kind)}") from None
    except OSError as error:
        raise RunError(f"{path} cannot be read ({error.strerror}); {_advice(kind)}") from error
    if size != manifest.get("bytes"):
        raise RunError(f"{path} has {size} bytes instead of {manifest.get('bytes')!r:.40}; {_advice(kind)}")
    if digest != manifest.get("sha256"):
        raise RunError(f"{path} was changed: its SHA-256 is not that of {kind}.json; {_advice(kind)}")
    return path


@torch.no_grad()
def _load_network(network: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    network.load_state_dict(_unnamed(_NETWORK, tensors))


def is_count(value: Any) -> bool:
    """Whether a value counts something."""
    return type(value) is int and 0 <= value < 2**62


def is_number(value: Any) -> bool:
    """Whether a value is a finite number."""
    return type(value) in (int, float) and abs(value) < 1e300 and math.isfinite(value)


_STATE: dict[str, Callable[[Any], bool]] = {
    "position": is_count,
    "elapsed_seconds": lambda value: is_number(value) and value >= 0,
    "cpu_seconds": lambda value: is_number(value) and value >= 0,
    "best": lambda value: value is None or isinstance(value, dict),
    "validations_without_improvement": is_count,
    "validated_position": lambda value: value is None or is_count(value),
    "validation_due": lambda value: type(value) is bool,
    "lines": is_count,
    "window": lambda value: isinstance(value, dict),
}
_WINDOW = {
    "queries": is_count,
    "loss": is_number,
    "reached": is_count,
    "seconds": is_number,
    "targets": is_count,
}
_BEST = {
    "position": is_count,
    "mrr": lambda value: is_number(value) and 0 <= value <= 1,
    "summary": lambda value: isinstance(value, dict),
}


def check_values(path: Path, values: Mapping[str, Any], checks: Mapping[str, Callable[[Any], bool]]) -> None:
    """Refuse values of a manifest that are missing, or that no training writes."""
    for key, is_right in checks.items():
        if key not in values:
            raise RunError(f"{path} lacks '{key}'; {_advice(LAST)}")
        if not is_right(values[key]):
            raise RunError(
                f"{path}: '{key}' is {values[key]!r:.60}, which no training writes; {_advice(LAST)}"
            )


def loop_state(path: Path, manifest: dict[str, Any]) -> LoopState:
    """The state of a training, from the manifest of its checkpoint."""
    check_values(path, manifest, _STATE)
    values = {key: manifest[key] for key in _STATE}
    values["window"] = loss_window(path, values["window"])
    if values["best"] is not None:
        values["best"] = _validation(path, values["best"])
    return LoopState(**values)


def loss_window(path: Path, values: dict[str, Any]) -> LossWindow:
    """The sums over batches that a manifest holds."""
    if "queries" in values:  # a checkpoint that does not count targets had one for each query
        values = {"targets": values["queries"], **values}
    check_values(path, values, _WINDOW)
    return LossWindow(**{key: values[key] for key in _WINDOW})


def _validation(path: Path, values: Any) -> Validation:
    if not isinstance(values, dict):
        raise RunError(f"{path}: a validation is {values!r:.60}, which no training writes; {_advice(LAST)}")
    check_values(path, values, _BEST)
    return Validation(**{key: values[key] for key in _BEST})
