"""The reference of the Python package: its public names, in the order in which one meets them."""

import inspect

import dpmpn

_FIRST = (
    "load_dataset",
    "dataset_from",
    "dataset_from_tuples",
    "SplitChoice",
    "Reasoner",
    "Predictions",
    "Prediction",
)


def names_reference() -> str:
    """A directive of Sphinx for each public name: signatures and docstrings are read from the code."""
    names = [*_FIRST, *(name for name in dpmpn.__all__ if name not in _FIRST)]
    return "```{eval-rst}\n" + "\n".join(_directive(name) for name in names) + "```"


def _directive(name: str) -> str:
    thing = getattr(dpmpn, name)
    if not inspect.isclass(thing):
        return f".. autofunction:: dpmpn.{name}\n"
    if issubclass(thing, BaseException):
        return f".. autoexception:: dpmpn.{name}\n   :show-inheritance:\n"
    is_built_on_ours = any(base.__module__.startswith("dpmpn.") for base in thing.__bases__)
    inherited = "   :inherited-members:\n" if is_built_on_ours else ""
    return f".. autoclass:: dpmpn.{name}\n   :members:\n{inherited}"
