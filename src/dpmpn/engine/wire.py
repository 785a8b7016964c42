"""Messages between processes: one line of JSON, then the raw bytes of the arrays it names."""

import json
from typing import IO

import numpy as np


class Closed(Exception):
    """The other side has ended."""


def send(stream: IO[bytes], meta: dict, **arrays: np.ndarray) -> None:
    """Write a message."""
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    shapes = {name: [array.dtype.str, array.shape] for name, array in arrays.items()}
    stream.write(json.dumps({"meta": meta, "arrays": shapes}).encode() + b"\n")
    for array in arrays.values():
        stream.write(array.reshape(-1).view(np.uint8).data)
    stream.flush()


def receive(stream: IO[bytes]) -> tuple[dict, dict[str, np.ndarray]]:
    """Read a message; raises Closed at the end of the stream."""
    line = stream.readline()
    if not line.endswith(b"\n"):
        raise Closed
    header = json.loads(line)
    arrays = {}
    for name, (dtype, shape) in header["arrays"].items():
        array = np.empty(shape, np.dtype(dtype))
        _read_into(stream, array)
        arrays[name] = array
    return header["meta"], arrays


def _read_into(stream: IO[bytes], array: np.ndarray) -> None:
    view = array.reshape(-1).view(np.uint8).data
    while len(view):
        count = stream.readinto(view)  # type: ignore[attr-defined]
        if not count:
            raise Closed
        view = view[count:]
