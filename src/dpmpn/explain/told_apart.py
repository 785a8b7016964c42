"""Entities that share a label are told apart by their identifiers."""

from dataclasses import fields, is_dataclass, replace
from typing import Any

from dpmpn.explain.reason import WhyNot
from dpmpn.explain.rivals import Way

_NAMED = (("name", "label"), ("candidate", "label"), ("head", "head_label"))  # fields that belong together


def told_apart(why: WhyNot) -> WhyNot:
    """The same with the identifier after every label that two of its entities share."""
    names: dict[str, set[str]] = {}
    _collect(why, names)
    shared = {label for label, uses in names.items() if len(uses) > 1}
    return _renamed(why, shared) if shared else why


def _collect(value: Any, names: dict[str, set[str]]) -> None:
    """Which entities each label stands for."""
    if isinstance(value, tuple):
        for each in value:
            _collect(each, names)
    elif is_dataclass(value):
        for name, label in _NAMED:
            if hasattr(value, name):
                names.setdefault(getattr(value, label), set()).add(getattr(value, name))
        if isinstance(value, Way):
            for name, label in zip(value.entities, value.labels, strict=True):
                names.setdefault(label, set()).add(name)
        for each in fields(value):
            _collect(getattr(value, each.name), names)


def _renamed(value: Any, shared: set[str]) -> Any:
    """The value with identifiers after shared labels."""
    if isinstance(value, tuple):
        return tuple(_renamed(each, shared) for each in value)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    changes = {each.name: _renamed(getattr(value, each.name), shared) for each in fields(value)}
    for name, label in _NAMED:
        if hasattr(value, name):
            changes[label] = _exact(getattr(value, name), getattr(value, label), shared)
    if isinstance(value, Way):
        pairs = zip(value.entities, value.labels, strict=True)
        changes["labels"] = tuple(_exact(name, label, shared) for name, label in pairs)
    return replace(value, **changes)


def _exact(name: str, label: str, shared: set[str]) -> str:
    return f"{label} ({name})" if label in shared else label
