"""How a setting is declared: a field of a frozen dataclass with its help text and the range its value must lie in."""

import difflib
import numbers
import re
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, dataclass, field, fields
from functools import cache
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from dpmpn.errors import ConfigError, shown

MOST = 10**9
"""Of what is counted, where nothing else limits it: the product of two such numbers is one of 64 bits."""
MOST_SEED = 2**63 - 1


def option(
    default: Any,
    help: str,
    *,
    at_least: float | None = None,
    above: float | None = None,
    at_most: float = MOST,
) -> Any:
    """A setting: its default, its help text and, if it is a number, the range it must lie in."""
    bounds = {"at_least": at_least, "above": above, "at_most": at_most}
    return field(default=default, metadata={"help": help, **bounds})


@dataclass(frozen=True)
class Section:
    """A group of settings that checks each value against its field's type and range."""

    def __post_init__(self) -> None:
        for setting in fields(self):
            object.__setattr__(self, setting.name, _checked(type(self), setting, getattr(self, setting.name)))


class Setting(NamedTuple):
    """What is known of one setting; `type` is int, float or str, with `| None` where "none" is allowed."""

    section: str
    key: str
    type: Any
    default: Any
    help: str
    choices: tuple[str, ...] | None
    bounds: Mapping[str, float | None]


def settings_of(section: str, owner: type[Section]) -> list[Setting]:
    """The settings of a section, in order."""
    found = []
    for setting in fields(owner):
        plain, optional, choices = _plain_type(owner, setting.name)
        bounds = {name: setting.metadata[name] for name in ("at_least", "above", "at_most")}
        allowed = plain | None if optional else plain
        help = setting.metadata["help"]
        found.append(Setting(section, setting.name, allowed, setting.default, help, choices, bounds))
    return found


def parsed(owner: type[Section], key: str, value: Any) -> Any:
    """A string as the setting's type; other values, and strings that do not parse, go on to the check."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    plain, optional, choices = _plain_type(owner, key)
    if optional and text.lower() in ("none", "off"):
        return None
    if choices:
        return next((choice for choice in choices if folded(choice) == folded(text)), value)
    try:
        return plain(text)
    except ValueError:
        return value


def key_of(name: str, known: Iterable[str]) -> str:
    """The key that a name means, with dashes and underscores equal; an unknown one is refused."""
    key, known = name.replace("-", "_").lower(), list(known)
    if key in known:
        return key
    near = difflib.get_close_matches(key, known, n=3, cutoff=0.5)
    meant = "did you mean " + ", ".join(f"'{n}'" for n in near) + "?"
    raise ConfigError(f"unknown setting '{name}'; {meant if near else 'settings are ' + ', '.join(known)}")


def folded(name: str) -> str:
    """A name without what does not matter in it: case, dashes and underscores."""
    return re.sub("[-_]", "", name).lower()


def refusal(key: str, value: Any, allowed: str) -> ConfigError:
    """What to say of a value that is not allowed."""
    return ConfigError(f"'{key}' must be {allowed}, not {shown(value)}")


def checked_number(
    key: str,
    value: Any,
    kind: type,
    *,
    at_least: float | None = None,
    above: float | None = None,
    at_most: float = MOST,
) -> Any:
    """A value as an int or a float in its range, or a ConfigError that says what is allowed: of every number given."""
    bounds = {"at_least": at_least, "above": above, "at_most": at_most}
    if not _is_number(kind, value) or not _in_range(bounds, value):
        raise refusal(key, value, _allowed(bounds, kind, False, None))
    return kind(value)


# Read once, a whole Config is made and checked in 0.1 ms instead of 0.74.
_annotations: Callable[[Any], dict[str, Any]] = cache(get_type_hints)


def _plain_type(owner: type[Section], key: str) -> tuple[type, bool, tuple[str, ...] | None]:
    """A field's plain type, whether None is allowed, and its choices."""
    hint = _annotations(owner)[key]
    if get_origin(hint) is Literal:
        return str, False, get_args(hint)
    if get_origin(hint) in (Union, types.UnionType):
        return next(part for part in get_args(hint) if part is not type(None)), True, None
    return hint, False, None


def _checked(owner: type[Section], setting: Field[Any], value: Any) -> Any:
    """The value as its field's plain type, or a ConfigError that says what is allowed."""
    plain, optional, choices = _plain_type(owner, setting.name)
    if value is None and optional:
        return None
    if choices is not None:
        fits = isinstance(value, str) and value in choices
    elif plain in (int, float):
        fits = _is_number(plain, value) and _in_range(setting.metadata, value)
    else:
        fits = isinstance(value, plain)
    if not fits:
        raise refusal(setting.name, value, _allowed(setting.metadata, plain, optional, choices))
    return plain(value)


def _is_number(kind: type, value: Any) -> bool:
    """Whether a value is a whole number, or a finite one; of numpy or Python, but no truth value."""
    abstract = numbers.Integral if kind is int else numbers.Real
    if not isinstance(value, abstract) or isinstance(value, bool):
        return False
    return kind is int or bool(abs(value) <= sys.float_info.max)  # type: ignore[operator]


def _in_range(bounds: Mapping[str, Any], value: Any) -> bool:
    at_least, above = bounds["at_least"], bounds["above"]
    reaches = (at_least is None or value >= at_least) and (above is None or value > above)
    return bool(reaches and value <= bounds["at_most"])


def _allowed(bounds: Mapping[str, Any], plain: type, optional: bool, choices: tuple[str, ...] | None) -> str:
    if choices is not None:
        return " or ".join(f"'{choice}'" for choice in choices)
    text = {int: "a whole number", float: "a number", str: "a text"}[plain]
    if bounds["at_least"] is not None:
        text += f" from {bounds['at_least']:,} to {bounds['at_most']:,}"
    elif bounds["above"] is not None:
        text += f" above {bounds['above']:,} and at most {bounds['at_most']:,}"
    return text + (" or none" if optional else "")
