"""Where a model enters an operation: shapes are checked, and functions with a backward pass keep their types."""

from collections.abc import Callable
from typing import Any, ParamSpec, Protocol, TypeVar, cast

import numpy as np
from torch import Tensor

_P = ParamSpec("_P")
_Result = TypeVar("_Result", covariant=True)


class _Differentiable(Protocol[_P, _Result]):
    """What subclasses of `torch.autograd.Function` have."""

    @staticmethod
    def forward(ctx: Any, *args: _P.args, **kwargs: _P.kwargs) -> _Result: ...

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any: ...


def applied(function: type[_Differentiable[_P, _Result]]) -> Callable[_P, _Result]:
    """`function.apply` with the types of its `forward`."""
    return cast(Callable[_P, _Result], function.apply)


_Argument = tuple[Tensor | np.ndarray | None, str]  # and what its dimensions are


def check_shapes(op: str, **arguments: _Argument) -> None:
    """Refuse arguments that do not fit together: dimensions of one name have one size.

    `pairs width` are the two dimensions of an argument; `pairs+1` is one more than `pairs`, a number is itself, and `_`
    may be of any size. What is None is not checked. An argument costs two microseconds.
    """
    sizes: dict[str, int] = {}
    for name, (array, pattern) in arguments.items():
        if array is None:
            continue
        dimensions = pattern.split()
        fits = len(array.shape) == len(dimensions)
        for dimension, size in zip(dimensions, array.shape, strict=False):
            if dimension.endswith("+1"):
                dimension, size = dimension[:-2], size - 1
            if dimension.isdecimal():
                fits &= size == int(dimension)
            elif dimension != "_":
                fits &= size == sizes.setdefault(dimension, size)
        if not fits:
            shapes = {n: (tuple(a.shape), p.split()) for n, (a, p) in arguments.items() if a is not None}
            raise ValueError(f"{op}: {_mismatch(name, shapes)}")


def _mismatch(wrong: str, shapes: dict[str, tuple[tuple[int, ...], list[str]]]) -> str:
    """What has the wrong shape, and the shapes of the arguments before it that share a dimension with it."""
    shown = {
        name: (" x ".join(map(str, shape)), " x ".join(needed)) for name, (shape, needed) in shapes.items()
    }
    named = {name: {d.removesuffix("+1") for d in needed} - {"_"} for name, (_, needed) in shapes.items()}
    before = list(shapes)[: list(shapes).index(wrong)]
    shared = [f"; {n} is {shown[n][1]} = {shown[n][0]}" for n in before if named[n] & named[wrong]]
    return f"{wrong} is {shown[wrong][0]}, not {shown[wrong][1]}" + "".join(shared)
