"""How kernels are compiled: loops over arrays that numba turns into machine code, kept on disk for the next run."""

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Bools: TypeAlias = NDArray[np.bool_]
Ints: TypeAlias = NDArray[np.integer[Any]]
Floats: TypeAlias = NDArray[np.floating[Any]]
Float: TypeAlias = np.floating[Any]  # one of Floats
Rows: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.floating[Any]]]  # rows x width

_Function = TypeVar("_Function", bound=Callable[..., Any])


def kernel(function: _Function) -> _Function:
    """Compile a function when it is first called; it runs beside other threads."""
    return _compiled(function)


def inline_kernel(function: _Function) -> _Function:
    """The same for a few lines that are compiled into each kernel that calls them."""
    return _compiled(function, inline="always")


def float_kernel(function: _Function) -> _Function:
    """The same for sums of floats, whose order the compiler may change to use vector instructions."""
    return _compiled(function, fastmath=True)


def _compiled(function: _Function, **options: Any) -> _Function:
    # Here, so that modules that only name arrays do not load numba.
    from numba import njit

    from dpmpn.kernels.kept import KeptKernels

    compiled: _Function = njit(nogil=True, **options)(function)
    compiled._cache = KeptKernels(function)  # type: ignore[attr-defined, no-untyped-call]  # as `cache=True` does with numba's own
    return compiled
