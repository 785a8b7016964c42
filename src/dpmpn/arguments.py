"""Arguments of public functions: one of another type than its annotation is refused by name where it is given."""

import functools
import inspect
import numbers
import os
import types
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, Union, get_args, get_origin

import numpy as np

from dpmpn.errors import DataError, WrongType, shown

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")
_KINDS: dict[Any, tuple[type, ...]] = {
    bool: (bool, np.bool_),
    int: (numbers.Integral,),
    float: (numbers.Real,),
    None: (types.NoneType,),
}
_WORDS = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "a text",
    Path: "a path",
    Iterable: "several of them",
}


def typed(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Check the arguments of each call; annotations that are texts, `Any` or `Literal` are left to the function."""
    signature = inspect.signature(function)
    checked = {
        name: tuple(_alternatives(parameter.annotation))
        for name, parameter in signature.parameters.items()
        if _can_be_checked(parameter)
    }

    @functools.wraps(function)
    def with_types(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            if name in checked:
                _check(f"{function.__qualname__}: '{name}'", value, checked[name])
        return function(*args, **kwargs)

    return with_types


def _can_be_checked(parameter: inspect.Parameter) -> bool:
    named = parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    kinds = list(_alternatives(parameter.annotation))
    return named and parameter.annotation is not parameter.empty and all(_is_kind(kind) for kind in kinds)


def _is_kind(annotation: Any) -> bool:
    return annotation is None or (isinstance(annotation, type) and annotation is not Any)


def _alternatives(annotation: Any) -> list[Any]:
    """The classes of a union, generic ones without their parameters, None for None."""
    if get_origin(annotation) in (Union, types.UnionType):
        return [kind for part in get_args(annotation) for kind in _alternatives(part)]
    plain = get_origin(annotation) or annotation
    return [None if plain is types.NoneType else plain]


def _check(what: str, value: Any, kinds: tuple[Any, ...]) -> None:
    allowed = tuple(kind for name in kinds for kind in _KINDS.get(name, (name,)))
    is_truth = isinstance(value, bool | np.bool_)
    is_scalar = isinstance(value, np.ndarray) and value.ndim == 0  # which says that it can be iterated over
    if not isinstance(value, allowed) or (is_truth and bool not in kinds) or is_scalar:
        words = " or ".join(
            "None" if kind is None else _WORDS.get(kind, f"a {kind.__name__}") for kind in kinds
        )
        raise WrongType(f"{what} must be {words}, not {shown(value)} ({type(value).__name__})")
    if Path in kinds and isinstance(value, str | Path) and not _is_path(str(value)):
        raise DataError(f"{what} cannot be a path: {shown(str(value))}")


def _is_path(text: str) -> bool:
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False
