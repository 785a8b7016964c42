"""Named tensors in a safetensors file: written like any other file, loaded only where they are the expected ones.

The file is written here and not by the safetensors package: that one writes a second temporary file, which a killed
process leaves behind, and hides what the system said when the disk was full.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from dpmpn.errors import Diverged, RunError
from dpmpn.files import open_file

_KINDS = {torch.float64: "F64", torch.int64: "I64", torch.float32: "F32", torch.int32: "I32"}
_ALIGNMENT = 8


def write_tensors(file: IO[bytes], tensors: Mapping[str, Tensor]) -> str:
    """Write tensors into a file; its SHA-256."""
    # Wide types first, so that every tensor is aligned.
    names = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))
    header, end = {}, 0
    for name in names:
        tensor, begin = tensors[name], end
        end += tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": _KINDS[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [begin, end],
        }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    digest = hashlib.sha256()
    for part in (len(text).to_bytes(8, "little"), text, *(_content(tensors[name]) for name in names)):
        file.write(part)
        digest.update(part)
    return digest.hexdigest()


def read_tensors(path: Path, expected: Mapping[str, Tensor], advice: str) -> dict[str, Tensor]:
    """The expected tensors of a file, all finite; types and shapes are compared before any memory is taken for them.

    Expected names have a prefix, such as "network."; tensors of other prefixes stay on the disk.
    """
    prefixes = tuple({name.split(".")[0] + "." for name in expected})
    try:
        with open_file(path) as opened, safe_open(_utf_8(path, opened), "pt") as file:
            found = {name: file.get_slice(name) for name in file.keys() if name.startswith(prefixes)}  # noqa: SIM118
            kinds = {name: _kind(part.get_dtype(), part.get_shape()) for name, part in found.items()}
            _check(path, kinds, {name: _kind(_KINDS[x.dtype], x.shape) for name, x in expected.items()})
            tensors = {name: file.get_tensor(name) for name in expected}
    except (
        SafetensorError,
        OSError,
        RuntimeError,
    ) as error:  # the last is PyTorch's, of a file that went away
        raise RunError(f"{path} cannot be read ({error}); {advice}") from error
    if (name := not_finite(tensors)) is not None:
        raise Diverged(f"{path}: tensor '{name}' has values that are not finite; {advice}")
    return tensors


def _utf_8(path: Path, opened: IO[bytes]) -> str:
    """A path that safetensors takes: one that is not UTF-8 has another in /dev/fd while it is open."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return f"/dev/fd/{opened.fileno()}"
    return str(path)


def not_finite(tensors: Mapping[str, Tensor]) -> str | None:
    """The name of a tensor that holds what is not a number, or infinite; None where all are finite."""
    return next((name for name, x in tensors.items() if not torch.isfinite(x.detach()).all()), None)


def _kind(dtype: str, shape: Sequence[int]) -> str:
    return f"{dtype} {tuple(shape)}"


def _content(tensor: Tensor) -> Any:
    return tensor.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data


def _check(path: Path, found: Mapping[str, str], expected: Mapping[str, str]) -> None:
    advice = "it belongs to another configuration, graph or version of dpmpn: use those it was trained with"
    for name, wanted in expected.items():
        if name not in found:
            raise RunError(f"{path} has no tensor '{name}'; {advice}")
        if found[name] != wanted:
            raise RunError(f"{path}: tensor '{name}' is {found[name]:.99} instead of {wanted}; {advice}")
    unknown = sorted(found.keys() - expected.keys())
    if unknown:
        raise RunError(f"{path} has a tensor '{unknown[0]:.80}' too many; {advice}")
