"""The labels of a reason as sentences show them: on one line, and with the identifier where two entities share one."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from dpmpn.explain.naming import ShownNames
from dpmpn.explain.reason import WhyNot
from dpmpn.explain.ways import Way

_NAMED = (("name", "label"), ("candidate", "label"), ("head", "head_label"))  # fields that belong together


def told_apart(why: WhyNot) -> WhyNot:
    """The same with every label as it is to be shown."""
    return _renamed(why, ShownNames(dict(_labels(why))))


def _labels(value: Any) -> Iterator[tuple[str, str]]:
    """The identifiers of all its entities, and their labels."""
    if isinstance(value, tuple):
        for each in value:
            yield from _labels(each)
    elif is_dataclass(value):
        for name, label in _NAMED:
            if hasattr(value, name):
                yield getattr(value, name), getattr(value, label)
        if isinstance(value, Way):
            yield from zip(value.entities, value.labels, strict=True)
        for each in fields(value):
            yield from _labels(getattr(value, each.name))


def _renamed(value: Any, names: ShownNames) -> Any:
    """The value with the names to show in the place of labels."""
    if isinstance(value, tuple):
        return tuple(_renamed(each, names) for each in value)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    changes = {each.name: _renamed(getattr(value, each.name), names) for each in fields(value)}
    for name, label in _NAMED:
        if hasattr(value, name):
            changes[label] = names.entity(getattr(value, name))
    if isinstance(value, Way):
        changes["labels"] = tuple(map(names.entity, value.entities))
    return replace(value, **changes)
