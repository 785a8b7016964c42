"""Where a model enters an operation: shapes are checked, and functions with a backward pass keep their types."""

import os
from collections.abc import Callable
from functools import cache
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
    return cast(
        "Callable[_P, _Result]", function.apply
    )  # in quotes: to make the type takes longer than to look it up


_IS_CHECKING = os.environ.get("DPMPN_CHECK_SHAPES") == "1"
_Argument = tuple[Tensor | np.ndarray | None, str]  # and what its dimensions are


@cache
def _dimensions(pattern: str) -> tuple[tuple[str, int], ...]:
    """The names in a pattern, and what is added to each."""
    return tuple((name.removesuffix("+1"), int(name.endswith("+1"))) for name in pattern.split())


def check_shapes(op: str, **arguments: _Argument) -> None:
    """Refuse arguments that do not fit together: dimensions of one name have one size.

    `pairs width` are the two dimensions of an argument; `pairs+1` is one more than `pairs`, a number is itself, and `_`
    may be of any size. What is None is not checked.

    Checked in tests, and where the environment sets DPMPN_CHECK_SHAPES to 1: it takes 0.5 of the 7 ms of one query.
    """
    if not _IS_CHECKING:
        return
    sizes: dict[str, int] = {}
    for name, (array, pattern) in arguments.items():
        if array is None:
            continue
        dimensions, shape = _dimensions(pattern), array.shape
        fits = len(shape) == len(dimensions)
        for (dimension, more), size in zip(dimensions, shape, strict=False):
            if dimension == "_":
                continue
            needed = sizes.get(dimension)
            if needed is None:
                needed = sizes[dimension] = int(dimension) if dimension.isdecimal() else size - more
            fits &= size == needed + more
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
