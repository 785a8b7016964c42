"""How kernels are compiled: loops over arrays that numba turns into machine code, kept on disk beside their module."""

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.integer[Any]]
Floats: TypeAlias = NDArray[np.floating[Any]]
Rows: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.floating[Any]]]  # rows x width
Bools: TypeAlias = NDArray[np.bool_]

_Function = TypeVar("_Function", bound=Callable[..., Any])


def kernel(function: _Function) -> _Function:
    """Compile a function when it is first called; it runs beside other threads."""
    return cast(_Function, njit(nogil=True, cache=True)(function))


def inline_kernel(function: _Function) -> _Function:
    """The same for a few lines that are compiled into each kernel that calls them."""
    return cast(_Function, njit(nogil=True, cache=True, inline="always")(function))


def float_kernel(function: _Function) -> _Function:
    """The same for sums of floats, whose order the compiler may change to use vector instructions."""
    return cast(_Function, njit(nogil=True, cache=True, fastmath=True)(function))
