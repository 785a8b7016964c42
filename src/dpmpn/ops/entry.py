"""Where a model enters an operation: shapes are checked, and functions with a backward pass keep their types."""

from collections.abc import Callable
from typing import Any, ParamSpec, Protocol, TypeVar, cast

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
