"""Arrays on disk as .npy files: mapped when opened, after their header proved to describe just this file."""

from pathlib import Path

import numpy as np
from numpy.lib import format as npy

from dpmpn.errors import DataError


def save_array(path: Path, array: np.ndarray) -> None:
    """Write an array."""
    array = np.ascontiguousarray(array)
    with path.open("wb") as file:
        npy.write_array_header_1_0(file, npy.header_data_from_array_1_0(array))
        # numpy's own writing does not say why it failed, such as that the disk is full.
        file.write(array.data)


def open_array(path: Path, dtypes: tuple[type, ...], shape: tuple[int, ...], advice: str) -> np.ndarray:
    """Map an array, read-only; a file that is not just this array is refused before memory is taken for it."""
    try:
        with path.open("rb") as file:
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


def _read_header(file) -> tuple[tuple[int, ...], bool, np.dtype]:
    version = npy.read_magic(file)
    if version == (1, 0):
        return npy.read_array_header_1_0(file)
    if version == (2, 0):
        return npy.read_array_header_2_0(file)
    raise ValueError(f"version {version} of the .npy format")
